// A leak: notes in a ThreadLocal, which live as long as the worker thread does.
package shop.leak;

import java.util.ArrayList;
import java.util.List;
import shop.orders.Order;

public final class AuditTrail {
    private static final ThreadLocal<List<byte[]>> NOTES = ThreadLocal.withInitial(ArrayList::new);
    private static final int NOTE_BYTES = 256;

    private AuditTrail() {
    }

    public static void note(Order order) {
        order.tally.auditTrailNote++;
        NOTES.get().add(new byte[NOTE_BYTES]);
    }
}
