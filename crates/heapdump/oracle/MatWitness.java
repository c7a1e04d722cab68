import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.util.HashMap;
import java.util.Map;
import org.eclipse.mat.parser.internal.SnapshotFactory;
import org.eclipse.mat.snapshot.ISnapshot;
import org.eclipse.mat.util.VoidProgressListener;

/**
 * What Eclipse MAT says of a dump: for each object its address, the address of its immediate
 * dominator (0 for none), its own size and what it retains, four longs each. Objects that MAT
 * calls unreachable are not there.
 */
final class MatWitness {
    public static void main(String[] words) throws Exception {
        File dump = new File(words[0]);
        Map<String, String> options = new HashMap<>();
        // What is in its list of classes twice or has no class is an error, and not repaired.
        options.put("strictness", "strictness_permissive");
        ISnapshot snapshot =
                new SnapshotFactory().openSnapshot(dump, options, new VoidProgressListener());
        int count = snapshot.getSnapshotInfo().getNumberOfObjects();
        try (DataOutputStream out = new DataOutputStream(
                new BufferedOutputStream(new FileOutputStream(words[1]), 1 << 20))) {
            for (int id = 0; id < count; id++) {
                int above = snapshot.getImmediateDominatorId(id);
                out.writeLong(snapshot.mapIdToAddress(id));
                out.writeLong(above < 0 ? 0 : snapshot.mapIdToAddress(above));
                out.writeLong(snapshot.getHeapSize(id));
                out.writeLong(snapshot.getRetainedHeapSize(id));
            }
        }
        System.out.println("objects " + count);
        System.out.println("roots " + snapshot.getSnapshotInfo().getNumberOfGCRoots());
    }
}
