//! Agents written in Java: the two examples do what they say, and whatever an agent does, the
//! program and its profile are as without it.

use crate::recording::Recorded;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, agent_jar, classes_in, on_each_jdk};
use tare_profile::ValueKind;

/// Works until an agent has said or set something, and a little longer. Each call of `leaf` has six
/// bytecodes.
const BUSY: &str = r#"
import java.io.PrintStream;
public class Busy {
    static volatile boolean told;
    static int leaf(int x) { return x * 31 + 7; }
    static int work(int n) { int x = 0; for (int i = 0; i < n; i++) x = leaf(x); return x; }
    static boolean isThere() {
        return Thread.getAllStackTraces().keySet().stream().anyMatch(t -> t.getName().equals("tare agent"));
    }
    public static void main(String[] args) throws Exception {
        System.setErr(new PrintStream(System.err) {
            @Override public void print(Object text) { super.print(text); told = true; }
        });
        long end = System.nanoTime() + 240_000_000_000L;
        int x = 0;
        System.out.println("ready");
        while (!told && System.getProperty("told") == null && System.nanoTime() < end) x += work(1000);
        x += work(100000);
        while (args.length > 0 && isThere() && System.nanoTime() < end) Thread.sleep(5);
        System.out.println("done " + x);
    }
}"#;

fn agent(name: &str, process: &str) -> String {
    format!(
        "import tare.api.*; public class {name} implements ExactAgent {{
             public long register(Context root) {{ return 1; }}
             public long process(Context context) {{ System.setProperty(\"told\", \"\"); {process} }}
         }}"
    )
}

/// What was said, and what was recorded.
fn run(jdk: &Jdk, jar: &std::path::Path, options: &[&str], program: &[&str]) -> (String, Recorded) {
    let scratch = Scratch::new();
    classes_in(scratch.path(), "Busy", BUSY);
    let file = scratch.path().join("x.tare");
    let (java, classes) = (jdk.java().display().to_string(), scratch.path().display().to_string());
    let mut words =
        vec!["record", "--bytecodes", "--agent-jar", jar.to_str().expect("a plain path")];
    words.extend(options);
    words.extend(["-o", file.to_str().expect("a plain path"), "--", &java, "-cp", &classes]);
    words.extend(program);
    let outcome = Tare::this().run(&words);
    assert!(outcome.ok().contains("done "), "the program ends as ever");
    (outcome.err.clone(), Recorded::open(&file))
}

/// Calls and bytecodes of `Busy.leaf`.
fn leaf(recorded: &Recorded) -> (i64, i64) {
    let profile = &recorded.profile;
    let sum = |kind: ValueKind| {
        let series = profile.all_series().find(|(_, series)| series.info().kind == kind);
        let rows = series.into_iter().flat_map(|(_, series)| series.rows());
        rows.filter(|row| {
            let frame = profile.contexts.frame(row.context).expect("a frame");
            profile.strings.get(profile.method_of(frame).name) == "leaf"
        })
        .map(|row| row.value)
        .sum()
    };
    (sum(ValueKind::Invocations), sum(ValueKind::Bytecodes))
}

/// Runs so many times some ten thousand bytecodes, as many on another thread, and ends as it is
/// told; or runs on until its input ends.
const WORK: &str = r#"
public class Work {
    static int leaf(int x) { return x * 31 + 7; }
    static int work(int n) { int x = 0; for (int i = 0; i < n; i++) x = leaf(x); return x; }
    static void works(int rounds) { for (int i = 0; i < rounds; i++) work(500); }
    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        if (args[0].equals("on")) {
            Thread worker = new Thread(() -> { while (true) works(10); });
            worker.setDaemon(true);
            worker.start();
            System.in.read();
            return;
        }
        int rounds = Integer.parseInt(args[1]);
        Thread other = new Thread(() -> works(rounds), "other");
        other.start();
        works(rounds);
        other.join();
        System.out.println("done ");
        System.out.flush();
        if (args[0].equals("exit")) System.exit(0);
        if (args[0].equals("halt")) Runtime.getRuntime().halt(0);
    }
}"#;

