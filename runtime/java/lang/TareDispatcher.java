package java.lang;

import static java.lang.TareLayout.*;
import static java.lang.TareThreads.*;
import static java.lang.TareTree.page;

import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.HashSet;
import java.util.function.BiFunction;
import java.util.function.LongBinaryOperator;
import java.util.jar.JarFile;
import jdk.internal.misc.Unsafe;

/**
 * The thread on which an agent written in Java runs. Nothing that it calls is counted.
 *
 * <p>The agent's jar holds tare-api, whose Bridge makes contexts of addresses; between it and us there
 * are only interfaces of the JDK, since we cannot see its classes.
 */
final class TareDispatcher extends Thread {
    private static final Unsafe U = Unsafe.getUnsafe();

    private static final String BRIDGE = "tare.api.Bridge";
    private static final String ATTRIBUTE = "Tare-Agent";
    private static final int REGISTER = 0;
    private static final int PROCESS = 1;
    private static final int END = 2;
    /** How often it looks, in milliseconds, while nothing comes. */
    private static final int PAUSE = 2;
    /** How often it looks again, at the end, for a note that a thread has begun to write. */
    private static final int LOOKS = 100;

    private final String jar;
    private final long mark;
    private final long ring;

    private TareDispatcher(String jar, long mark, long ring) {
        super(outermost(), null, "tare agent", 0, false);
        this.jar = jar;
        this.mark = mark;
        this.ring = ring;
        setDaemon(true);
    }

    private static ThreadGroup outermost() {
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        while (group.getParent() != null) {
            group = group.getParent();
        }
        return group;
    }

    static void begin(String jar, long ring) {
        new TareDispatcher(jar, session, ring).start();
    }

    @Override
    public void run() {
        long entry = FIELD ? 0 : claim(mark << 32, U.getLong(this, TID));
        set(this, entry, BUSY);
        try (URLClassLoader loader = loader()) {
            LongBinaryOperator bridge = bridge(loader);
            TareAgents.state(ring, STATE_READY);
            serve(bridge);
        } catch (Throwable thrown) {
            if (TareAgents.order(ring) != ORDER_LEAVE) {
                boolean wrapped = thrown instanceof InvocationTargetException && thrown.getCause() != null;
                TareAgents.failed((wrapped ? thrown.getCause() : thrown).toString());
            }
        } finally {
            TareAgents.state(ring, STATE_OVER); // The ring may be another's from now on.
        }
    }

    private URLClassLoader loader() throws Exception {
        URL[] urls = {new File(jar).toURI().toURL()};
        return new URLClassLoader(urls, ClassLoader.getPlatformClassLoader());
    }

    private LongBinaryOperator bridge(ClassLoader loader) throws Exception {
        String agent;
        try (JarFile file = new JarFile(jar)) {
            agent = file.getManifest() == null ? null
                : file.getManifest().getMainAttributes().getValue(ATTRIBUTE);
        }
        if (agent == null) {
            throw new IllegalArgumentException("its manifest names no ".concat(ATTRIBUTE));
        }
        setContextClassLoader(loader);
        boolean samples = U.getInt((mark << 32) + H_HOLDS) == HOLDS_SAMPLES;
        return (LongBinaryOperator) Class.forName(BRIDGE, true, loader)
            .getMethod("open", String.class, boolean.class, BiFunction.class)
            .invoke(null, agent, samples, new TareAnswers(mark));
    }

    /** Until it is told to end, and then what is in the ring, or to leave, and then nothing more. */
    private void serve(LongBinaryOperator bridge) throws InterruptedException {
        HashSet<Long> registered = new HashSet<>();
        int looks = 0;
        long last = Long.MAX_VALUE;
        while (true) {
            int order = TareAgents.order(ring);
            if (order == ORDER_LEAVE) {
                return;
            }
            if (order == ORDER_DRAIN && last == Long.MAX_VALUE) {
                last = TareAgents.head(ring); // Threads may go on: who ends waits for none of theirs.
            }
            boolean more = order != ORDER_END && TareAgents.tail(ring) < last;
            long note = more ? TareAgents.next(ring) : 0;
            if (note != 0) {
                looks = 0;
                tell(bridge, registered, TareAgents.node(note), TareAgents.times(note));
                TareAgents.taken(ring, note);
            } else if (order == ORDER_SERVE || more && looks++ < LOOKS) {
                Thread.sleep(PAUSE);
            } else {
                TareAgents.calls(ring);
                bridge.applyAsLong(END, 0);
                return;
            }
        }
    }

    private void tell(LongBinaryOperator bridge, HashSet<Long> registered, long node, int times) {
        if (node >>> 32 != mark) {
            return; // Left over from an earlier session.
        }
        long tree = page(node);
        if (registered.add(tree)) {
            TareAgents.calls(ring);
            distance(tree, bridge.applyAsLong(REGISTER, tree + T_ROOT));
        }
        long told = (mark << 32) + H_TOLD;
        for (int i = 0; i < times && U.getInt(node + METHOD) > 0; i++) {
            if (TareAgents.order(ring) >= ORDER_END) {
                return;
            }
            TareAgents.calls(ring);
            U.putLongRelease(null, told, U.getLong(told) + 1);
            distance(tree, bridge.applyAsLong(PROCESS, node));
        }
    }

    private static void distance(long tree, long next) {
        if (next > 0 && tree >>> 32 == session) {
            U.putInt(tree + T_EVERY, next < Integer.MAX_VALUE ? (int) next : Integer.MAX_VALUE);
        }
    }
}
