// A product that is bought as it is: the leaf of the product tree.
package shop.orders;

import shop.Tally;

final class Part implements Product {
    private final String sku;
    private final int shelf;
    private final String category;
    private final long cents;

    Part(String sku, int shelf, String category, long cents) {
        this.sku = sku;
        this.shelf = shelf;
        this.category = category;
        this.cents = cents;
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
        tally.partCost++;
        return cents;
    }
}
