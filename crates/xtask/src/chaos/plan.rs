//! What happens in a round, drawn from its seed: the JVM and its flags, where it runs, and what is
//! done to it, step by step. Nothing is started here.

use super::engines::{CLIMBS, LOOKS, SAMPLED, WOVEN};
use super::random::Random;
use std::time::Duration;

/// What one of the JDKs can do.
#[derive(Clone, Debug)]
pub struct Abilities {
    pub major: u32,
    pub collectors: Vec<&'static str>,
    pub flight_recorder: bool,
}

/// What this machine lets us do.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    pub namespaces: bool,
    pub async_profiler: bool,
}

/// What is hard about the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Plain,
    /// Recordings go to a disk of so many KiB.
    SmallDisk(u64),
    /// Unusual system calls are answered with an error.
    CallsDenied,
    /// Unusual system calls end the process.
    CallsKill,
    /// Open files of the JVM.
    FewDescriptors(u64),
    ReadOnlyTmp,
    NoExecTmp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `tare` with these words and the pid, and a file to write to.
    Begin(Vec<String>),
    /// The oldest recording is interrupted, as by Ctrl-C.
    Interrupt,
    /// `tare stop`.
    Stop,
    /// `kill -9` of the youngest recording.
    Kill,
    /// The youngest recording stands still meanwhile.
    FreezeTool(Duration),
    FreezeProgram(Duration),
    /// `tare detach`, whatever is under way.
    Detach,
    /// `tare` with these words and the pid, to its end.
    Look(Vec<String>),
    /// A debugger comes, suspends all threads, and leaves.
    Debug(Duration),
    AsyncProfiler(&'static str),
    /// The flight recorder is started or stopped.
    FlightRecorder,
    /// `jcmd` with these words.
    Jcmd(&'static [&'static str]),
    HeapDump,
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Recordings end, the agent is detached, and what is left is looked at.
    Detached,
    /// The program ends while it is being recorded.
    InTheMiddle,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub flags: Vec<String>,
    /// The largest number of threads at once.
    pub crowd: u64,
    pub frugal: bool,
    pub launched: bool,
    pub natives: bool,
    pub meddler: bool,
    pub debugger: bool,
    pub place: Place,
    /// Each after a pause.
    pub steps: Vec<(Duration, Step)>,
    pub ending: Ending,
}

impl Plan {
    pub fn draw(seed: u64, jdk: &Abilities, means: Means) -> Self {
        let mut random = Random::new(seed);
        let collector = random.pick(&jdk.collectors);
        let frugal = collector == "Epsilon";
        let place = place(&mut random, means);
        let calm = matches!(place, Place::FewDescriptors(_));
        let mut flags = flags(&mut random, jdk.major, collector);
        // Nothing can attach where nobody may write.
        let launched = random.chance(30) || place == Place::ReadOnlyTmp;
        if jdk.flight_recorder && !calm && random.chance(12) {
            flags.push("-XX:StartFlightRecording=settings=profile".to_owned());
            flags.push("-XX:FlightRecorderOptions=repository=jfr".to_owned());
        }
        let mut plan = Plan {
            flags,
            crowd: if calm || frugal { 100 } else { random.pick(&[100, 300, 300, 1000]) },
            frugal,
            launched,
            natives: random.chance(50),
            meddler: random.chance(35),
            debugger: random.chance(20),
            place,
            steps: Vec::new(),
            ending: if random.chance(25) { Ending::InTheMiddle } else { Ending::Detached },
        };
        // HotSpot 21 corrupts its list of threads' states when a debugger's library is there, native
        // code attaches threads and anybody samples allocation: with a sampler that does nothing,
        // and without Tare, it crashes as well.
        plan.debugger &= !(plan.natives && jdk.major == 21);
        plan.steps = steps(&mut random, &plan, jdk, means);
        plan
    }
}

fn place(random: &mut Random, means: Means) -> Place {
    match random.below(100) {
        0..10 if means.namespaces => Place::SmallDisk(random.between(100, 3000)),
        10..20 => Place::CallsDenied,
        20..30 => Place::CallsKill,
        30..42 => Place::FewDescriptors(random.between(96, 300)),
        42..48 if means.namespaces => Place::ReadOnlyTmp,
        48..56 if means.namespaces => Place::NoExecTmp,
        _ => Place::Plain,
    }
}

fn flags(random: &mut Random, major: u32, collector: &str) -> Vec<String> {
    let mut flags = vec![format!("-XX:+Use{collector}GC")];
    if collector == "Epsilon" {
        flags.insert(0, "-XX:+UnlockExperimentalVMOptions".to_owned());
        flags.push("-Xmx2g".to_owned());
    } else {
        flags.push("-Xmx320m".to_owned());
        // Whoever tells of too much collecting may take any thread for the culprit.
        flags.push("-XX:-UseGCOverheadLimit".to_owned());
    }
    match random.below(100) {
        0..10 => flags.push("-Xint".to_owned()),
        10..20 => {
            for flag in ["-Xcomp", "-XX:CompileCommand=quiet"] {
                flags.push(flag.to_owned());
            }
            for classes in ["Chaos*", "java/lang/Tare*"] {
                flags.push(format!("-XX:CompileCommand=compileonly,{classes}::*"));
            }
        }
        20..35 => flags.push("-XX:TieredStopAtLevel=1".to_owned()),
        35..40 => flags.push("-XX:-TieredCompilation".to_owned()),
        _ => {}
    }
    if random.chance(20) {
        flags.push("-Xcheck:jni".to_owned());
    }
    if major >= 25 && random.chance(40) {
        flags.push("-XX:+UseCompactObjectHeaders".to_owned());
    }
    if collector != "Z" && random.chance(20) {
        flags.push("-XX:-UseCompressedOops".to_owned());
    }
    flags
}

