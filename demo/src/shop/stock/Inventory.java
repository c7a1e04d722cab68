// The stock, behind one monitor that all workers want: the contended lock of the program. How often a
// shelf is filled up depends on what was taken in total, not on who came first.
package shop.stock;

import shop.orders.Catalog;
import shop.orders.Line;
import shop.orders.Order;

public final class Inventory {
    private static final int BINS = 2048;
    private static final int MOST = 60;
    private static final int LOT = 500;

    private final int[] level = new int[Catalog.SIZE];
    private final int[] bins = new int[BINS];

    /** Takes all lines of the order, or throws with the monitor held. */
    public synchronized void reserve(Order order) {
        order.tally.inventoryReserve++;
        for (Line line : order.lines) {
            take(order, line);
        }
    }

    private void take(Order order, Line line) {
        order.tally.inventoryTake++;
        if (line.quantity > MOST) {
            order.tally.inventoryTakeUnwound++;
            order.tally.inventoryReserveUnwound++;
            throw new OutOfStock(order);
        }
        int shelf = line.product.shelf();
        level[shelf] -= line.quantity;
        while (level[shelf] < 0) {
            restock(order, shelf);
        }
        order.tally.inventoryEmptiestBin++;
        bins[emptiestBin()] += line.quantity;
    }

    private void restock(Order order, int shelf) {
        order.tally.inventoryRestock++;
        level[shelf] += LOT;
    }

    /** Where the goods wait for the parcel: a slow search, on purpose, while everybody else waits. */
    private int emptiestBin() {
        int best = 0;
        for (int i = 1; i < BINS; i++) {
            if (bins[i] < bins[best]) {
                best = i;
            }
        }
        return best;
    }
}
