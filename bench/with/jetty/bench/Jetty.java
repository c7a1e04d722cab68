package bench;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Jetty with a servlet, asked by two clients on loopback, each over one connection. */
final class Jetty implements Workload {
    private static final int CLIENTS = 2;

    private final int requests;
    private final int port;

    Jetty(String[] args) throws Exception {
        requests = Integer.parseInt(args[0]);
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        ServletContextHandler context = new ServletContextHandler();
        context.addServlet(new ServletHolder(new Orders()), "/orders/*");
        server.setHandler(context);
        server.start();
        port = connector.getLocalPort();
    }

    @Override
    public long iterate() throws Exception {
        AtomicLong bytes = new AtomicLong();
        Thread[] clients = new Thread[CLIENTS];
        for (int i = 0; i < CLIENTS; i++) {
            int from = i;
            clients[i] = new Thread(() -> bytes.addAndGet(client(from)), "client-" + i);
            clients[i].start();
        }
        for (Thread client : clients) {
            client.join();
        }
        return bytes.get();
    }

    private long client(int from) {
        long bytes = 0;
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setTcpNoDelay(true);
            InputStream in = new BufferedInputStream(socket.getInputStream());
            OutputStream out = socket.getOutputStream();
            for (int i = from; i < requests; i += CLIENTS) {
                String request = "GET /orders/" + i % 100 + "?lines=" + i % 20
                        + " HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n";
                out.write(request.getBytes(StandardCharsets.US_ASCII));
                bytes += answer(in);
            }
            return bytes;
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Reads one answer; the length of its body. */
    private static int answer(InputStream in) throws IOException {
        int length = -1;
        String first = line(in);
        if (!first.contains(" 200 ")) {
            throw new IOException("the server answers " + first);
        }
        for (String line = line(in); !line.isEmpty(); line = line(in)) {
            if (line.regionMatches(true, 0, "Content-Length:", 0, 15)) {
                length = Integer.parseInt(line.substring(15).trim());
            }
        }
        in.readNBytes(length);
        return length;
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder(64);
        for (int c = in.read(); c >= 0 && c != '\n'; c = in.read()) {
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }

    private static final class Orders extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                throws IOException {
            int lines = Integer.parseInt(request.getParameter("lines"));
            StringBuilder body = new StringBuilder("{\"order\":\"");
            body.append(request.getPathInfo().substring(1)).append("\",\"lines\":[");
            for (int i = 0; i < lines; i++) {
                body.append(i == 0 ? "" : ",").append("{\"item\":").append(i * 31 % 17).append('}');
            }
            body.append("]}");
            response.setContentType("application/json");
            response.setContentLength(body.length());
            try (PrintWriter writer = response.getWriter()) {
                writer.print(body);
            }
        }
    }
}
