// A product that is put together from two others: its cost is found by recursion over the tree.
package shop.orders;

import shop.Tally;

final class Kit implements Product {
    private static final long ASSEMBLY_CENTS = 45;

    private final String sku;
    private final int shelf;
    private final String category;
    private final Product body;
    private final Product extra;

    Kit(String sku, int shelf, String category, Product body, Product extra) {
        this.sku = sku;
        this.shelf = shelf;
        this.category = category;
        this.body = body;
        this.extra = extra;
    }

    @Override
    public String sku() {
        return sku;
    }

    @Override
    public int shelf() {
        return shelf;
    }

    @Override
    public String category() {
        return category;
    }

    @Override
    public long cost(Tally tally) {
        tally.kitCost++;
        return ASSEMBLY_CENTS + body.cost(tally) + extra.cost(tally);
    }
}
