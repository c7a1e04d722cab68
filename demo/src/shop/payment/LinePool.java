// The trouble of --blocked: lines to the bank are lent from a pool. Now and then a line is renewed,
// for which the bank is asked over a socket; it is slow, and the pool's monitor is held meanwhile. So
// everybody who wants a line waits for the bank. All threads of it are daemons.
package shop.payment;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayDeque;
import java.util.Deque;

public final class LinePool {
    private static final int LINES = 64;
    private static final long BANK_MILLIS = 60;
    private static final long PAUSE_MILLIS = 20;

    /** A line to the bank, renewed so often. */
    private static final class Line {
        int renewed;
    }

    private final Deque<Line> free = new ArrayDeque<>();
    private final Socket bank;

    public LinePool() {
        for (int i = 0; i < LINES; i++) {
            free.add(new Line());
        }
        try {
            ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
            daemon("bank", () -> answerSlowly(listener));
            bank = new Socket(listener.getInetAddress(), listener.getLocalPort());
        } catch (IOException noLoopback) {
            throw new UncheckedIOException(noLoopback);
        }
        daemon("line-refresher", this::refreshNowAndThen);
    }

    /** Tells the bank of an order: a line is borrowed and given back. */
    public void report() {
        Line line = borrow();
        giveBack(line);
    }

    private synchronized Line borrow() {
        Line line = free.poll();
        return line != null ? line : new Line();
    }

    private synchronized void giveBack(Line line) {
        if (free.size() < LINES) {
            free.add(line);
        }
    }

    /** The mistake: the bank is asked while the pool is held. */
    private synchronized void refresh() throws IOException {
        Line line = borrow();
        OutputStream out = bank.getOutputStream();
        out.write('?');
        out.flush();
        if (bank.getInputStream().read() < 0) {
            throw new IOException("the bank is closed");
        }
        line.renewed++;
        giveBack(line);
    }

    private void refreshNowAndThen() {
        try {
            while (true) {
                refresh();
                Thread.sleep(PAUSE_MILLIS);
            }
        } catch (IOException | InterruptedException closed) {
            System.err.println("shop: lines are no longer renewed: " + closed);
        }
    }

    private static void answerSlowly(ServerSocket listener) {
        try (listener; Socket caller = listener.accept()) {
            InputStream in = caller.getInputStream();
            while (in.read() >= 0) {
                Thread.sleep(BANK_MILLIS);
                caller.getOutputStream().write('!');
            }
        } catch (IOException | InterruptedException closed) {
            System.err.println("shop: the bank has closed: " + closed);
        }
    }

    private static void daemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
    }
}
