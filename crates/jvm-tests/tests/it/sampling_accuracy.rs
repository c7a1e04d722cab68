//! Sampled shares against processor clocks: the program measures what each of its parts truly took,
//! so that neither a busy machine nor a slow one changes what is right.

use crate::recording::Recorded;
use std::collections::BTreeMap;
use tare_jvm_tests::{
    Jdk, Scratch, Tare, Target, classes, cpu_of_threads, on_each_jdk, wait_until,
};
use tare_profile::facts::{FactType, Key, keys};
use tare_profile::{MethodKind, Row};

/// Points by which a share may differ.
const POINTS: f64 = 3.0;
/// Milliseconds of processor time for a group of parts.
const BUDGET: &str = "900";
/// Of all samples, at most this share may have no whole stack.
const FAILED: f64 = 0.01;

/// Nanoseconds by name.
type Times = BTreeMap<String, f64>;

struct Run {
    truth: Times,
    /// By the program's own clock, and of that what threads of ours took meanwhile: the longer a
    /// busy machine takes over it, the more.
    process: f64,
    ours: f64,
    recorded: Recorded,
}

impl Run {
    /// Samples `Shares` while it works.
    fn make(jdk: &Jdk) -> Self {
        let mut target = Target::java(jdk)
            .vm("-Xmx256m")
            .vm("-XX:+UnlockDiagnosticVMOptions")
            .vm("-XX:+DebugNonSafepoints")
            .class_path(classes())
            .main("Shares")
            .arg(BUDGET)
            .start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let name = target.name();
        let file_name = file.display().to_string();
        let recording =
            Tare::this().start(&["record", "--interval", "1ms", "-o", &file_name, &name]);
        wait_until("sampling is on", || {
            Tare::this().status(&name)["engines"] == serde_json::json!(["sampling"])
        });
        target.tell("go");
        target.wait_for("done");
        let ours = cpu_of_threads(target.pid(), "tare-") as f64;
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();
        let text = target.text();
        let number = |line: &str, head: &str| -> Option<(String, f64)> {
            let (name, nanos) = line.strip_prefix(head)?.rsplit_once(' ').unwrap_or(("", line));
            Some((name.to_owned(), nanos.rsplit(' ').next()?.parse().ok()?))
        };
        let truth = text.lines().filter_map(|line| number(line, "cpu ")).collect();
        let process = text.lines().find_map(|line| number(line, "process ")).expect("a total").1;
        Run { truth, process, ours, recorded: Recorded::open(&file) }
    }

    fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let (_, series) = self.recorded.profile.all_series().next().expect("a series");
        series.rows()
    }

    /// What was sampled in each method of `Shares`, with all that it called, and in each thread.
    fn sampled(&self) -> (Times, Times) {
        let profile = &self.recorded.profile;
        let (mut methods, mut threads) = (Times::new(), Times::new());
        for row in self.rows() {
            let mut seen = Vec::new();
            for frame in profile.contexts.frames(row.context) {
                let method = profile.method_of(frame);
                let name = profile.strings.get(method.name);
                if profile.strings.get(method.class) == "Shares" && !seen.contains(&name) {
                    seen.push(name);
                    *methods.entry(name.to_owned()).or_default() += row.value as f64;
                }
            }
            *threads.entry(profile.thread_name(row.thread)).or_default() += row.value as f64;
        }
        (methods, threads)
    }

    fn fact<T: FactType>(&self, key: Key<T>) -> T {
        let found = self.recorded.fact(key);
        found
            .unwrap_or_else(|| panic!("no {} in {:?}", key.name(), self.recorded.profile.run.facts))
    }

    fn total(&self) -> f64 {
        self.rows().map(|row| row.value as f64).sum()
    }
}

