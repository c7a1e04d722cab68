package bench;

/** Requests to a server in the same JVM, one after the other, on one connection. */
final class Web implements Workload {
    private final int requests;
    private final WebClient client;

    Web(String[] args) throws Exception {
        requests = Integer.parseInt(args[0]);
        client = new WebClient(new WebServer().port());
    }

    @Override
    public long iterate() throws Exception {
        long result = 0;
        for (int i = 0; i < requests; i++) {
            result = result * 31 + client.ask(i);
        }
        return result;
    }
}
