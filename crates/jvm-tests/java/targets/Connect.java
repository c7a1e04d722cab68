// Connects to a Unix socket and prints what comes first: a peer that can run as another user.

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

public final class Connect {
    private Connect() {
    }

    public static void main(String[] args) {
        try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            channel.connect(UnixDomainSocketAddress.of(Path.of(args[0])));
            ByteBuffer buffer = ByteBuffer.allocate(4096);
            while (channel.read(buffer) > 0) {
                if (buffer.position() > 4 && buffer.position() >= 4 + Integer.reverseBytes(buffer.getInt(0))) {
                    break;
                }
            }
            String text = new String(buffer.array(), 0, buffer.position(), StandardCharsets.UTF_8);
            System.out.println("connected: " + text.substring(Math.min(4, text.length())).replace('\n', ' '));
        } catch (IOException refused) {
            System.out.println("refused: " + refused);
        }
    }
}
