import java.io.File;
import java.util.HashMap;
import org.eclipse.mat.parser.internal.SnapshotFactory;
import org.eclipse.mat.snapshot.ISnapshot;
import org.eclipse.mat.util.VoidProgressListener;

/**
 * Eclipse MAT opens a dump: it parses it, finds dominators and retained sizes, and keeps them in its
 * index. Then it is asked for what dominates most, which is there by then.
 */
final class MatOpen {
    public static void main(String[] words) throws Exception {
        ISnapshot snapshot = new SnapshotFactory()
                .openSnapshot(new File(words[0]), new HashMap<>(), new VoidProgressListener());
        int[] roots = snapshot.getImmediateDominatedIds(-1);
        long most = 0;
        for (int root : roots) {
            most = Math.max(most, snapshot.getRetainedHeapSize(root));
        }
        System.out.println("objects " + snapshot.getSnapshotInfo().getNumberOfObjects());
        System.out.println("most " + most);
    }
}
