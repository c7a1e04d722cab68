// Answers the requests of one client, line by line.
package shop.serve;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import shop.Tally;
import shop.Till;
import shop.load.Progress;

final class RequestSession {
    private final Till till;
    private final Progress progress;
    private final Tally tally;
    /** Held while a request is answered, so that the tally is not read in the middle of one. */
    private final ReentrantLock busy = new ReentrantLock();
    private boolean closed;

    RequestSession(Till till, Progress progress, Tally tally) {
        this.till = till;
        this.progress = progress;
        this.tally = tally;
    }

    Tally tally() {
        return tally;
    }

    /** Ends when the client does, says quit, or the shop closes. */
    void run(BufferedReader in, PrintStream out) throws IOException {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            busy.lock();
            try {
                if (closed || line.strip().equals("quit")) {
                    return;
                }
                out.println(answer(line.strip()));
            } finally {
                busy.unlock();
            }
        }
    }

    /** No request is answered any more; false if one is being answered and does not end. */
    boolean close() throws InterruptedException {
        if (!busy.tryLock(2, TimeUnit.SECONDS)) {
            return false;
        }
        try {
            closed = true;
            return true;
        } finally {
            busy.unlock();
        }
    }

    private String answer(String request) {
        tally.requests++;
        if (request.equals("ping")) {
            return "pong";
        }
        if (request.equals("stats")) {
            return progress.line(progress.averageRate());
        }
        if (request.startsWith("order ")) {
            try {
                long id = Long.parseLong(request.substring(6).strip());
                if (id > 0) {
                    return till.serve(id, tally).answer();
                }
            } catch (NumberFormatException notANumber) {
                // Answered below, like a number that is too small.
            }
            return "error an order has a positive number: " + request;
        }
        return "error unknown request: " + request + " (try: order N, ping, stats, quit)";
    }
}
