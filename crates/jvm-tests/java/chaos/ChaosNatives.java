/** Calls from native code, on threads of the JVM and of others, with exceptions through native frames, and references. */
final class ChaosNatives implements Chaos.Work {
    private int calls;

    @Override
    public void round(long number) {
        calls = 0;
        for (int i = 0; i < 20; i++) {
            Natives.call(() -> calls++);
            try {
                Natives.call(() -> {
                    throw new IllegalStateException("through native code");
                });
                Chaos.wrong("an exception stays in native code");
            } catch (IllegalStateException e) {
                calls++;
            }
            boolean caught = Natives.callAndCatch(() -> {
                throw new IllegalStateException("ends in native code");
            });
            Chaos.expect("an exception that native code catches", 1, caught ? 1 : 0);
        }
        Natives.callOnNewThread(() -> Natives.call(() -> calls++));
        Natives.tidyReferences(this, 200);
        Chaos.expect("calls from native code", 41, calls);
    }
}
