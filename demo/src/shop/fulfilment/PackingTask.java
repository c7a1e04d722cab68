// Packs one order: tries by recursion how many of its items fit into a box.
package shop.fulfilment;

import shop.orders.Line;
import shop.orders.Order;

final class PackingTask implements Runnable {
    private static final int BOX = 35;
    private static final int LINES = 6;

    private final Order order;

    PackingTask(Order order) {
        this.order = order;
    }

    @Override
    public void run() {
        order.tally.packingTaskRun++;
        order.tally.itemsPacked += fill(0, BOX);
    }

    /** The most items of the lines from the given one on that fit into the room left. */
    private int fill(int next, int room) {
        order.tally.packingTaskFill++;
        if (next == Math.min(LINES, order.lines.size())) {
            return 0;
        }
        Line line = order.lines.get(next);
        int without = fill(next + 1, room);
        return line.quantity > room ? without : Math.max(without, line.quantity + fill(next + 1, room - line.quantity));
    }
}
