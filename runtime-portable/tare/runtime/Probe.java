package tare.runtime;

/**
 * What woven code calls: at the beginning of a method, at its end, in its handlers, and now and then in
 * a loop. Nothing here throws into the program, blocks, or calls anything of it.
 */
public final class Probe {
    private Probe() {}

    /** A method begins; what is returned is to be given to all the others. */
    public static Node enter(String method) {
        Tree tree = Trees.current();
        if (tree == null) {
            return null;
        }
        Node node = tree.current;
        Node child = node.last;
        if (child.method != method) {
            child = node.child(method);
            if (child == null) {
                return null;
            }
        }
        child.calls++;
        tree.current = child;
        return child;
    }

    /** The method ends, normally or by an exception, and has run so many bytecodes since it last told. */
    public static void exit(Node node, int bytecodes) {
        if (node != null) {
            node.bytecodes += bytecodes;
            if (node.inside == 0) {
                node.tree.current = node.parent;
            } else {
                node.inside--;
            }
        }
    }

    /** One of the method's own handlers caught what a method below it may not have survived. */
    public static void caught(Node node) {
        if (node != null) {
            node.tree.current = node;
        }
    }

    /** The method goes on, and counts from zero again. */
    public static void flush(Node node, int bytecodes) {
        if (node != null) {
            node.bytecodes += bytecodes;
        }
    }
}
