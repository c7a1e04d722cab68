// Takes requests from standard input, or from any number of clients on a loopback port.
package shop.serve;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashSet;
import java.util.Set;
import shop.CountSheet;
import shop.Till;
import shop.load.Progress;

public final class RequestServer {
    private final Till till;
    private final Progress progress;
    private final CountSheet sheet;
    private final Set<RequestSession> sessions = new LinkedHashSet<>();
    private ServerSocket listener;
    private int clients;
    private boolean closed;

    public RequestServer(Till till, Progress progress, CountSheet sheet) {
        this.till = till;
        this.progress = progress;
        this.sheet = sheet;
    }

    /** Listens on a loopback port (0: any that is free), and returns its number. */
    public int listen(int port) throws IOException {
        listener = new ServerSocket(port, 50, InetAddress.getLoopbackAddress());
        daemon("request-acceptor", this::accept);
        return listener.getLocalPort();
    }

    /** Answers requests on standard input, and says when it ended. */
    public void readStandardInput(Runnable atEnd) {
        daemon("request-stdin", () -> {
            talk(System.in, System.out);
            atEnd.run();
        });
    }

    /** False if a request is still being answered. */
    public boolean close() throws InterruptedException {
        if (listener != null) {
            try {
                listener.close();
            } catch (IOException alreadyGone) {
                // It is closed, and that is all we want.
            }
        }
        Set<RequestSession> open;
        synchronized (this) {
            closed = true;
            open = new LinkedHashSet<>(sessions);
        }
        boolean quiet = true;
        for (RequestSession session : open) {
            quiet &= session.close();
        }
        return quiet;
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                daemon("request-" + ++clients, () -> talk(client));
            } catch (IOException closed) {
                if (!listener.isClosed()) {
                    System.err.println("shop: cannot accept a client: " + closed.getMessage());
                }
            }
        }
    }

    private void talk(Socket client) {
        try (client) {
            client.setTcpNoDelay(true);
            talk(client.getInputStream(), new PrintStream(client.getOutputStream(), true, StandardCharsets.UTF_8));
        } catch (IOException gone) {
            // A client that vanishes is none of our business.
        }
    }

    private void talk(InputStream in, PrintStream out) {
        RequestSession session;
        synchronized (this) {
            if (closed) {
                return;
            }
            session = new RequestSession(till, progress, sheet.open());
            sessions.add(session);
        }
        try {
            session.run(new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8)), out);
        } catch (IOException gone) {
            // As above.
        } finally {
            synchronized (this) {
                sessions.remove(session);
            }
            sheet.retire(session.tally());
        }
    }

    private static void daemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
    }
}
