package bench;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Objects, most of which die young and some of which live for a while. */
final class Garbage implements Workload {
    private final int rounds;

    Garbage(String[] args) {
        rounds = Integer.parseInt(args[0]);
    }

    @Override
    public long iterate() {
        Map<Integer, List<Point>> kept = new HashMap<>();
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            Point point = new Point(i, i ^ 0x55);
            sum += moved(point, 1).x + moved(point, 2).y;
            if (i % 64 == 0) {
                kept.computeIfAbsent(i / 64 % 512, n -> new ArrayList<>()).add(point);
            }
            if (i % 65_536 == 65_535) {
                kept.clear();
            }
        }
        return sum + kept.size();
    }

    private static Point moved(Point point, int by) {
        return new Point(point.x + by, point.y - by);
    }

    private record Point(long x, long y) {}
}
