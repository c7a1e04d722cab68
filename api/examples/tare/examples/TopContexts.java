package tare.examples;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import tare.api.Method;
import tare.api.SamplingAgent;

/** Prints, every so many samples, the stacks that were met most often. */
public final class TopContexts implements SamplingAgent {
    private static final int PRINT_EVERY = Integer.getInteger("tare.top.samples", 1000);
    private static final int SHOWN = 5;

    private final Map<String, Integer> met = new HashMap<>();
    private int samples;

    @Override
    public long register(String thread) {
        return 0;
    }

    @Override
    public long process(Method[] stack, int depth) {
        StringBuilder key = new StringBuilder();
        for (int i = 0; i < depth; i++) {
            key.append(i == 0 ? "" : " > ").append(stack[i]);
        }
        met.merge(key.toString(), 1, Integer::sum);
        samples++;
        if (samples % PRINT_EVERY == 0) {
            print();
        }
        return 0;
    }

    private void print() {
        List<Map.Entry<String, Integer>> all = new ArrayList<>(met.entrySet());
        all.sort((a, b) -> b.getValue() - a.getValue());
        StringBuilder text = new StringBuilder("top contexts of " + samples + " samples:\n");
        for (Map.Entry<String, Integer> top : all.subList(0, Math.min(SHOWN, all.size()))) {
            text.append(String.format("%5.1f %%  %s%n", 100.0 * top.getValue() / samples, top.getKey()));
        }
        System.err.print(text);
    }
}
