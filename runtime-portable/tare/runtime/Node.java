package tare.runtime;

/**
 * One calling context of one thread.
 *
 * <p>Only that thread writes. Another one that reads meanwhile finds every node whole, because what it goes
 * by (method, parent, sibling) is final, and figures that are a moment old.
 */
public final class Node {
    /** In place of a method: calls that found no room for a context of their own. */
    static final String REST = "[no room]";

    /** In place of a last child; no method is null. */
    private static final Node NOBODY = new Node();

    /** With more children than this a table finds them. */
    private static final int LIST = 8;

    final Tree tree;
    final Node parent;
    final String method;
    /** The child of the same parent that was made before this one. */
    final Node sibling;

    long calls;
    long bytecodes;
    /** The child that was entered last. */
    Node last = NOBODY;
    /** The child that was made last. */
    Node newest;
    private int children;
    private Node[] table;
    /** Of a rest: the calls under way inside it, which are counted there, too. */
    int inside;

    private Node() {
        tree = null;
        parent = null;
        method = null;
        sibling = null;
    }

    Node(Tree tree, Node parent, String method) {
        this.tree = tree;
        this.parent = parent;
        this.method = method;
        this.sibling = parent == null ? null : parent.newest;
    }

    /** The child for a method, made if need be; the rest when there is no room; null when there is nothing. */
    Node child(String name) {
        try {
            if (method == REST) {
                inside++;
                return this;
            }
            Node child = find(name);
            if (child == null) {
                child = Trees.reserve() ? make(name) : rest();
            }
            last = child;
            return child;
        } catch (OutOfMemoryError | StackOverflowError e) {
            // The program is about to meet the same error by itself.
            tree.lost++;
            return null;
        }
    }

    /** The child for a method, if there is one. Names are constants, so equal ones are the same. */
    Node find(String name) {
        if (table == null) {
            for (Node child = newest; child != null; child = child.sibling) {
                if (child.method == name) {
                    return child;
                }
            }
            return null;
        }
        int mask = table.length - 1;
        for (int at = name.hashCode() & mask; table[at] != null; at = at + 1 & mask) {
            if (table[at].method == name) {
                return table[at];
            }
        }
        return null;
    }

    private Node rest() {
        tree.refused++;
        Node rest = find(REST);
        if (rest == null) {
            return make(REST);
        }
        // Whoever was in there has left it, also if it could not say so.
        rest.inside = 0;
        return rest;
    }

    Node make(String name) {
        Node child = new Node(tree, this, name);
        if (table != null && children * 2 < table.length) {
            put(table, child);
        } else if (children >= LIST) {
            Node[] wider = new Node[Integer.highestOneBit(children) * 8];
            for (Node each = newest; each != null; each = each.sibling) {
                put(wider, each);
            }
            put(wider, child);
            table = wider;
        }
        children++;
        newest = child;
        return child;
    }

    private static void put(Node[] table, Node child) {
        int mask = table.length - 1;
        int at = child.method.hashCode() & mask;
        while (table[at] != null) {
            at = at + 1 & mask;
        }
        table[at] = child;
    }

    /** Adds what another node counted. */
    void add(Node other) {
        calls += other.calls;
        bytecodes += other.bytecodes;
    }
}
