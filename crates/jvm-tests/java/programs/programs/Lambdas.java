package programs;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;

/** What the JDK calls back: comparators, functions, iterators, methods that override its own. */
public final class Lambdas {
    private Lambdas() {}

    public static String run() {
        List<Thing> things = new ArrayList<>();
        for (int i = 0; i < 120; i++) {
            things.add(new Thing(i * 71 % 53, "name" + i % 17));
        }
        things.sort(Comparator.comparing(Thing::name).thenComparing(t -> -t.size));
        TreeMap<Thing, Integer> map = new TreeMap<>();
        for (Thing thing : things) {
            map.merge(thing, 1, Integer::sum);
        }
        Function<Integer, Integer> twice = n -> n * 2;
        int sum = map.values().stream().map(twice.andThen(n -> n + 1)).reduce(0, Lambdas::add);
        long distinct = things.stream().filter(t -> t.size % 3 != 0).distinct().count();
        return sum + " " + distinct + " "
            + things.stream().limit(5).map(Thing::toString).collect(Collectors.joining(","));
    }

    private static int add(int a, int b) {
        return a + b;
    }

    static final class Thing implements Comparable<Thing> {
        final int size;
        final String name;

        Thing(int size, String name) {
            this.size = size;
            this.name = name;
        }

        String name() {
            return name;
        }

        @Override
        public int compareTo(Thing other) {
            return size != other.size ? Integer.compare(size, other.size) : name.compareTo(other.name);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Thing t && t.size == size && t.name.equals(name);
        }

        @Override
        public int hashCode() {
            return size * 31 + name.hashCode();
        }

        @Override
        public String toString() {
            return name + "/" + size;
        }
    }
}
