package programs;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;

/** Does what its identity hash codes, the order of {@code Set.of} and its seeds make it do. */
public final class Chance {
    private long result;

    private Chance() {}

    public static long run() {
        Chance chance = new Chance();
        for (String word : Set.of("ever", "so", "many", "words", "in", "an", "order", "of", "chance")) {
            chance.times(word.length() * (int) (chance.result % 5 + 2));
        }
        for (Map.Entry<String, Integer> entry : Map.of("one", 1, "two", 2, "three", 3).entrySet()) {
            chance.times(entry.getValue() + (int) (chance.result % 7));
        }
        Set<Thing> things = new HashSet<>();
        Map<Thing, Integer> byIdentity = new IdentityHashMap<>();
        for (int i = 0; i < 100; i++) {
            Thing thing = new Thing(i);
            things.add(thing);
            byIdentity.put(thing, i);
        }
        for (Thing thing : things) {
            chance.times(thing.number % 11 + (int) (chance.result % 3));
        }
        for (int number : byIdentity.values()) {
            chance.times(number % 13 + (int) (chance.result % 3));
        }
        List<Integer> numbers = new ArrayList<>(new HashMap<>(Map.of(1, 2, 3, 4)).keySet());
        Collections.shuffle(numbers);
        chance.times(numbers.get(0) + new Random().nextInt(50) + (int) (Math.random() * 50));
        chance.times(ThreadLocalRandom.current().nextInt(100) + new SplittableRandom().nextInt(99));
        return chance.result;
    }

    private void times(int n) {
        for (int i = 0; i < n; i++) {
            result = result * 31 + i & 0xffff;
        }
    }

    static final class Thing {
        final int number;

        Thing(int number) {
            this.number = number;
        }
    }
}