/// Counts what it is told of, and says at its end how much that was.
fn counter(loading: &str, process: &str) -> String {
    format!(
        "import tare.api.*; public class Counter implements SamplingAgent {{
             long told;
             public Counter() throws Exception {{ {loading} }}
             static void sleep(int ms) {{
                 try {{ Thread.sleep(ms); }} catch (InterruptedException e) {{ }}
             }}
             void say() {{ System.err.print(\"\\nwas told of \" + told + \"\\n\"); }}
             public long register(String thread) {{ return 0; }}
             public long process(Method[] stack, int depth) {{
                 if (depth > 0) told++;
                 {process}
                 return 0;
             }}
             public void end() {{ say(); }}
         }}"
    )
}

fn counted(jdk: &Jdk, loading: &str, process: &str, program: &[&str]) -> (String, Recorded) {
    counted_every(jdk, "2500", loading, process, program)
}

/// What was said, and what was recorded of `Work`.
fn counted_every(
    jdk: &Jdk,
    every: &str,
    loading: &str,
    process: &str,
    program: &[&str],
) -> (String, Recorded) {
    let scratch = Scratch::new();
    let jar = agent_jar(&scratch, "Counter", Some(&counter(loading, process)));
    classes_in(scratch.path(), "Work", WORK);
    let file = scratch.path().join("x.tare");
    let (java, classes) = (jdk.java().display().to_string(), scratch.path().display().to_string());
    let (file_name, jar) = (file.display().to_string(), jar.display().to_string());
    let mut words = vec!["record", "--bytecodes", "--every", every, "--agent-jar", &jar];
    words.extend(["-o", &file_name, "--", &java, "-cp", &classes, "Work"]);
    words.extend(program);
    let outcome = Tare::this().run(&words);
    assert!(outcome.ok().contains("done "), "the program ends as ever");
    (outcome.err.clone(), Recorded::open(&file))
}

/// What the agents said at their ends, one after the other.
fn all_told(said: &str) -> Vec<i64> {
    let numbers = said.lines().filter_map(|line| line.strip_prefix("was told of "));
    numbers.map(|number| number.trim().parse().expect("a number")).collect()
}

/// What the agent said, once.
#[track_caller]
fn told(said: &str) -> i64 {
    let all = all_told(said);
    assert_eq!(all.len(), 1, "told of the end once: {said}");
    all[0]
}

fn samples(recorded: &Recorded) -> i64 {
    let all = recorded.profile.all_series();
    let samples = all.filter(|(_, series)| series.info().kind == ValueKind::Samples);
    samples.flat_map(|(_, series)| series.rows()).map(|row| row.value).sum()
}

/// What the agent was not told of, as the recording says.
fn missed(recorded: &Recorded) -> i64 {
    let losses = recorded.profile.run.losses.iter();
    let missed = losses.filter(|loss| loss.name == "contexts for the agent");
    missed.map(|loss| i64::try_from(loss.count).expect("some")).sum()
}

on_each_jdk! {
    fn the_budget_guard(jdk) {
        let scratch = Scratch::new();
        let jar = agent_jar(&scratch, "tare.examples.BudgetGuard", None);
        let (said, recorded) = run(jdk, &jar, &[], &["-Dtare.budget=3000000", "Busy"]);
        assert!(said.contains("main is over its budget of 3000000 bytecodes, in:\n"), "{said}");
        assert!(said.contains("    Busy.main\n"), "{said}");
        let (calls, bytecodes) = leaf(&recorded);
        assert!(bytecodes > 1_000_000 && bytecodes == 6 * calls, "{calls} {bytecodes}");
    }

    /// The guard meets what is called from now on: `main` was under way before.
    fn loaded_into_a_running_jvm(jdk) {
        let scratch = Scratch::new();
        let jar = agent_jar(&scratch, "tare.examples.BudgetGuard", None);
        classes_in(scratch.path(), "Busy", BUSY);
        let target = Target::java(jdk)
            .vm("-Dtare.budget=3000000")
            .class_path(scratch.path())
            .main("Busy")
            .start();
        let (file, jar, name) = (scratch.join("x.tare"), jar.display().to_string(), target.name());
        let path = file.display().to_string();
        let words = ["record", "--bytecodes", "--agent-jar", &jar, "-o", &path, &name];
        let recording = Tare::this().start(&words);
        // What is said on standard error and on standard output arrives in any order.
        let (code, said) = target.wait();
        assert!(code == 0 && said.contains("done "), "the program ends as ever: {code}\n{said}");
        let told = "main is over its budget of 3000000 bytecodes, in:\n";
        assert_eq!(said.matches(told).count(), 1, "told of once: {said}");
        assert!(said.contains("    Busy.work"), "{said}");
        recording.wait().ok();
        let (calls, bytecodes) = leaf(&Recorded::open(&file));
        assert!(bytecodes > 1_000_000 && bytecodes == 6 * calls, "{calls} {bytecodes}");
    }

    fn the_top_of_contexts(jdk) {
        let scratch = Scratch::new();
        let jar = agent_jar(&scratch, "tare.examples.TopContexts", None);
        let options = ["--every", "20000"];
        let (said, _) = run(jdk, &jar, &options, &["-Dtare.top.samples=50", "Busy"]);
        assert!(said.contains("top contexts of 50 samples:\n"), "{said}");
        assert!(said.contains("Busy.main > Busy.work"), "{said}");
    }

    fn one_that_throws_is_given_up(jdk) {
        let scratch = Scratch::new();
        let thrower = agent("Thrower", "throw new IllegalStateException(\"no\");");
        let jar = agent_jar(&scratch, "Thrower", Some(&thrower));
        let (said, recorded) = run(jdk, &jar, &[], &["Busy", "wait"]);
        assert!(said.contains("given up: java.lang.IllegalStateException: no"), "{said}");
        let (calls, bytecodes) = leaf(&recorded);
        assert!(calls >= 100_000 && bytecodes == 6 * calls, "{calls} {bytecodes}");
    }

    fn one_that_never_returns_holds_up_nobody(jdk) {
        let scratch = Scratch::new();
        let hanging = agent("Hanging", "while (true) { }");
        let jar = agent_jar(&scratch, "Hanging", Some(&hanging));
        let (said, recorded) = run(jdk, &jar, &[], &["Busy"]);
        assert!(said.contains("the agent did not finish within"), "{said}");
        assert!(missed(&recorded) > 0, "{:?}", recorded.losses());
        let (calls, bytecodes) = leaf(&recorded);
        assert!(calls >= 100_000 && bytecodes == 6 * calls, "{calls} {bytecodes}");
    }

    /// However the program ends by itself: of the first and of the last, and of the end, once.
    fn a_quick_one_is_told_of_every_sample(jdk) {
        for how in ["last", "exit", "halt"] {
            let (said, recorded) = counted(jdk, "", "", &[how, "500"]);
            let (all, told) = (samples(&recorded), told(&said));
            assert!(all > 2000, "{how}: {all}");
            assert_eq!((told, missed(&recorded)), (all, 0), "{how}: {said}");
        }
    }

    /// One call of a method that is as long as many distances is as many samples.
    fn what_is_met_several_times_is_told_as_often(jdk) {
        let (said, recorded) = counted_every(jdk, "3", "", "", &["last", "1"]);
        let (all, told) = (samples(&recorded), told(&said));
        assert!(all > 1000, "{all}");
        assert_eq!(told + missed(&recorded), all, "{said}");
    }

    /// It cannot keep up, and would not be through for minutes: what it misses is counted, and it
    /// ends.
    fn what_a_slow_one_misses_is_counted(jdk) {
        let (said, recorded) = counted(jdk, "", "sleep(20);", &["exit", "5000"]);
        let (all, told, missed) = (samples(&recorded), told(&said), missed(&recorded));
        assert!(told > 0 && missed > 0, "{told} and {missed} of {all}: {said}");
        assert_eq!(told + missed, all, "{said}");
    }

    /// The program begins without it, and ends without it.
    fn one_that_is_never_ready_misses_all(jdk) {
        let (said, recorded) = counted(jdk, "while (true) sleep(1000);", "", &["last", "500"]);
        assert!(said.contains("the agent is not ready after"), "{said}");
        assert!(!said.contains("was told of"), "{said}");
        assert_eq!(missed(&recorded), samples(&recorded), "{said}");
    }

    /// An exception: it is not called again, not even for the end, and what comes is missed.
    fn what_comes_after_an_exception_is_missed(jdk) {
        let throws = "if (told == 100) { say(); throw new IllegalStateException(); }";
        let (said, recorded) = counted(jdk, "", throws, &["last", "500"]);
        assert_eq!(told(&said), 100, "{said}");
        assert_eq!(missed(&recorded), samples(&recorded) - 100, "{said}");
    }

    /// The recording is ended while the program goes on; and that, twice in one JVM.
    fn ended_by_tare_it_is_told_of_all_and_of_the_end(jdk) {
        let scratch = Scratch::new();
        let jar = agent_jar(&scratch, "Counter", Some(&counter("", "")));
        classes_in(scratch.path(), "Work", WORK);
        let target = Target::java(jdk).class_path(scratch.path()).main("Work").arg("on").start();
        let (jar, name) = (jar.display().to_string(), target.name());
        let mut all = Vec::new();
        for number in 0..2 {
            let file = scratch.join(&format!("{number}.tare"));
            let path = file.display().to_string();
            let mut words = vec!["record", "--bytecodes", "--every", "100000", "--agent-jar", &jar];
            words.extend(["-d", "1s", "-o", &path, &name]);
            Tare::this().run(&words).ok();
            let recorded = Recorded::open(&file);
            all.push(samples(&recorded) - missed(&recorded));
        }
        let said = target.finish();
        assert_eq!(all_told(&said), all, "{said}");
        assert!(all.iter().all(|told| *told > 0), "{all:?}");
    }

    /// An agent of the other kind.
    fn what_is_no_agent_is_named(jdk) {
        let scratch = Scratch::new();
        let jar = agent_jar(&scratch, "tare.examples.TopContexts", None);
        let (said, _) = run(jdk, &jar, &[], &["-Dtold=", "Busy", "wait"]);
        assert!(said.contains("is no ExactAgent, which is needed without --every"), "{said}");
    }
}