/// How long the steps of a round take, pauses only.
const SPAN: Duration = Duration::from_millis(9_000);

fn steps(random: &mut Random, plan: &Plan, jdk: &Abilities, means: Means) -> Vec<(Duration, Step)> {
    let mut steps = Vec::new();
    let mut left = SPAN;
    while !left.is_zero() {
        let pause = Duration::from_millis(match random.below(4) {
            0 => random.between(1, 60),
            1 => random.between(100, 500),
            _ => random.between(500, 1600),
        });
        let pause = pause.min(left);
        left -= pause;
        steps.push((pause, step(random, plan, jdk, means)));
    }
    steps
}

fn step(random: &mut Random, plan: &Plan, jdk: &Abilities, means: Means) -> Step {
    let calm = matches!(plan.place, Place::FewDescriptors(_));
    let filtered = matches!(plan.place, Place::CallsDenied | Place::CallsKill);
    let span = |random: &mut Random| Duration::from_millis(random.between(50, 1500));
    match random.below(100) {
        0..38 => Step::Begin(recording(random)),
        38..46 => Step::Interrupt,
        46..50 => Step::Stop,
        50..57 => Step::Kill,
        57..60 => Step::FreezeTool(span(random)),
        60..63 => Step::FreezeProgram(span(random)),
        63..67 => Step::Detach,
        67..82 => Step::Look(words(random.pick(LOOKS))),
        82..86 if plan.debugger => Step::Debug(span(random)),
        // It asks for perf events, and its descriptors are as many as threads.
        86..90 if means.async_profiler && !calm => Step::AsyncProfiler(if filtered {
            "itimer"
        } else {
            random.pick(&["cpu", "itimer", "wall", "alloc", "lock"])
        }),
        90..93 if jdk.flight_recorder && !calm => Step::FlightRecorder,
        93..95 => Step::Jcmd(&["Thread.print"]),
        95..97 => Step::Jcmd(&["GC.run"]),
        97..98 => Step::Jcmd(&["GC.class_histogram"]),
        98..100 if !calm => Step::HeapDump,
        _ => Step::Begin(recording(random)),
    }
}

fn recording(random: &mut Random) -> Vec<String> {
    let mut line = match random.below(100) {
        0..8 => return words(random.pick(CLIMBS)),
        8..55 => words(random.pick(SAMPLED)),
        _ => words(random.pick(WOVEN)),
    };
    line.insert(0, "record".to_owned());
    if random.chance(15) {
        line.extend(["-d".to_owned(), format!("{}ms", random.between(100, 3000))]);
    }
    line
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Plan {
        let jdk = Abilities {
            major: 25,
            collectors: vec!["Serial", "Z", "Epsilon"],
            flight_recorder: true,
        };
        Plan::draw(seed, &jdk, Means { namespaces: true, async_profiler: true })
    }

    #[test]
    fn a_seed_is_a_plan() {
        assert_eq!(drawn(5), drawn(5));
        assert_ne!(drawn(5).steps, drawn(6).steps);
        for seed in 0..200 {
            let all: Duration = drawn(seed).steps.iter().map(|(pause, _)| *pause).sum();
            assert_eq!(all, SPAN);
        }
    }

    #[test]
    fn everything_comes_to_pass() {
        let plans: Vec<Plan> = (0..500).map(drawn).collect();
        let flag = |flag: &str| plans.iter().any(|plan| plan.flags.iter().any(|one| one == flag));
        for wanted in ["-XX:+UseZGC", "-Xint", "-Xcomp", "-Xcheck:jni", "-XX:-UseCompressedOops"] {
            assert!(flag(wanted), "{wanted}");
        }
        for wanted in [Place::Plain, Place::CallsKill, Place::ReadOnlyTmp, Place::NoExecTmp] {
            assert!(plans.iter().any(|plan| plan.place == wanted), "{wanted:?}");
        }
        let steps = || plans.iter().flat_map(|plan| plan.steps.iter().map(|(_, step)| step));
        for list in [SAMPLED, WOVEN] {
            for &one in list {
                let begun = |step: &Step| match step {
                    Step::Begin(words) => words.iter().skip(1).zip(one).all(|(a, b)| a == b),
                    _ => false,
                };
                assert!(steps().any(begun), "{one:?}");
            }
        }
        for wanted in [Step::Kill, Step::Stop, Step::Detach, Step::HeapDump, Step::FlightRecorder] {
            assert!(steps().any(|step| *step == wanted), "{wanted:?}");
        }
    }

    /// What would end the program with good reason is not done to it.
    #[test]
    fn nobody_asks_for_what_the_place_kills() {
        for plan in (0..2000).map(drawn).filter(|plan| plan.place == Place::CallsKill) {
            for (_, step) in &plan.steps {
                assert!(!matches!(step, Step::AsyncProfiler(event) if *event != "itimer"));
                let Step::Begin(words) = step else { continue };
                assert!(!words.iter().any(|word| word.starts_with("perf-")), "{words:?}");
            }
        }
    }
}
