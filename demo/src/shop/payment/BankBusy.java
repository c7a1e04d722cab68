// The bank asks to try again; caught one frame up.
package shop.payment;

import shop.orders.Order;

final class BankBusy extends Exception {
    private static final long serialVersionUID = 1;

    BankBusy(Order order) {
        super("bank busy");
        order.tally.bankBusyInit++;
    }
}
