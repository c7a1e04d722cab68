//! Exact recordings as a user makes them, and what is in them; for the tests that compare.

use std::collections::BTreeMap;
use std::path::Path;
use tare_jvm_tests::{Jdk, Running, Scratch, Tare, thread_names, wait_until};
use tare_profile::facts::{FactType, Key};
use tare_profile::{MethodKind, Profile, Row, Series, ValueKind};
use tare_recording::{LoadOptions, Recording, Warning};

/// Invocations by `CLASS.METHOD`, overloads and threads added up.
pub type Counts = BTreeMap<String, i64>;

/// A recording that has been read back.
pub struct Recorded {
    pub profile: Profile,
}

impl Recorded {
    #[track_caller]
    pub fn open(path: &Path) -> Self {
        let mut recording = Recording::open(path).expect("a recording");
        let loaded = recording.load(&LoadOptions::default()).expect("a whole recording");
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        Recorded { profile: loaded.profile }
    }

    /// A recording that has no end, or not yet.
    #[track_caller]
    pub fn so_far(path: &Path) -> Self {
        let mut recording = Recording::open(path).expect("a recording");
        let loaded = recording.load(&LoadOptions::default()).expect("a readable recording");
        assert_eq!(loaded.warnings, [Warning::NoEnd]);
        Recorded { profile: loaded.profile }
    }

    /// How much of a run is in a file that may not be there yet.
    pub fn seconds(path: &Path) -> f64 {
        let loaded = Recording::open(path).and_then(|mut file| file.load(&LoadOptions::default()));
        let sampled =
            |profile: &Profile| profile.all_series().any(|(_, series)| !series.is_empty());
        match loaded {
            Ok(loaded) if sampled(&loaded.profile) => loaded.profile.run.duration as f64 / 1e9,
            _ => 0.0,
        }
    }

    /// The sum of its wall-clock time, and of how many rows.
    pub fn wall_time(&self) -> (f64, usize) {
        let mut all = self.profile.all_series().map(|(_, series)| series);
        let series = all.find(|series| series.info().kind == ValueKind::WallTime);
        series.map_or((0.0, 0), |series| (series.total() as f64, series.len()))
    }

    pub fn fact<T: FactType>(&self, key: Key<T>) -> Option<T> {
        self.profile.run.facts.get(key)
    }

    /// What is missing, as text: `refused 1 java.lang.Object: every constructor …`.
    pub fn losses(&self) -> Vec<String> {
        let losses = self.profile.run.losses.iter();
        losses.map(|l| format!("{} {} {}: {}", l.kind.name(), l.count, l.name, l.reason)).collect()
    }

    /// The invocations, also of the nodes that stand for the rest: `.[no room]`.
    pub fn counts(&self) -> Counts {
        let profile = &self.profile;
        let calls =
            profile.all_series().find(|(_, series)| series.info().kind == ValueKind::Invocations);
        let mut counts = Counts::new();
        for row in calls.into_iter().flat_map(|(_, series)| series.rows()) {
            let frame = profile.contexts.frame(row.context).expect("a frame");
            let method = profile.method_of(frame);
            let text = |id| profile.strings.get(id);
            let name = format!("{}.{}", text(method.class), text(method.name));
            *counts.entry(name).or_default() += row.value;
        }
        counts
    }

    /// The invocations of one context of one thread, by `CLASS.METHOD` from the outside in.
    pub fn at(&self, thread: &str, path: &[&str]) -> i64 {
        let profile = &self.profile;
        let text = |id| profile.strings.get(id);
        let name = |frame| {
            let method = profile.method_of(frame);
            format!("{}.{}", text(method.class), text(method.name))
        };
        let fits = |row: &Row| {
            let frames = profile.contexts.frames(row.context).map(name);
            text(profile.threads.get(row.thread).name) == thread
                && frames.eq(path.iter().rev().copied())
        };
        self.invocations().rows().filter(fits).map(|row| row.value).sum()
    }

