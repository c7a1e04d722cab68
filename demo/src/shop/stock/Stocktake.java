// The accident of --deadlock: one thread holds two monitors and wants a ReentrantLock, a second holds
// that lock and wants the first monitor, a third is stuck behind them. The locks are its own, so the
// shop goes on serving. All three are daemons.
package shop.stock;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

public final class Stocktake {
    private final Object shelves = new Object();
    private final Object labels = new Object();
    private final ReentrantLock books = new ReentrantLock();
    private final CountDownLatch bothHoldOne = new CountDownLatch(2);
    private final AtomicLong ordersLeft;

    public Stocktake(long afterOrders) {
        ordersLeft = new AtomicLong(afterOrders);
    }

    /** Called after each order; the last of the given number starts the stocktake. */
    public void orderDone() {
        if (ordersLeft.get() > 0 && ordersLeft.decrementAndGet() == 0) {
            start();
        }
    }

    private void start() {
        Thread counter = daemon("stocktake-counter", this::countShelves);
        Thread clerk = daemon("stocktake-clerk", this::checkBooks);
        try {
            bothHoldOne.await();
            Thread reader = daemon("stocktake-reader", this::readLabels);
            while (counter.getState() != Thread.State.WAITING || clerk.getState() != Thread.State.BLOCKED
                    || reader.getState() != Thread.State.BLOCKED) {
                Thread.sleep(1);
            }
            System.out.println("deadlock " + counter.getName() + " " + clerk.getName()
                    + " behind " + reader.getName());
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    private void countShelves() {
        synchronized (shelves) {
            synchronized (labels) {
                meet();
                books.lock();
                books.unlock();
            }
        }
    }

    private void checkBooks() {
        books.lock();
        try {
            meet();
            synchronized (shelves) {
                throw new AssertionError("the deadlock did not happen");
            }
        } finally {
            books.unlock();
        }
    }

    private void readLabels() {
        synchronized (labels) {
            throw new AssertionError("the deadlock did not happen");
        }
    }

    /** Goes on when both threads hold what the other one needs. */
    private void meet() {
        bothHoldOne.countDown();
        try {
            bothHoldOne.await();
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    private static Thread daemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
