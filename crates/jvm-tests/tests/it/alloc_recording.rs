//! Recordings of allocation as a user makes them: launched and attached, alone and beside samples
//! of threads, steered from a second terminal, and of a program that allocates nothing.

use crate::common::assert_no_trace;
use crate::recording::Recorded;
use std::path::Path;
use tare_jvm_tests::{
    Demo, Jdk, Outcome, Running, Scratch, Tare, classes_in, control_socket, on_each_jdk, wait_until,
};
use tare_profile::facts::{Bytes, keys};
use tare_profile::{EventTable, FieldValue, MethodKind, ValueKind};

/// Wastes a million arrays of 1016 bytes and keeps a hundred thousand objects of 48.
const KEEPER: &str = r#"
    import java.util.ArrayList;
    import java.util.List;

    public class Keeper {
        static final class Kept {
            long a, b, c, d;
        }

        static final List<Kept> KEPT = new ArrayList<>();
        static byte[] wasted;

        static void waste() {
            wasted = new byte[1000];
        }

        static void keep() {
            KEPT.add(new Kept());
        }

        public static void main(String[] args) throws Exception {
            if (args.length > 0) {
                Thread.sleep(Long.parseLong(args[0]));
                return;
            }
            for (int n = 1; n <= 1_000_000; n++) {
                waste();
                if (n % 10 == 0) {
                    keep();
                }
                if (n % 250_000 == 0) {
                    System.gc();
                }
            }
            // What the last collection has left is told a moment later.
            Thread.sleep(1000);
        }
    }
"#;

const KEPT: f64 = 100_000.0 * 48.0;

fn keeper(jdk: &Jdk, flags: &[&str], program: &[&str], file: &Path) -> Outcome {
    let scratch = Scratch::new();
    classes_in(scratch.path(), "Keeper", KEEPER);
    let (file, java) = (file.display().to_string(), jdk.java().display().to_string());
    let classes = scratch.path().display().to_string();
    let head = [&["record", "--alloc", "-o", &file], flags].concat();
    let java = ["--", &java, "-XX:+UseSerialGC", "-cp", &classes, "Keeper"];
    Tare::this().run(&[&head[..], &java, program].concat())
}

/// The sum of a series by the class of the object, in stacks through a method.
fn of_class(recorded: &Recorded, kind: &ValueKind, class: &str, method: &str) -> f64 {
    let profile = &recorded.profile;
    let of_kind = profile.all_series().find(|(_, series)| series.info().kind == *kind);
    let Some((_, series)) = of_kind else { return 0.0 };
    let is_there = |context| {
        let mut names = profile.contexts.frames(context).map(|frame| {
            let method = profile.frames.get(frame).method;
            (profile.methods.get(method).kind, profile.method_name(method))
        });
        names.next() == Some((MethodKind::Class, class.to_owned()))
            && names.any(|(_, name)| name == method)
    };
    let rows = series.rows().filter(|row| is_there(row.context));
    rows.map(|row| row.value as f64).sum()
}

fn events<'a>(recorded: &'a Recorded, name: &str) -> Option<&'a EventTable> {
    let mut tables = recorded.profile.all_events();
    tables.find(|(_, table)| table.kind().name == name).map(|(_, table)| table)
}

/// The oldest survivor, in collections.
fn oldest(survivors: &EventTable) -> i64 {
    let field = survivors.field_named("collections").expect("ages");
    let ages = (0..survivors.len()).filter_map(|row| match survivors.field(row, field) {
        Some(FieldValue::Integer(age)) => Some(age),
        _ => None,
    });
    ages.max().unwrap_or(0)
}

fn begin(target: &str, words: &[&str], file: &Path, engines: &[&str]) -> Running {
    let file = file.display().to_string();
    let all = [&["record", "--alloc", "-o", &file], words, &[target]].concat();
    let recording = Tare::this().start(&all);
    control_socket(target.parse().expect("a pid"));
    wait_until("allocation is recorded", || {
        Tare::this().status(target)["engines"] == serde_json::json!(engines)
    });
    recording
}

/// Gives a command; the recording may have begun in the JVM and not yet be ready for it.
fn command(words: &[&str]) -> String {
    let mut said = String::new();
    wait_until("the command is taken", || {
        let outcome = Tare::this().run(words);
        said = format!("{}{}", outcome.out, outcome.err);
        outcome.code == 0
    });
    said
}

