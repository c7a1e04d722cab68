/** Processes of its own: what they get of ours must do no harm, and their status comes back. */
final class ChaosStarts implements Chaos.Work {
    @Override
    public void round(long number) throws Exception {
        Process process = new ProcessBuilder("sh", "-c", "kill -0 $$; echo text; exit 7").start();
        byte[] said = process.getInputStream().readAllBytes();
        Chaos.expect("a child's words", 5, said.length);
        Chaos.expect("a child's status", 7, process.waitFor());
        Thread.sleep(100);
    }
}
