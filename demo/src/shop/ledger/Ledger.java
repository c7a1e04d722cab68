// The books, behind a ReentrantLock: each order is posted, and the last page is added up again.
package shop.ledger;

import java.util.concurrent.locks.ReentrantLock;
import shop.Tally;
import shop.orders.Order;

public final class Ledger {
    private static final int PAGE = 1024;

    private final ReentrantLock lock = new ReentrantLock();
    private final long[] page = new long[PAGE];
    private int row;
    private long balance;

    public void post(Order order, long cents) {
        Tally tally = order.tally;
        tally.ledgerPost++;
        if (!lock.tryLock()) {
            tally.ledgerWaits++;
            lock.lock();
        }
        try {
            tally.ledgerEnter++;
            enter(cents);
            tally.ledgerAddUp++;
            if (addUp() != balance) {
                throw new IllegalStateException("the books do not balance");
            }
        } finally {
            lock.unlock();
        }
    }

    private void enter(long cents) {
        balance += cents - page[row];
        page[row] = cents;
        row = (row + 1) % PAGE;
    }

    private long addUp() {
        long sum = 0;
        for (long cents : page) {
            sum += cents;
        }
        return sum;
    }
}
