// Listens at a Unix socket, answers "ok believe me" to everybody, and prints what it was told: an
// impostor.

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

public final class Listen {
    private Listen() {
    }

    public static void main(String[] args) throws IOException {
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(UnixDomainSocketAddress.of(Path.of(args[0])));
            System.out.println("ready");
            while (true) {
                serve(server);
            }
        }
    }

    private static void serve(ServerSocketChannel server) throws IOException {
        try (SocketChannel peer = server.accept()) {
            System.out.println("connected");
            peer.write(ByteBuffer.wrap("ok believe me\n".getBytes(StandardCharsets.UTF_8)));
            ByteBuffer buffer = ByteBuffer.allocate(4096);
            while (peer.read(buffer) > 0) {
                System.out.println("heard " + new String(buffer.array(), 0, buffer.position(), StandardCharsets.UTF_8));
            }
        } catch (IOException gone) {
            System.out.println("gone " + gone);
        }
    }
}
