package tare.runtime;

import java.lang.ref.WeakReference;
import java.util.ArrayDeque;

/** The calling contexts of one thread, or of many that have ended. */
final class Tree {
    final String name;
    /** The thread's number; zero if the tree is of several. */
    final long id;
    final boolean virtual;
    private final WeakReference<Thread> owner;

    final Node root = new Node(this, null, "");
    /** Where the thread is. */
    Node current = root;
    /** Calls that were counted in a rest for want of room. */
    long refused;
    /** Calls that were counted nowhere. */
    long lost;

    Tree(Thread thread, String name, long id, boolean virtual) {
        this.owner = thread == null ? null : new WeakReference<>(thread);
        this.name = name;
        this.id = id;
        this.virtual = virtual;
    }

    boolean isOf(Thread thread) {
        return owner != null && owner.get() == thread;
    }

    boolean hasEnded() {
        Thread thread = owner == null ? null : owner.get();
        return thread == null || !thread.isAlive();
    }

    /** Takes over what the tree of a thread that has ended counted; says how many contexts were there twice. */
    int take(Tree ended) {
        refused += ended.refused;
        lost += ended.lost;
        int twice = 0;
        // Pairs; a tree may be deeper than this thread's stack.
        ArrayDeque<Node> waiting = new ArrayDeque<>();
        waiting.add(ended.root);
        waiting.add(root);
        while (!waiting.isEmpty()) {
            Node from = waiting.remove();
            Node into = waiting.remove();
            into.add(from);
            for (Node child = from.newest; child != null; child = child.sibling) {
                Node same = into.find(child.method);
                if (same == null) {
                    same = into.make(child.method);
                } else {
                    twice++;
                }
                waiting.add(child);
                waiting.add(same);
            }
        }
        return twice;
    }
}