/// Compares the shares of a group's parts; returns what is wrong.
fn compare(group: &str, truth: &Times, sampled: &Times) -> Vec<String> {
    let prefix = format!("{group}.");
    let parts: Vec<(&str, f64)> =
        truth.iter().filter_map(|(k, v)| Some((k.strip_prefix(&prefix)?, *v))).collect();
    assert!(!parts.is_empty(), "the program measured nothing of {group}");
    let true_sum: f64 = parts.iter().map(|(_, nanos)| nanos).sum();
    let of = |name: &str| sampled.get(name).copied().unwrap_or(0.0);
    let sum: f64 = parts.iter().map(|(name, _)| of(name)).sum();
    let mut wrong: Vec<String> = parts
        .iter()
        .filter_map(|(name, nanos)| {
            let (right, found) = (nanos / true_sum * 100.0, of(name) / sum * 100.0);
            // A share of nothing is not a number, and wrong.
            let bad = (right - found).abs() > POINTS || found.is_nan();
            bad.then(|| format!("{group}.{name}: {right:.1} %, sampled {found:.1} %"))
        })
        .collect();
    let ratio = sum / true_sum;
    if !(0.9..=1.1).contains(&ratio) {
        wrong.push(format!("{group}: {true_sum:.0} ns in all, sampled {sum:.0} ns"));
    }
    wrong
}

on_each_jdk! {
    /// One run of all groups: starting a JVM and compiling is most of the work.
    fn shares_and_totals_are_those_of_the_clocks(jdk) {
        let run = Run::make(jdk);
        let (methods, threads) = run.sampled();
        let mut wrong = compare("two", &run.truth, &methods);
        wrong.extend(compare("jdk", &run.truth, &methods));
        wrong.extend(compare("deep", &run.truth, &methods));
        wrong.extend(compare("thread", &run.truth, &threads));
        wrong.extend(compare("burst", &run.truth, &threads));

        let clock = run.fact(keys::PROCESS_CPU_TIME);
        let (clock, total) = (clock.as_nanos() as f64, run.total());
        if (total - clock).abs() > 0.05 * clock {
            wrong.push(format!("the process used {clock:.0} ns, sampled {total:.0} ns"));
        }
        let Run { process, ours, .. } = run;
        if clock < (process - ours) * 0.99 {
            wrong.push(format!(
                "the program's own clock says {process:.0} ns with {ours:.0} of ours, the run {clock:.0}"
            ));
        }
        let samples = run.fact(keys::SAMPLES) as f64;
        let losses = &run.recorded.profile.run.losses;
        let failed: u64 = losses.iter().map(|loss| loss.count).sum();
        if failed as f64 > samples * FAILED {
            wrong.push(format!("{failed} of {samples} samples failed: {:?}", run.recorded.losses()));
        }
        wrong.extend(deep_stacks(&run));
        let told = format!(
            "{} every {:?}, {:?} got, {samples} samples, {} overruns",
            run.fact(keys::ENGINE),
            run.fact(keys::INTERVAL),
            run.fact(keys::INTERVAL_GOT),
            run.fact(keys::OVERRUNS),
        );
        println!("{told}; {:?}", run.recorded.losses());
        assert!(wrong.is_empty(), "{told}\n{}", wrong.join("\n"));
    }
}

/// Stacks of the recursion are whole: as deep as it is, from its thread's first method.
fn deep_stacks(run: &Run) -> Vec<String> {
    let profile = &run.recorded.profile;
    let (mut whole, mut cut) = (0.0, 0.0);
    for row in run.rows().filter(|row| profile.thread_name(row.thread) == "deep") {
        let frames: Vec<_> = profile.contexts.frames(row.context).collect();
        let named = |name: &str| {
            let is = |frame: &&_| profile.strings.get(profile.method_of(**frame).name) == name;
            frames.iter().filter(is).count()
        };
        // On the way down and up there are fewer.
        if named("bottom") == 0 {
            continue;
        }
        let java =
            frames.iter().filter(|f| profile.method_of(**f).kind == MethodKind::Java).count();
        if named("descend") == 3000 && java > 3002 {
            whole += row.value as f64;
        } else {
            cut += row.value as f64;
        }
    }
    if whole == 0.0 || cut > whole * 0.01 {
        return vec![format!("stacks of 3,000 frames: {whole:.0} ns whole, {cut:.0} ns not")];
    }
    Vec::new()
}
