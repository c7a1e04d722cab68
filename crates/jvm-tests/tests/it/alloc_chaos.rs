//! Allocation is recorded while threads come and go, classes are unloaded and memory is used up:
//! the program does its work, and nothing of ours keeps anything alive, then or afterwards.

use crate::allocation::{Session, allocated};
use crate::recording::Recorded;
use std::path::Path;
use tare_jvm_tests::{
    Globals, Jdk, Scratch, Tare, Target, classes, jni_globals, on_each_jdk, wait_until,
};

/// Of the recording, in bytes: small, so that thousands of objects are tracked.
const INTERVAL: &str = "16K";

/// What JNI keeps alive in the program.
fn globals(target: &mut Target, scratch: &Path, name: &str) -> Globals {
    let file = scratch.join(name);
    target.ask(&format!("dump {}", file.display()));
    let globals = jni_globals(&file);
    std::fs::remove_file(&file).expect("our own file");
    globals
}

/// Dumps tell references of the JVM itself as if they were JNI's. It makes one whenever it links
/// method handles, and its compilers make one for each exception that hot code throws: that code
/// throws the same object every time.
const OF_THE_JVM: [&str; 6] = [
    "java.lang.invoke.MethodType",
    "java.lang.NullPointerException",
    "java.lang.ArithmeticException",
    "java.lang.ArrayIndexOutOfBoundsException",
    "java.lang.ArrayStoreException",
    "java.lang.ClassCastException",
];

/// Ours are what is more than before.
fn more(before: &Globals, after: &Globals) -> Vec<String> {
    let others = after.iter().filter(|(name, _)| !OF_THE_JVM.contains(&name.as_str()));
    let more = others.filter_map(|(name, count)| {
        let known = before.get(name).copied().unwrap_or(0);
        (*count > known).then(|| format!("{name}: {count}, before {known}"))
    });
    more.collect()
}

fn start(jdk: &Jdk) -> Target {
    Target::java(jdk)
        .vm("-Xmx64m")
        .vm("-XX:+UseSerialGC")
        .class_path(classes())
        .main("AllocChaos")
        .start()
}

/// Records while all goes wrong. Names that begin in one of these ways may be left behind. What
/// `steady` has allocated, by the program's own count.
fn survive(jdk: &Jdk, may_stay: &[&str], begin: impl Fn(&Target) -> Session) -> f64 {
    let scratch = Scratch::new();
    let mut target = start(jdk);
    let name = target.name();
    // The JVM has references of its own for code that has run once, and for being attached to.
    target.ask("chaos 1");
    target.ask("loaders");
    globals(&mut target, scratch.path(), "first.hprof");
    Tare::this().status(&name);
    Tare::this().run(&["detach", &name]).ok();
    let before = globals(&mut target, scratch.path(), "before.hprof");
    assert!(!before.is_empty(), "the JVM itself has references");

    let mut session = begin(&target);
    let counted = target.ask("chaos 12");
    let tracked = session.status().entries_most;
    assert!(tracked > 200, "only {tracked} objects were tracked at once");
    wait_until("classes are unloaded while we record", || target.ask("loaders") == "loaders: 0");
    let during = globals(&mut target, scratch.path(), "during.hprof");
    let objects: Vec<String> = more(&before, &during)
        .into_iter()
        .filter(|name| name.contains("AllocChaos") || name.contains("primitive"))
        .collect();
    assert!(objects.is_empty(), "references of a recording keep alive: {objects:?}");
    session.stop();
    Tare::this().run(&["detach", &name]).ok();

    let after = globals(&mut target, scratch.path(), "after.hprof");
    let mut left = more(&before, &after);
    left.retain(|name| !may_stay.iter().any(|way| name.starts_with(way)));
    assert_eq!(left, Vec::<String>::new(), "left behind");
    target.ask("loaders");
    target.finish();
    let total = |text: &str| text.rsplit(' ').next().and_then(|n| n.parse::<f64>().ok());
    total(&counted).expect("a number")
}

on_each_jdk! {
    fn nothing_is_kept_alive_by_us(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let all = survive(jdk, &[], |target| Session::start(target, INTERVAL, &file));
        let recorded = Recorded::open(&file);
        let met = allocated(&recorded.profile, "AllocChaos");
        let met = met.get("steady byte[]").map_or(0.0, |amount| amount.bytes);
        // 12 × 60 × 4,000 objects of 256 bytes are met 45,000 times; some end by a lack of memory.
        assert!((met / all - 1.0).abs() < 0.05, "{all} bytes, sampled {met}");
    }

    /// The same where every object is watched: more of them than there may be, and of classes that
    /// are unloaded.
    fn nothing_is_kept_alive_that_woven_code_hands_over(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let classes = ["AllocChaos$*", "AllocChaos$Guest[]", "byte[]"];
        // The probe runtime and what it looks at: classes of the JVM's own loader, which stay.
        let of_runtime = ["class java.", "class jdk."];
        survive(jdk, &of_runtime, |target| Session::watch(target, &classes, &file));
        let losses = Recorded::open(&file).losses();
        let of_others = losses.iter().find(|loss| !loss.contains("live objects"));
        assert_eq!(of_others, None, "{losses:?}");
    }
}
