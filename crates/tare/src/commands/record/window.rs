//! A short time in which a program is sampled while nothing else is woven, before its calls are counted: the
//! samples go into the same recording, and reports join the two.
//!
//! What joins them must tell how much of the same work was done in both. So a few methods are counted while
//! samples are taken, its *marks*: those that others are called from, seldom enough that it costs nothing.
//! Their calls then and in the exact recording are to each other as the work is. Changing the first class of a
//! JVM makes HotSpot throw its code away, so samples wait until that is compiled again.

use super::exact::WEAVING;
use super::{STEP, predict};
use crate::cli::RecordArgs;
use crate::client::Agent;
use crate::exact::{Arena, Exact};
use crate::origins::Origins;
use crate::recorder::Source;
use crate::sampling::{DRAIN, Sampling};
use crate::term::{self, DIM};
use anyhow::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_profile::{ContextId, MethodId, MethodKind, Profile, ValueKind};
use tare_protocol::{ExactPlan, Region, Request, SamplePlan};

/// Short, since there is little time, and a program bears it for so long.
const INTERVAL: Duration = Duration::from_millis(1);
const RING: u64 = 8 << 20;

/// For so long it is sampled to find marks.
const FIRST: Duration = Duration::from_secs(1);
const MARKS: usize = 12;
/// Marks are looked for among so many of the outermost methods of a stack, in so many of all samples.
const DEPTH: usize = 8;
const SHARE: f64 = 0.02;
/// Calls in a second at most: dearer marks would be seen in the samples.
const OFTEN: f64 = 50_000.0;
/// For so long it is seen how often they are called.
const TRIAL: Duration = Duration::from_millis(300);
const MEMORY: u64 = 16 << 20;
/// Compilers that take less of a processor than this are done, and after so long nobody waits for them.
const DONE: f64 = 0.1;
const SETTLE: Duration = Duration::from_millis(500);
const SETTLE_MOST: Duration = Duration::from_secs(10);

/// What came of it: samples, when the zero of their times was, and the calls of marks meanwhile.
pub struct Window {
    pub sampling: Sampling,
    pub began: Instant,
    pub marks: Vec<(String, u64)>,
}

/// Samples a JVM for `--window`.
pub fn sample(agent: &mut Agent, jvm: &Jvm, args: &RecordArgs) -> Result<Window> {
    let length = args.window;
    anstream::eprintln!(
        "{DIM}tare: samples for {}, before anything is timed{DIM:#}",
        term::time(length)
    );
    let mut counting = Counting::begin(agent, jvm, args)?;
    if let Some(counting) = &counting {
        settle(agent, jvm);
        anstream::eprintln!("{DIM}tare: {} methods are counted meanwhile{DIM:#}", counting.marks);
    }
    let before = counting.as_mut().map(|counting| counting.look(agent)).transpose()?;
    let (sampling, began) = sample_for(agent, jvm, length)?;
    let after = counting.as_mut().map(|counting| counting.look(agent)).transpose()?;
    if counting.is_some() {
        agent.patiently(WEAVING, |agent| agent.tell(&Request::ExactStop))?;
    }
    let before = before.unwrap_or_default();
    let calls = |name: &str, calls| calls - before.get(name).copied().unwrap_or(0);
    let marks = after.unwrap_or_default().into_iter().map(|(name, n)| (calls(&name, n), name));
    let marks = marks.filter(|(calls, _)| *calls > 0).map(|(calls, name)| (name, calls)).collect();
    Ok(Window { sampling, began, marks })
}

fn sample_for(agent: &mut Agent, jvm: &Jvm, length: Duration) -> Result<(Sampling, Instant)> {
    let plan = SamplePlan {
        interval_ns: u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX),
        memory: RING,
        ..SamplePlan::default()
    };
    let [stream] = agent.tell_for_files(&Request::SampleStart(Box::new(plan)))?;
    let began = Instant::now();
    let status = agent.status()?.sampling.unwrap_or_default();
    let mut sampling = Sampling::new(stream, jvm, status, None)?;
    let mut drained = Instant::now();
    while began.elapsed() < length && !agent.has_gone() {
        std::thread::sleep(STEP);
        if drained.elapsed() >= DRAIN {
            drained = Instant::now();
            if !sampling.drain() {
                break;
            }
        }
    }
    if let Ok(Some(status)) = agent.status().map(|status| status.sampling) {
        sampling.status = status;
    }
    agent.tell(&Request::SampleStop)?;
    sampling.end();
    Ok((sampling, began))
}

/// Marks that are being counted.
struct Counting {
    exact: Exact,
    profile: Profile,
    marks: usize,
}

impl Counting {
    /// `None` if there are none. What is counted below roots or to some depth only has no marks: they are counted
    /// everywhere.
    fn begin(agent: &mut Agent, jvm: &Jvm, args: &RecordArgs) -> Result<Option<Counting>> {
        if !args.root.is_empty() || args.depth.is_some() {
            return Ok(None);
        }
        let (mut first, _) = sample_for(agent, jvm, FIRST)?;
        let mut profile = Profile::new();
        first.look(&mut profile, 0)?;
        let woven = |class: &str| predict::is_woven(class, &args.include, &args.exclude);
        let mut names = candidates(&profile, woven);
        while !names.is_empty() {
            let mut counting = Counting::start(agent, jvm, &names)?;
            let before = counting.look(agent)?;
            std::thread::sleep(TRIAL);
            let after = counting.look(agent)?;
            let calls = |name: &str| after.get(name).unwrap_or(&0) - before.get(name).unwrap_or(&0);
            let most = OFTEN * TRIAL.as_secs_f64();
            let seldom: Vec<String> =
                names.iter().filter(|name| calls(name) as f64 <= most).cloned().collect();
            if seldom.len() == names.len() {
                return Ok(Some(counting));
            }
            names = seldom;
            agent.patiently(WEAVING, |agent| agent.tell(&Request::ExactStop))?;
        }
        Ok(None)
    }

