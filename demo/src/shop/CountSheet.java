// Keeps the tallies of all threads, adds them up and prints the report: the truth about this run.
package shop;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;

public final class CountSheet {
    private final Set<Tally> open = new LinkedHashSet<>();
    private final Tally retired = new Tally();

    /** A fresh tally for one thread. */
    public synchronized Tally open() {
        Tally tally = new Tally();
        open.add(tally);
        return tally;
    }

    /** Takes back the tally of a thread that is done with it. */
    public synchronized void retire(Tally tally) {
        if (open.remove(tally)) {
            add(tally, retired);
        }
    }

    private synchronized Tally total() {
        Tally total = new Tally();
        add(retired, total);
        for (Tally tally : open) {
            add(tally, total);
        }
        return total;
    }

    /** The report. If some thread would not stop, no number is certain and all lines say so. */
    String report(String title, boolean exact) {
        Tally total = total();
        TreeMap<String, Long> lines = new TreeMap<>();
        for (Field field : counters()) {
            for (String words : field.getAnnotation(Prints.class).value()) {
                lines.put(words, get(field, total));
            }
        }
        List<String> report = new ArrayList<>();
        report.add("counts-begin " + title + " exact=" + (exact ? "yes" : "no"));
        lines.forEach((words, number) -> report.add((exact || words.startsWith("approx ") ? "" : "approx ")
                + words + " " + number));
        report.add("counts-end");
        return String.join(System.lineSeparator(), report);
    }

    private static void add(Tally from, Tally to) {
        for (Field field : counters()) {
            try {
                field.setLong(to, get(field, from) + get(field, to));
            } catch (IllegalAccessException impossible) {
                throw new AssertionError(impossible);
            }
        }
    }

    private static long get(Field field, Tally tally) {
        try {
            return field.getLong(tally);
        } catch (IllegalAccessException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** The fields of Tally, but not what a tool may have added to the class. */
    private static List<Field> counters() {
        List<Field> counters = new ArrayList<>();
        for (Field field : Tally.class.getDeclaredFields()) {
            if (field.isAnnotationPresent(Prints.class)) {
                counters.add(field);
            }
        }
        return counters;
    }
}
