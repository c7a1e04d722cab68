// The whole shop: opens what the options ask for, waits until it is time to close, prints the counts.
package shop;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import shop.fulfilment.Packing;
import shop.load.LoadGenerator;
import shop.load.Progress;
import shop.load.VirtualThreads;
import shop.orders.OrderDesk;
import shop.payment.LinePool;
import shop.serve.RequestServer;
import shop.stock.Stocktake;

final class Shop {
    private static final long CLOSING_MILLIS = 5000;

    private final Options options;
    private final CountSheet sheet = new CountSheet();
    private final Tally own = sheet.open();
    private final Progress progress = new Progress();
    private final CountDownLatch closing = new CountDownLatch(1);
    private final VirtualThreads virtualThreads;
    private final OrderDesk desk;
    private final LoadGenerator load;
    private final RequestServer server;
    private final Till till;
    /** 0 when there is none. */
    private int port;
    private boolean closed;

    /** Throws UnsupportedOperationException if the JDK has no virtual threads and they are asked for. */
    Shop(Options options) {
        this.options = options;
        virtualThreads = options.virtual > 0 ? new VirtualThreads() : null;
        desk = new OrderDesk(options.seed, options.leak, new Packing(virtualThreads), own);
        till = new Till(desk, progress, options.deadlock > 0 ? new Stocktake(options.deadlock) : null,
                options.blocked ? new LinePool() : null);
        load = new LoadGenerator(options.orders, options.rate);
        server = new RequestServer(till, progress, sheet);
    }

    void bind() throws IOException {
        if (options.port >= 0) {
            port = server.listen(options.port);
        }
    }

    void open() {
        System.out.println("ready pid=" + ProcessHandle.current().pid() + " port=" + port);
        if (!options.quiet && options.reportEvery > 0) {
            progress.printEvery(options.reportEvery);
        }
        load.start(options.threads, options.virtual, virtualThreads, till, sheet);
        if (options.serve && options.port < 0) {
            server.readStandardInput(this::inputEnded);
        }
    }

    /** Returns when the orders are done, the time is over, or the input has ended. */
    void await() throws InterruptedException {
        if (options.threads + options.virtual > 0) {
            Thread waiter = new Thread(this::awaitWorkers, "load-waiter");
            waiter.setDaemon(true);
            waiter.start();
        }
        if (options.duration > 0) {
            closing.await((long) (options.duration * 1000), TimeUnit.MILLISECONDS);
        } else {
            closing.await();
        }
    }

    /** Lets the workers finish the order in hand and prints the counts, once. */
    synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        boolean exact;
        try {
            load.stop();
            exact = load.join(CLOSING_MILLIS) & server.close();
        } catch (InterruptedException hurry) {
            exact = false;
        }
        desk.close(own);
        String title = "seed=" + options.seed + " threads=" + options.threads + " virtual=" + options.virtual
                + " elapsed-ms=" + progress.elapsedMillis();
        System.out.println(sheet.report(title, exact));
        System.out.flush();
        closing.countDown();
    }

    private void inputEnded() {
        if (options.orders == Long.MAX_VALUE && options.duration == 0) {
            closing.countDown();
        }
    }

    private void awaitWorkers() {
        try {
            load.join(0);
            closing.countDown();
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }
}
