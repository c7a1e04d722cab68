// What a shipping plug-in offers. The shop knows this interface; the plug-ins live in other loaders.
package shop.shipping;

import shop.orders.Order;

public interface Carrier {
    long quote(Order order);
}
