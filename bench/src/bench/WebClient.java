package bench;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** One connection to the server under test. Knows as much of HTTP as it needs. */
final class WebClient implements AutoCloseable {
    private final Socket socket;
    private final InputStream in;
    private final OutputStream out;

    WebClient(int port) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(60_000);
        in = new BufferedInputStream(socket.getInputStream());
        out = socket.getOutputStream();
    }

    /** Asks for something, and gives back a number made of the answer's text. */
    long ask(int number) throws IOException {
        String request =
                "GET /orders/" + number % 7 + "?least=" + number * 13 % 900 + " HTTP/1.1\r\n"
                        + "Host: localhost\r\nUser-Agent: bench\r\nAccept: text/plain\r\n\r\n";
        out.write(request.getBytes(StandardCharsets.ISO_8859_1));
        String status = line();
        if (!status.startsWith("HTTP/1.1 200")) {
            throw new IOException("the server says " + status);
        }
        int length = -1;
        boolean chunked = false;
        boolean tagged = false;
        for (String line = line(); !line.isEmpty(); line = line()) {
            if (line.startsWith("Content-Length: ")) {
                length = Integer.parseInt(line.substring(16));
            }
            chunked |= line.equals("Transfer-Encoding: chunked");
            tagged |= line.equals("X-Bench: yes");
        }
        if (!tagged) {
            throw new IOException("the answer did not pass the filter");
        }
        return chunked ? chunks() : text(length);
    }

    private long chunks() throws IOException {
        long result = 0;
        for (int size = Integer.parseInt(line(), 16); size > 0; size = Integer.parseInt(line(), 16)) {
            result = result * 31 + text(size);
            line();
        }
        line();
        return result;
    }

    private long text(int length) throws IOException {
        byte[] body = in.readNBytes(length);
        if (body.length != length || length == 0) {
            throw new IOException("an answer of " + body.length + " bytes instead of " + length);
        }
        long result = 0;
        for (byte b : body) {
            result = result * 31 + b;
        }
        return result;
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c == -1) {
                throw new IOException("the connection ended early");
            }
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
