//! Profiles made of chance (always the same chance), and how two are compared.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use tare_formats::{Format, Options};
use tare_profile::{
    ContextId, Event, EventKind, Execution, FieldValue, Frame, FrameId, LockFields, Method,
    MethodKind, Profile, Row, SeriesInfo, StringId, Thread, ThreadId, ThreadKind, TimeAxis,
    ValueKind, Wait,
};

/// A generator of numbers that need not be good, only repeatable.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const CLASSES: [&str; 6] = [
    "com.acme.Orders",
    "com.acme.Orders$Line",
    "Main",
    "java.util.HashMap",
    "größe.Ding",
    "a.B$$L/0x1f",
];
const NAMES: [&str; 6] = ["place", "<init>", "lambda$run$0", "größer", "copy-impl", "x"];
const DESCRIPTORS: [&str; 3] = ["()V", "(ILjava/lang/String;)V", "([B)[[J"];
const NATIVES: [&str; 4] = ["memcpy", "JVM_Sleep", "std::sort<int, a>", "do_syscall_64"];
const OBJECTS: [&str; 3] = ["byte[]", "java.lang.String", "com.acme.Orders[][]"];

fn frame(profile: &mut Profile, dice: &mut Dice) -> FrameId {
    let strings = &mut profile.strings;
    let (method, execution) = match dice.below(10) {
        0 => {
            let (name, module) = (strings.intern(dice.pick(&NATIVES)), strings.intern("libjvm.so"));
            let kind = MethodKind::Native;
            (Method { kind, name, module, ..Method::default() }, Execution::Native)
        }
        1 => {
            let name = strings.intern(dice.pick(&NATIVES));
            let kind = MethodKind::Kernel;
            (Method { kind, name, ..Method::default() }, Execution::Kernel)
        }
        2 => {
            let name = strings.intern("[unknown: no frame]");
            let kind = MethodKind::Special;
            (Method { kind, name, ..Method::default() }, Execution::Unknown)
        }
        _ => {
            let method = Method {
                kind: MethodKind::Java,
                class: strings.intern(dice.pick(&CLASSES)),
                name: strings.intern(dice.pick(&NAMES)),
                descriptor: strings.intern(dice.pick(&DESCRIPTORS)),
                file: strings.intern("Orders.java"),
                loader: strings.intern(dice.pick(&["", "app"])),
                module: strings.intern(dice.pick(&["", "java.base"])),
                line: None,
            };
            let ways = [
                Execution::Unknown,
                Execution::Interpreted,
                Execution::Compiled { tier: 0 },
                Execution::Compiled { tier: 1 },
                Execution::Inlined,
                Execution::Native,
            ];
            (method, dice.pick(&ways))
        }
    };
    let java = method.kind == MethodKind::Java;
    let method = profile.methods.intern(method);
    let line = (java && dice.below(3) > 0).then(|| dice.below(900) as u32 + 1);
    let bci = (java && dice.below(3) > 0).then(|| dice.below(60_000) as u16);
    profile.frames.intern(Frame { method, bci, line, execution })
}

fn threads(profile: &mut Profile, dice: &mut Dice) -> Vec<ThreadId> {
    let mut all = vec![ThreadId::UNKNOWN];
    for number in 1..=dice.below(4) as u64 {
        let name = profile.strings.intern(&format!("wörker {number}"));
        let kind = dice.pick(&[ThreadKind::Java, ThreadKind::Virtual, ThreadKind::Vm]);
        let java_id = (kind != ThreadKind::Vm).then_some(number + 20);
        let os_id = Some(number + 4000);
        all.push(profile.threads.push(Thread { kind, name, java_id, os_id, ..Thread::default() }));
    }
    all
}

/// A profile with a few series, of which each kind appears once.
pub fn profile(seed: u64) -> Profile {
    let mut dice = Dice::new(seed);
    let dice = &mut dice;
    let mut profile = Profile::new();
    profile.run.started = Some(1_700_000_000_000_000_000);
    profile.run.duration = 60_000_000_000;
    profile.run.tool = "tare test".to_owned();
    let frames: Vec<FrameId> = (0..dice.below(30) + 3).map(|_| frame(&mut profile, dice)).collect();
    let objects: Vec<FrameId> = OBJECTS
        .iter()
        .map(|name| {
            let class = profile.strings.intern(name);
            let kind = MethodKind::Class;
            let method = profile.methods.intern(Method { kind, class, ..Method::default() });
            profile.frames.intern(Frame::of(method))
        })
        .collect();
    let threads = threads(&mut profile, dice);
    let mut contexts = vec![ContextId::ROOT];
    for _ in 0..dice.below(150) + 5 {
        let parent = dice.pick(&contexts);
        contexts.push(profile.contexts.child(parent, dice.pick(&frames)));
    }
    let samples = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
    let infos = [
        samples.with_period(10_000_000, ValueKind::CpuTime),
        SeriesInfo::new("alloc", ValueKind::AllocatedBytes).with_time(TimeAxis::Exact),
        SeriesInfo::new("exact", ValueKind::Invocations),
        SeriesInfo::new("exact", ValueKind::WallTime),
    ];
    for info in infos {
        let id = profile.add_series(info);
        let (kind, time) = (profile.series(id).info().kind.clone(), profile.series(id).info().time);
        let limit = match kind {
            ValueKind::Samples => 5,
            ValueKind::Invocations => 1_000_000_000_000,
            _ => 1_000_000,
        };
        for _ in 0..dice.below(200) + 1 {
            let mut context = dice.pick(&contexts);
            if kind == ValueKind::AllocatedBytes {
                context = profile.contexts.child(context, dice.pick(&objects));
            }
            let at = if time == TimeAxis::Exact { dice.below(60_000_000_000) as u64 } else { 0 };
            let value = dice.below(limit) as i64 + 1;
            let row = Row::new(context, dice.pick(&threads), value).at(at);
            profile.series_mut(id).push(row);
        }
    }
    locks(&mut profile, dice, &contexts, &threads);
    tasks(&mut profile, dice, &contexts, &threads);
    profile
}

