//! `tare check`: a baseline in text, growth that is found, and programs that fail by themselves.

use std::fs;
use std::path::Path;
use tare_jvm_tests::{Outcome, Scratch, Tare, can, classes_in, jdk, on_each_jdk};

/// A program with two things to measure; how much each does is in its source.
fn program(directory: &Path, rounds: u32, objects: u32) {
    let source = format!(
        "public class Job {{
            static int sum;
            static int hot(int n) {{ int s = 0; for (int i = 0; i < n; i++) {{ s += i ^ n; }} return s; }}
            static int cold(int n) {{ int s = 1; for (int i = 0; i < n; i++) {{ s *= i | 3; }} return s; }}
            static void make(int n) {{ for (int i = 0; i < n; i++) {{ sum += new int[i % 5].length; }} }}
            public static void first() {{ sum += hot({rounds}) + cold(9000); }}
            public static void second() {{ make({objects}); }}
            public static void main(String[] words) {{
                first();
                second();
                System.out.println(\"said \" + sum);
                if (words.length > 0) {{ System.exit(7); }}
            }}
        }}"
    );
    classes_in(directory, "Job", &source);
}

fn check(scratch: &Scratch, java: &str, options: &[&str], words: &[&str]) -> Outcome {
    let (baseline, classes) = (scratch.join("perf.tare"), scratch.path());
    let (baseline, classes) = (baseline.display().to_string(), classes.display().to_string());
    let mut all = vec!["check", "--baseline", &baseline];
    all.extend(options);
    all.extend(["--", java, "-cp", &classes, "Job"]);
    all.extend(words);
    Tare::this().run(&all)
}

on_each_jdk! {
    fn growth_is_found(jdk) {
        let java = jdk.java().display().to_string();
        let scratch = Scratch::new();
        let roots = ["--root", "Job.first", "--root", "Job.second"];
        let check = |options: &[&str]| check(&scratch, &java, &[&roots, options].concat(), &[]);
        program(scratch.path(), 1000, 200);
        check(&[]).fails(1, &["no baseline", "--update"]);
        let said = check(&["--update"]);
        assert!(said.ok().contains("2 cases"), "{}", said.describe());
        let text = fs::read_to_string(scratch.join("perf.tare")).expect("a baseline");
        assert!(text.contains("case Job.first  calls 1  bytecodes "), "{text}");
        assert!(text.contains("method Job.hot  bytecodes 11009  calls 1"), "{text}");
        assert!(text.contains("case Job.second  calls 1  "), "{text}");
        assert!(text.contains("  objects 200  bytes 5"), "{text}");
        // The same again, and the same file again.
        assert!(check(&[]).ok().contains("ok: 2 cases"));
        check(&["--update"]).ok();
        assert_eq!(fs::read_to_string(scratch.join("perf.tare")).expect("a baseline"), text);

        // A method grows by three per cent, within a case that hardly does.
        program(scratch.path(), 1030, 200);
        let found = check(&[]);
        assert_eq!(found.code, 3, "{}", found.describe());
        assert!(found.out.contains("Job.first"), "{}", found.describe());
        assert!(found.out.contains("Job.hot itself, bytecodes 11,009 → 11,339  +3.0 %"), "{}", found.out);
        assert!(!found.out.contains("Job.second"), "{}", found.describe());
        check(&["--tolerance", "5%"]).ok();

        // More objects, and nothing else to speak of.
        program(scratch.path(), 1000, 250);
        let found = check(&[]);
        assert_eq!(found.code, 3, "{}", found.describe());
        assert!(found.out.contains("objects 200 → 250  +25.0 %"), "{}", found.describe());
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    let java = jdk().java().display().to_string();
    let scratch = Scratch::new();
    program(scratch.path(), 100, 10);
    check(&scratch, &java, &["--update"], &[]).ok();
    // The program's own failure is the answer then.
    let failed = check(&scratch, &java, &[], &["fail"]);
    failed.fails(7, &["nothing was compared"]);
    // A case that did not run.
    let file = scratch.join("perf.tare");
    let text = fs::read_to_string(&file).expect("a baseline");
    fs::write(&file, format!("{text}case Job.gone  calls 1  bytecodes 5\n")).expect("ours");
    let missing = check(&scratch, &java, &[], &[]);
    assert_eq!(missing.code, 3, "{}", missing.describe());
    assert!(missing.out.contains("Job.gone"), "{}", missing.describe());
    let partial = check(&scratch, &java, &["--partial"], &[]);
    assert!(partial.ok().contains("because 1 did not run"), "{}", partial.describe());
    // A conflict that git left, and a program of which nothing is counted.
    fs::write(&file, "<<<<<<< HEAD\n").expect("ours");
    check(&scratch, &java, &[], &[]).fails(1, &["line 1"]);
    fs::remove_file(&file).expect("ours");
    check(&scratch, &java, &["--update", "--include", "com.nobody.**"], &[])
        .fails(1, &["nothing of the program was counted"]);
    assert!(!file.exists());
}

on_each_jdk! {
    /// Which thread runs a piece of a parallel stream is chance, and into how many pieces it is
    /// parted depends on the processors; neither is a change.
    fn parallel_streams_are_the_same_everywhere(jdk) {
        let java = jdk.java().display().to_string();
        let scratch = Scratch::new();
        let source = "import java.util.*;
            import java.util.stream.*;
            public class Job {
                static long work(long n) { long s = 0; for (int i = 0; i < 20; i++) { s += n * i % 7; } return s; }
                static int add(int a, int b) { return a + b; }
                static long sum() { return LongStream.range(0, 50_000).parallel().map(n -> work(n)).sum(); }
                public static void main(String[] words) {
                    List<Integer> all = IntStream.range(0, 20_000).boxed().collect(Collectors.toList());
                    long sum = sum() + all.parallelStream().reduce(0, (a, b) -> a + b, Job::add);
                    System.out.println(sum);
                }
            }";
        classes_in(scratch.path(), "Job", source);
        let (baseline, classes) = (scratch.join("perf.tare"), scratch.path());
        let (baseline, classes) = (baseline.display().to_string(), classes.display().to_string());
        let taskset = ["taskset", "-c", "0"];
        let few = can("fewer processors", &[&taskset[..], &["true"]].concat());
        for roots in [&[][..], &["--root", "Job.sum"]] {
            let check = |options: &[&str], few: bool| {
                let tare = if few { Tare::this().through(&taskset) } else { Tare::this() };
                let mut words = vec!["check", "--baseline", &baseline];
                words.extend([roots, options, &["--", &java, "-cp", &classes, "Job"]].concat());
                tare.run(&words)
            };
            check(&["--update"], false).ok();
            let text = fs::read_to_string(&baseline).expect("a baseline");
            let left_out = check(&[], false).err.contains("left out");
            assert_eq!(left_out, !roots.is_empty());
            for round in 0..4 {
                check(&["--update"], few && round % 2 == 0).ok();
                assert_eq!(fs::read_to_string(&baseline).expect("a baseline"), text);
            }
            if roots.is_empty() {
                assert!(text.contains("method Job.work  bytecodes "), "{text}");
                assert!(text.contains("case Job.add  calls 15  "), "{text}");
            }
        }
    }
}