on_each_jdk! {
    fn what_is_allocated_and_what_stays_is_told_by_class_and_stack(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let outcome = keeper(jdk, &["--interval-bytes", "16K"], &[], &file);
        assert!(outcome.ok().contains("allocated"), "{}", outcome.out);
        let recorded = Recorded::open(&file);
        let bytes = |kind, class, method| of_class(&recorded, &kind, class, method);
        let wasted = bytes(ValueKind::AllocatedBytes, "byte[]", "Keeper.waste");
        assert!((wasted / 1.016e9 - 1.0).abs() < 0.05, "{wasted} bytes wasted");
        // About 290 samples: a quarter is four standard deviations.
        let kept = bytes(ValueKind::LiveBytes, "Keeper$Kept", "Keeper.keep");
        assert!((kept / KEPT - 1.0).abs() < 0.25, "{kept} bytes kept");
        let alive = bytes(ValueKind::LiveBytes, "byte[]", "Keeper.waste");
        assert!(alive < 1e5, "{alive} bytes of what is wasted live");
        let survivors = events(&recorded, "survivor").expect("survivors");
        assert!((2..1000).contains(&oldest(survivors)), "{} collections", oldest(survivors));
        assert_eq!(recorded.fact(keys::ALLOCATION_INTERVAL), Some(Bytes(16 << 10)));
        assert!(recorded.fact(keys::ALLOCATION_SAMPLES) > Some(10_000));
        assert!(recorded.fact(keys::COLLECTIONS) >= Some(4));
        assert!(recorded.fact(keys::LIVE_TABLE_BYTES) > Some(Bytes(0)));
    }

    fn without_what_lives_and_only_of_methods_that_fit(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        keeper(jdk, &["--no-live", "--include", "Keeper", "--interval-bytes", "64K"], &[], &file).ok();
        let recorded = Recorded::open(&file);
        assert!(of_class(&recorded, &ValueKind::AllocatedBytes, "byte[]", "Keeper.waste") > 5e8);
        let kinds = recorded.profile.all_series().map(|(_, series)| series.info().kind.clone());
        assert!(!kinds.into_iter().any(|kind| kind == ValueKind::LiveBytes));
        assert!(events(&recorded, "survivor").is_none());
        assert_eq!(recorded.fact(keys::LIVE_TRACKED), None);
        let nobody = keeper(jdk, &["--include", "com.acme.**"], &[], &file);
        nobody.fails(1, &["nothing was recorded", "--include"]);
    }

    fn a_program_that_allocates_nothing_is_told_so(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        // A thread's first sample may have been drawn before, from the JVM's own interval.
        let mut tries = (0..20).map(|_| keeper(jdk, &["--interval-bytes", "1G"], &["500"], &file));
        let outcome = tries.find(|outcome| outcome.code == 1);
        let outcome = outcome.expect("a run without a sample");
        outcome.fails(1, &["nothing was recorded", "no allocation was sampled", "--interval-bytes"]);
    }

    fn beside_samples_and_steered_from_a_second_terminal(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let scratch = Scratch::new();
        let (file, dump) = (scratch.path().join("x.tare"), scratch.path().join("dump.tare"));
        let recording = begin(&name, &["--cpu"], &file, &["sampling", "alloc"]);
        let said = command(&["interval", &name, "64K"]);
        assert!(said.contains("64 KiB"), "{said}");
        let said = command(&["interval", &name, "2ms"]);
        assert!(said.contains("2 ms"), "{said}");
        assert!(Tare::this().run(&["status", &name]).ok().contains("every 64 KiB"));
        wait_until("something lives", || {
            command(&["dump", &name, "-o", &dump.display().to_string()]);
            let early = Recorded::open(&dump);
            events(&early, "survivor").is_some_and(|table| !table.is_empty())
        });
        let early = Recorded::open(&dump);
        let kinds: Vec<ValueKind> =
            early.profile.all_series().map(|(_, series)| series.info().kind.clone()).collect();
        for kind in [ValueKind::CpuTime, ValueKind::AllocatedBytes, ValueKind::LiveObjects] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
        let live = Tare::this().run(&["report", &name]);
        assert!(live.ok().contains("shop."), "{}", live.out);
        command(&["pause", &name]);
        assert_eq!(Tare::this().run(&["status", &name]).ok().matches(", paused").count(), 2);
        command(&["resume", &name]);
        command(&["stop", &name]);
        recording.wait().ok();
        let whole = Recorded::open(&file);
        assert!(events(&whole, "survivor").is_some());
        assert_eq!(whole.fact(keys::ALLOCATION_INTERVAL), Some(Bytes(64 << 10)));
        assert_no_trace(demo.target.pid());
        // Alone, and of the last moments; a time is no interval of it.
        let again = begin(&name, &["--keep", "2s"], &file, &["alloc"]);
        let time = Tare::this().run(&["interval", &name, "1ms"]);
        time.fails(1, &["allocation only"]);
        std::thread::sleep(std::time::Duration::from_secs(3));
        again.signal(rustix::process::Signal::INT);
        again.wait().ok();
        let kept = Recorded::open(&file);
        assert!(kept.fact(keys::ALLOCATION_SAMPLES) > Some(0));
        assert_no_trace(demo.target.pid());
    }

    fn a_jvm_that_is_killed_leaves_what_it_allocated(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let recording = begin(&name, &["--interval-bytes", "64K"], &file, &["alloc"]);
        wait_until("objects are sampled", || {
            Tare::this().run(&["report", &name]).out.contains("byte[] in shop.")
        });
        demo.target.signal(rustix::process::Signal::KILL);
        recording.wait().ok();
        let recorded = Recorded::open(&file);
        assert!(recorded.fact(keys::ALLOCATION_SAMPLES) > Some(0));
        assert!(events(&recorded, "survivor").is_some());
    }
}
