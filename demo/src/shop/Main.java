// The start: options in, shop open, shop closed. A signal closes the shop too.
package shop;

import java.io.IOException;

public final class Main {
    private static final int BAD_USAGE = 2;

    private Main() {
    }

    public static void main(String[] args) throws InterruptedException {
        Shop shop;
        try {
            Options options = Options.parse(args);
            if (options.help) {
                System.out.print(Options.helpText());
                return;
            }
            shop = new Shop(options);
            shop.bind();
        } catch (BadOption | UnsupportedOperationException bad) {
            System.err.println("shop: " + bad.getMessage() + " (try --help)");
            System.exit(BAD_USAGE);
            return;
        } catch (IOException noPort) {
            System.err.println("shop: cannot listen on that port: " + noPort.getMessage() + " (try --port 0)");
            System.exit(BAD_USAGE);
            return;
        }
        Runtime.getRuntime().addShutdownHook(new Thread(shop::close, "shop-closing"));
        shop.open();
        shop.await();
        shop.close();
    }
}
