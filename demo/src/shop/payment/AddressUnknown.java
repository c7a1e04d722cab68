// The parcel would not arrive.
package shop.payment;

import shop.orders.Order;
import shop.orders.Rejected;

final class AddressUnknown extends Rejected {
    private static final long serialVersionUID = 1;

    AddressUnknown(Order order) {
        super("address-unknown");
        order.tally.addressUnknownInit++;
    }
}
