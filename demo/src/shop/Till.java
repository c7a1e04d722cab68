// Where load generator and requests meet the order desk: one order in, one receipt out, whatever happens.
package shop;

import shop.load.Progress;
import shop.orders.OrderDesk;
import shop.orders.Receipt;
import shop.payment.LinePool;
import shop.stock.Stocktake;

public final class Till {
    private final OrderDesk desk;
    private final Progress progress;
    /** Null without --deadlock. */
    private final Stocktake stocktake;
    /** Null without --blocked. */
    private final LinePool lines;

    Till(OrderDesk desk, Progress progress, Stocktake stocktake, LinePool lines) {
        this.desk = desk;
        this.progress = progress;
        this.stocktake = stocktake;
        this.lines = lines;
    }

    public Receipt serve(long id, Tally tally) {
        tally.tillServe++;
        Receipt receipt;
        try {
            receipt = desk.handle(id, tally);
        } catch (RuntimeException | Error bug) {
            if (tally.ordersFailed++ == 0) {
                System.err.println("shop: order " + id + " failed: " + bug);
            }
            receipt = new Receipt(id, 0, "failed");
        }
        progress.orderDone(receipt.accepted());
        if (lines != null) {
            lines.report();
        }
        if (stocktake != null) {
            stocktake.orderDone();
        }
        return receipt;
    }
}