    fn start(agent: &mut Agent, jvm: &Jvm, names: &[String]) -> Result<Counting> {
        let regions: Vec<Region> = names.iter().filter_map(|name| name.parse().ok()).collect();
        let marks = regions.len();
        let plan = ExactPlan {
            timed: true,
            regions,
            regions_only: true,
            memory: MEMORY,
            ..ExactPlan::default()
        };
        let start = Request::ExactStart(Box::new(plan));
        let memory = agent.patiently(WEAVING, |agent| agent.tell_for_files(&start))?;
        let status = agent.status()?.exact.unwrap_or_default();
        let exact = Exact::new(Arena::new(memory), status, Origins::of(jvm));
        Ok(Counting { exact, profile: Profile::new(), marks })
    }

    /// How often each was called so far.
    fn look(&mut self, agent: &mut Agent) -> Result<BTreeMap<String, u64>> {
        if let Some(status) = agent.status()?.exact {
            self.exact.status = status;
        }
        self.exact.look_once(&mut self.profile, 0)?;
        let regions = tare_analysis::regions(&self.profile);
        Ok(regions.into_iter().map(|r| (r.name, r.all.count.cast_unsigned())).collect())
    }
}

/// Methods near the outermost of those that will be woven, the ones with most samples first. None that calls
/// itself: a region counts that once.
fn candidates(profile: &Profile, woven: impl Fn(&str) -> bool) -> Vec<String> {
    let series = profile.all_series().map(|(_, series)| series);
    let Some(series) = series.into_iter().find(|s| s.info().kind == ValueKind::CpuTime) else {
        return Vec::new();
    };
    let mut by_context: HashMap<ContextId, i64> = HashMap::new();
    for row in series.rows() {
        *by_context.entry(row.context).or_default() += row.value;
    }
    let all: i64 = by_context.values().sum();
    let mut found: HashMap<String, i64> = HashMap::new();
    let mut recursive: HashSet<String> = HashSet::new();
    for (context, weight) in by_context {
        let frames: Vec<_> = profile.contexts.frames(context).collect();
        let methods = frames.iter().rev().map(|frame| profile.frames.get(*frame).method);
        let names = methods.filter_map(|method| name(profile, method, &woven));
        let mut seen: HashSet<String> = HashSet::new();
        for (depth, name) in names.enumerate() {
            if !seen.insert(name.clone()) {
                recursive.insert(name);
            } else if depth < DEPTH {
                *found.entry(name).or_default() += weight;
            }
        }
    }
    let least = all as f64 * SHARE;
    let mut found: Vec<(i64, String)> = found.into_iter().map(|(name, n)| (n, name)).collect();
    found.retain(|(weight, name)| *weight as f64 >= least && !recursive.contains(name));
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.into_iter().take(MARKS).map(|(_, name)| name).collect()
}

/// As a region is named; not what the JVM or a compiler made up, which may have another name next time.
fn name(profile: &Profile, method: MethodId, woven: impl Fn(&str) -> bool) -> Option<String> {
    let method = profile.methods.get(method);
    let (class, name) = (profile.strings.get(method.class), profile.strings.get(method.name));
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || more.contains(c))
    };
    let fits = method.kind == MethodKind::Java && plain(class, "._$") && plain(name, "_");
    (fits && woven(class)).then(|| format!("{class}.{name}"))
}

/// Waits until the JVM's compilers have little to do.
fn settle(agent: &mut Agent, jvm: &Jvm) {
    let began = Instant::now();
    let mut before = compiling(jvm.pid);
    while began.elapsed() < SETTLE_MOST && !agent.has_gone() {
        std::thread::sleep(SETTLE);
        let now = compiling(jvm.pid);
        if now.saturating_sub(before).as_secs_f64() < SETTLE.as_secs_f64() * DONE {
            return;
        }
        before = now;
    }
}

/// What the JVM's compiler threads have taken of the processor so far.
fn compiling(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_task = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let ran = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = ran.split_whitespace().next()?.parse().ok()?;
        name.contains("Compiler").then(|| Duration::from_nanos(nanos))
    };
    tasks.filter_map(of_task).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Frame, Method, Row, SeriesInfo, ThreadId};

    #[test]
    fn marks_are_outermost_woven_and_not_recursive() {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::CpuTime));
        let mut frame = |class: &str, name: &str| {
            let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
            let method = Method { kind: MethodKind::Java, class, name, ..Method::default() };
            let method = profile.methods.intern(method);
            profile.frames.intern(Frame::of(method))
        };
        let jdk = frame("java.lang.Thread", "run");
        let [serve, again, made, rare] =
            ["serve", "again", "lambda$1", "rare"].map(|name| frame("a.B", name));
        let stacks = [
            (vec![jdk, serve, again, again], 50),
            (vec![jdk, serve, made], 49),
            (vec![jdk, serve, rare], 1),
        ];
        for (stack, weight) in stacks {
            let context = profile.contexts.stack(stack);
            profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, weight));
        }
        let found = candidates(&profile, |class| class == "a.B");
        assert_eq!(found, ["a.B.serve"]);
    }
}
