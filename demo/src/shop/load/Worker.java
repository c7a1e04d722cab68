// One worker of the load generator: takes orders until there are none.
package shop.load;

import shop.Tally;
import shop.Till;

final class Worker implements Runnable {
    private final OrderSource source;
    private final Till till;
    private final Tally tally;

    Worker(OrderSource source, Till till, Tally tally) {
        this.source = source;
        this.till = till;
        this.tally = tally;
    }

    @Override
    public void run() {
        tally.workerRun++;
        for (long id = source.claim(); id != OrderSource.NONE; id = source.claim()) {
            till.serve(id, tally);
        }
    }
}