    fn invocations(&self) -> &Series {
        let mut all = self.profile.all_series().map(|(_, series)| series);
        all.find(|series| series.info().kind == ValueKind::Invocations).expect("invocations")
    }

    /// The invocations of a recording that lacks nothing but first calls below a root, which a busy
    /// machine may not find in time.
    #[track_caller]
    pub fn all_counts(&self) -> Counts {
        let mut losses = self.losses();
        losses.retain(|loss| !loss.contains(" first calls "));
        assert!(losses.is_empty(), "nothing should be missing: {losses:?}");
        let special = self.profile.methods.iter().find(|(_, m)| m.kind != MethodKind::Java);
        assert!(special.is_none(), "nothing should be folded: {:?}", self.counts());
        self.counts()
    }
}

/// The invocations of a recording that must lack nothing.
#[track_caller]
pub fn recorded(path: &Path) -> Counts {
    Recorded::open(path).all_counts()
}

/// What a program says: the last of its lines `count CLASS.METHOD N` for each method.
pub fn counted(text: &str) -> Counts {
    let line = |line: &str| {
        let mut words = line.strip_prefix("count ")?.rsplitn(2, ' ');
        let number = words.next()?.parse().ok()?;
        Some((words.next()?.to_owned(), number))
    };
    text.lines().filter_map(line).collect()
}

/// The words of `tare record --exact` into a file.
pub fn record(words: &[&str], file: &Path) -> Vec<String> {
    let mut all: Vec<String> = ["record", "--exact", "-o"].map(str::to_owned).into();
    all.push(file.display().to_string());
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all
}

/// The words of `-- java` with a class path.
pub fn java(jdk: &Jdk, classes: &Path, words: &[&str]) -> Vec<String> {
    let mut all = vec!["--".to_owned(), jdk.java().display().to_string(), "-cp".to_owned()];
    all.push(classes.display().to_string());
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all
}

/// Launches a program under `tare record` and gives back its output and the recording, which must
/// lack nothing.
#[track_caller]
pub fn launched(jdk: &Jdk, options: &[&str], classes: &Path, program: &[&str]) -> (String, Counts) {
    let scratch = Scratch::new();
    let file = scratch.path().join("x.tare");
    let mut words = record(options, &file);
    words.extend(java(jdk, classes, program));
    let outcome = Tare::this().run(&words);
    (outcome.ok().to_owned(), recorded(&file))
}

/// Waits until everything is woven. While it is being woven the agent answers nobody. It is not
/// asked before it is there: a question would bring it, and it would stay when the recording ends.
pub fn wait_until_on(target: &str) {
    wait_until("the recording is on", || is_on(target));
}

fn is_on(target: &str) -> bool {
    let pid: u32 = target.parse().expect("a pid");
    if !thread_names(pid).iter().any(|name| name.starts_with("tare")) {
        return false;
    }
    let status = Tare::this().run(&["status", target, "--json"]).json();
    status["engines"] == serde_json::json!(["exact", "pauses"])
}

/// Begins a recording of a running JVM and waits until it is on.
pub fn begin(target: &str, options: &[&str], file: &Path) -> Running {
    let mut words = options.to_vec();
    words.push(target);
    let mut recording = Tare::this().start(&record(&words, file));
    // One that has ended says why, at once.
    let mut is_over = false;
    wait_until("the recording is on", || {
        is_over = recording.has_ended();
        // The agent is ready a moment before the tool has heard of it, and begins its file.
        is_over || (is_on(target) && file.exists())
    });
    assert!(!is_over, "no recording began: {}", recording.wait().describe());
    recording
}

/// Ends a recording as Ctrl-C does.
#[track_caller]
pub fn end(recording: Running) {
    recording.signal(rustix::process::Signal::INT);
    recording.wait().ok();
}

/// Ends a recording that has nothing, for this reason.
#[track_caller]
pub fn end_with_nothing(recording: Running, why: &str) {
    recording.signal(rustix::process::Signal::INT);
    recording.wait().fails(1, &["nothing was recorded", why]);
}