fn tasks(profile: &mut Profile, dice: &mut Dice, contexts: &[ContextId], threads: &[ThreadId]) {
    let table = profile.events_of(&EventKind::task());
    let names = ["com.acme.Order$Task", "java.util.concurrent.ForkJoinPool"];
    let [class, executor] = names.map(|name| FieldValue::Text(profile.strings.intern(name)));
    for _ in 0..dice.below(20) {
        let event = Event {
            time: dice.below(50_000_000_000) as u64,
            duration: dice.below(1_000_000) as u64 + 1,
            thread: dice.pick(threads),
            context: dice.pick(contexts),
        };
        profile.events_mut(table).push(event, &[class, executor]);
    }
}

fn locks(profile: &mut Profile, dice: &mut Dice, contexts: &[ContextId], threads: &[ThreadId]) {
    let table = profile.events_of(&EventKind::lock());
    for _ in 0..dice.below(20) {
        let class = profile.strings.intern("com.acme.Orders");
        let wait = dice.pick(&Wait::ALL);
        // Who sleeps waits for nothing.
        let asleep = wait == Wait::Sleep;
        let class = if asleep { StringId::EMPTY } else { class };
        let owner = if asleep { ThreadId::UNKNOWN } else { dice.pick(threads) };
        let has_owner = !asleep && wait != Wait::MonitorWait;
        let operation = profile.strings.intern(wait.name());
        let event = Event {
            time: dice.below(50_000_000_000) as u64,
            duration: dice.below(1_000_000) as u64 + 1,
            thread: dice.pick(threads),
            context: dice.pick(contexts),
        };
        let mut fields = LockFields { class, owner, operation, ..LockFields::default() };
        fields.instance = if asleep { 0 } else { dice.below(1000) as i64 };
        if has_owner {
            fields.owner_context = dice.pick(contexts);
            (fields.owner_held, fields.queue) = (dice.below(2) == 1, dice.below(9) as i64);
        }
        profile.events_mut(table).push(event, &fields.values());
    }
}

pub fn export(profile: &Profile, format: Format, options: Options<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    tare_formats::write(profile, format, options, &mut out).unwrap();
    out
}

/// What a format keeps of a frame, and whether it keeps threads and times.
pub struct Kept {
    pub frame: fn(&Profile, FrameId) -> String,
    pub threads: bool,
    pub times: bool,
}

pub type Sums = BTreeMap<(String, String, u64, Vec<String>), i64>;

/// The values of a profile by what is kept of their places. Two profiles with the same sums are the
/// same, as far as a format can tell.
pub fn sums(profile: &Profile, kept: &Kept) -> Sums {
    let mut sums = Sums::new();
    for (_, series) in profile.all_series() {
        let kind = format!("{:?} {:?}", series.info().kind, series.info().estimate);
        for row in series.rows() {
            let mut stack: Vec<String> =
                profile.contexts.frames(row.context).map(|id| (kept.frame)(profile, id)).collect();
            stack.reverse();
            let thread = if kept.threads { profile.thread_name(row.thread) } else { String::new() };
            let time = if kept.times { row.time } else { 0 };
            *sums.entry((kind.clone(), thread, time, stack)).or_default() += row.value;
        }
    }
    sums
}

/// A directory for one test, emptied at its start.
pub fn scratch(test: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// The first of some programs that can be started; says loudly if there is none.
pub fn tool(test: &str, candidates: &[String]) -> Option<String> {
    let starts = |name: &&String| Command::new(name).arg("--version").output().is_ok();
    let found = candidates.iter().find(starts).cloned();
    if found.is_none() {
        eprintln!(
            "\n*** NOT COVERED: {test} was skipped, because none of {candidates:?} is here ***\n"
        );
    }
    found
}

/// A tool of every JDK on this machine, each once whatever names a distribution gives it.
pub fn jdk_tools(name: &str) -> Vec<String> {
    let homes = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let homes = homes.map(|entry| entry.path());
    let homes = std::env::var("JAVA_HOME").map(PathBuf::from).into_iter().chain(homes);
    let tools = homes.map(|home| home.join("bin").join(name));
    let mut all: Vec<PathBuf> = tools.filter_map(|path| path.canonicalize().ok()).collect();
    // A runtime without `jfr` and `javac` is no JDK.
    all.retain(|path| {
        path.with_file_name("jfr").is_file() && path.with_file_name("javac").is_file()
    });
    all.sort();
    all.dedup();
    all.iter().map(|path| path.display().to_string()).collect()
}
