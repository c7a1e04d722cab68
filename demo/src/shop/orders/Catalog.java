// The products of the shop: a few parts, and kits built from earlier products. Fixed by the seed.
package shop.orders;

import shop.Dice;
import shop.Tally;

public final class Catalog {
    public static final int SIZE = 64;
    private static final int PARTS = 12;
    private static final String[] CATEGORIES = {"books", "garden", "kitchen", "lamps", "tools", "toys"};

    private final Product[] products = new Product[SIZE];

    Catalog(long seed, Tally setup) {
        Dice dice = new Dice(seed, -1);
        for (int i = 0; i < SIZE; i++) {
            String sku = "SKU-" + (1000 + i);
            String category = CATEGORIES[i % CATEGORIES.length];
            products[i] = i < PARTS
                    ? new Part(sku, i, category, 150 + dice.below(2500))
                    : new Kit(sku, i, category, products[i * 2 / 3], products[i / 3]);
        }
        setup.diceInit++;
        setup.diceNext += dice.draws;
    }

    Product product(int index) {
        return products[index];
    }
}
