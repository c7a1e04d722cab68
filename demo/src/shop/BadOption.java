// A command line that cannot be understood; the message names the option and the remedy.
package shop;

final class BadOption extends Exception {
    private static final long serialVersionUID = 1;

    BadOption(String message) {
        super(message);
    }
}
