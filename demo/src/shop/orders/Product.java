// Something the shop sells: a part with a price of its own, or a kit made of other products.
package shop.orders;

import shop.Tally;

public interface Product {
    String sku();

    int shelf();

    String category();

    /** What the product costs us, in cents. Kits ask their parts, which may be kits. */
    long cost(Tally tally);
}
