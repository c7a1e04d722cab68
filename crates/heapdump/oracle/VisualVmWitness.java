import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.util.Iterator;
import org.netbeans.lib.profiler.heap.Heap;
import org.netbeans.lib.profiler.heap.HeapFactory;
import org.netbeans.lib.profiler.heap.Instance;
import org.netbeans.lib.profiler.heap.JavaClass;

/**
 * What VisualVM's heap library says of a dump, in the form of {@link MatWitness}. It does not tell
 * dominators, so those are -1; it retains nothing by referents of references.
 */
final class VisualVmWitness {
    public static void main(String[] words) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(words[0]));
        long count = 0;
        try (DataOutputStream out = new DataOutputStream(
                new BufferedOutputStream(new FileOutputStream(words[1]), 1 << 20))) {
            for (Iterator<Instance> all = heap.getAllInstancesIterator(); all.hasNext();) {
                Instance instance = all.next();
                out.writeLong(instance.getInstanceId());
                out.writeLong(-1);
                out.writeLong(instance.getSize());
                out.writeLong(instance.getRetainedSize());
                count++;
            }
        }
        System.out.println("objects " + (count + heap.getAllClasses().size()));
        System.out.println("classes " + heap.getAllClasses().size());
        System.out.println("roots " + heap.getGCRoots().size());
    }
}
