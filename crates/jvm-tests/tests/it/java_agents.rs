//! Agents written in Java: the two examples do what they say, and whatever an agent does, the program and
//! its profile are as without it.

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
        if (System.getProperty("stay") != null) Thread.sleep(10_000);
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
        // What was left out is asked for once a second.
        let (_, recorded) = run(jdk, &jar, &[], &["-Dstay=", "Busy"]);
        let losses = recorded.losses().join("\n");
        assert!(losses.contains("the agent was busy"), "{losses}");
        let (calls, bytecodes) = leaf(&recorded);
        assert!(calls >= 100_000 && bytecodes == 6 * calls, "{calls} {bytecodes}");
    }

    /// An agent of the other kind.
    fn what_is_no_agent_is_named(jdk) {
        let scratch = Scratch::new();
        let jar = agent_jar(&scratch, "tare.examples.TopContexts", None);
        let (said, _) = run(jdk, &jar, &[], &["-Dtold=", "Busy", "wait"]);
        assert!(said.contains("is no ExactAgent, which is needed without --every"), "{said}");
    }
}
