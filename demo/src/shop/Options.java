// The command line. One table describes each switch and feeds both the parser and the help.
package shop;

import java.util.List;
import java.util.Locale;
import shop.orders.OrderDesk.Leak;

final class Options {
    private static final long DEADLOCK_AFTER = 1000;
    private static final long UNLIMITED = Long.MAX_VALUE;

    long seed = 1;
    long orders = UNLIMITED;
    /** Seconds; 0 means no limit. */
    double duration;
    int threads = 4;
    int virtual;
    /** Orders a second; 0 means as many as possible. */
    double rate;
    Leak leak = Leak.SLOW;
    /** The order after which the deadlock happens; 0 means never. */
    long deadlock;
    /** Whether a pool is held while the bank is asked. */
    boolean blocked;
    boolean serve;
    /** -1: requests come from standard input. */
    int port = -1;
    boolean quiet;
    double reportEvery = 5;
    boolean help;

    private interface Setter {
        void set(Options options, String value) throws BadOption;
    }

    /** The value is null for a plain switch, and in square brackets when it may be left out. */
    private record Switch(String name, String value, String help, Setter setter) {
        boolean needsValue() {
            return value != null && !value.startsWith("[");
        }
    }

    private static final List<Switch> SWITCHES = List.of(
            new Switch("seed", "N", "which orders are made (default 1)",
                    (o, v) -> o.seed = number("seed", v, Long.MIN_VALUE, Long.MAX_VALUE)),
            new Switch("orders", "N", "run exactly N orders, print the counts, exit",
                    (o, v) -> o.orders = number("orders", v, 1, UNLIMITED - 1)),
            new Switch("duration", "SECONDS", "run so long, print the counts, exit",
                    (o, v) -> o.duration = decimal("duration", v, 0.001, 1e9)),
            new Switch("threads", "N", "workers on platform threads (default 4)",
                    (o, v) -> o.threads = (int) number("threads", v, 0, 10_000)),
            new Switch("virtual", "N", "workers on virtual threads, and packing in them (JDK 21+; default 0)",
                    (o, v) -> o.virtual = (int) number("virtual", v, 0, 1_000_000)),
            new Switch("rate", "N", "orders a second, all workers together; 0 = no limit (default 0)",
                    (o, v) -> o.rate = decimal("rate", v.endsWith("/s") ? v.substring(0, v.length() - 2) : v, 0, 1e9)),
            new Switch("leak", "off|slow|fast", "remember no order, one in 256, every one (default slow)",
                    (o, v) -> o.leak = leak(v)),
            new Switch("deadlock", "[=N]", "after N orders (default 1000) two threads deadlock; the shop goes on",
                    (o, v) -> o.deadlock = v == null ? -1 : number("deadlock", v, 1, UNLIMITED - 1)),
            new Switch("blocked", null, "hold a pool of lines while a slow bank is asked; orders wait for it",
                    (o, v) -> o.blocked = true),
            new Switch("serve", null, "answer requests on standard input; end with it",
                    (o, v) -> o.serve = true),
            new Switch("port", "N", "answer requests on this loopback port instead; 0 = any free one",
                    (o, v) -> o.port = (int) number("port", v, 0, 65535)),
            new Switch("report-every", "SECONDS", "print a progress line so often; 0 = never (default 5)",
                    (o, v) -> o.reportEvery = decimal("report-every", v, 0, 1e9)),
            new Switch("quiet", null, "no progress lines",
                    (o, v) -> o.quiet = true),
            new Switch("help", null, "this text",
                    (o, v) -> o.help = true));

    static Options parse(String[] args) throws BadOption {
        Options options = new Options();
        for (int i = 0; i < args.length; i++) {
            String arg = args[i];
            int equals = arg.indexOf('=');
            Switch found = find(equals < 0 ? arg : arg.substring(0, equals));
            String value = equals < 0 ? null : arg.substring(equals + 1);
            if (found.needsValue() && value == null) {
                if (++i == args.length) {
                    throw new BadOption("--" + found.name + " needs a value: --" + found.name + " " + found.value);
                }
                value = args[i];
            }
            if (found.value == null && value != null) {
                throw new BadOption("--" + found.name + " takes no value");
            }
            found.setter.set(options, value);
        }
        options.check();
        return options;
    }

    private void check() throws BadOption {
        if (port >= 0) {
            serve = true;
        }
        if (threads == 0 && virtual == 0 && (!serve || orders != UNLIMITED) && !help) {
            throw new BadOption("--threads 0 leaves nobody to work: add --virtual N, or --serve without --orders");
        }
        if (deadlock == -1) {
            deadlock = Math.min(DEADLOCK_AFTER, orders);
        }
        if (deadlock > orders) {
            throw new BadOption("--deadlock=" + deadlock + " would not happen in --orders " + orders);
        }
    }

    static String helpText() {
        StringBuilder text = new StringBuilder("""
                usage: java -cp CLASSES shop.Main [switches]

                A small order service with a load generator, made to be profiled. Equal seeds give
                equal orders. Without --orders and --duration it runs until it is stopped; whenever it
                ends, it prints how often its methods were called.

                """);
        for (Switch s : SWITCHES) {
            String left = "--" + s.name + (s.value == null ? "" : s.needsValue() ? " " + s.value : s.value);
            text.append(String.format("  %-24s %s%n", left, s.help));
        }
        return text.append("""

                Requests: order N, ping, stats, quit. Answers: ok N price=..., rejected N reason=..., pong,
                progress ..., error ...
                """).toString();
    }

    private static Switch find(String arg) throws BadOption {
        for (Switch s : SWITCHES) {
            if (arg.equals("--" + s.name) || arg.equals("-h") && s.name.equals("help")) {
                return s;
            }
        }
        throw new BadOption("unknown option: " + arg);
    }

    private static Leak leak(String value) throws BadOption {
        for (Leak leak : Leak.values()) {
            if (leak.name().toLowerCase(Locale.ROOT).equals(value)) {
                return leak;
            }
        }
        throw new BadOption("--leak is off, slow or fast, not " + value);
    }

    private static long number(String name, String value, long least, long most) throws BadOption {
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // Reported below, like a number out of range.
        }
        throw new BadOption("--" + name + " needs a whole number"
                + (most < UNLIMITED - 1 ? " from " + least + " to " + most : least > 0 ? " of at least " + least : "")
                + ", not " + value);
    }

    private static double decimal(String name, String value, double least, double most) throws BadOption {
        try {
            double number = Double.parseDouble(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // Reported below, like a number out of range.
        }
        throw new BadOption("--" + name + " needs a number " + (least > 0 ? "above 0" : "of at least 0")
                + ", not " + value);
    }
}
