package bench;

import java.io.Reader;
import java.io.StringReader;
import java.lang.reflect.Method;

/** Clojure: a script is compiled, and what it defines is called. */
final class Clojure implements Workload {
    private static final String SCRIPT =
            """
            (ns bench.script)
            (defn queens [n]
              (letfn [(ok? [row col placed]
                        (every? (fn [[r c]] (and (not= c col)
                                                 (not= (Math/abs (long (- c col))) (- row r)))) placed))
                      (place [row placed]
                        (if (= row n) 1
                          (reduce + (for [col (range n) :when (ok? row col placed)]
                                      (place (inc row) (conj placed [row col]))))))]
                (place 0 [])))
            (defn words [n]
              (->> (range n)
                   (map #(str "w" (mod (* % 7919) 1009)))
                   (group-by #(count (distinct %)))
                   (map (fn [[k v]] [k (frequencies v)]))
                   (into (sorted-map))
                   (reduce (fn [sum [k v]] (+ sum (* k (reduce + (vals v))))) 0)))
            (defn all [n] (+ (queens n) (words (* n 2500))))
            (all SIZE)
            """;

    private final Method load;
    private final String script;

    Clojure(String[] args) throws ReflectiveOperationException {
        Class.forName("clojure.lang.RT");
        load = Class.forName("clojure.lang.Compiler").getMethod("load", Reader.class);
        script = SCRIPT.replace("SIZE", args[0]);
    }

    @Override
    public long iterate() throws ReflectiveOperationException {
        return ((Number) load.invoke(null, new StringReader(script))).longValue();
    }
}
