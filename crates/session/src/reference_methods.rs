//! Methods that are counted while samples are taken, so that it is known how much of the work was
//! done then: their calls then and in the exact recording are to each other as the work is.
//!
//! Counting a method changes its code, and what is compiled into it. So only the outermost ones are
//! taken that are called often enough to tell something, and seldom enough to cost nothing: one on
//! each stack. Changing the first class of a JVM makes HotSpot throw its code away, so samples wait
//! until that is compiled again.

use crate::client::Agent;
use crate::error::Result;
use crate::exact::{Arena, Exact};
use crate::observer::Observer;
use crate::origins::Origins;
use crate::recorder::Source;
use crate::weaving::{self, Begun};
use crate::window::sample_for;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::time::{Duration, Instant};
use tare_analysis::Passages;
use tare_attach::Jvm;
use tare_java_names::ClassChoice;
use tare_profile::{ContextId, MethodId, MethodKind, Profile, ValueKind};
use tare_protocol::{EngineName, ExactPlan, Measure, Pattern, Region};

/// For so long it is sampled to find methods that may be taken.
const FIRST: Duration = Duration::from_secs(1);
/// So many are tried at a time, so many times, and so many taken.
const TRIED: usize = 64;
const TRIALS: usize = 4;
const TAKEN: usize = 24;
/// They are looked for among so many of the outermost methods of a stack, in so many of all
/// samples.
const DEPTH: usize = 12;
const SHARE: f64 = 0.01;
/// For so long it is seen how often they are called: so often at least and at most.
const TRIAL: Duration = Duration::from_secs(1);
const SELDOM: i64 = 10;
const OFTEN: i64 = 20_000;
const MEMORY: u64 = 16 << 20;
/// Compilers that take less of a processor than this are done, and after so long nobody waits for
/// them.
const DONE: f64 = 0.1;
const SETTLE: Duration = Duration::from_millis(500);
const SETTLE_MOST: Duration = Duration::from_secs(10);

/// The calls of each.
pub type Passed = BTreeMap<String, Passages>;

/// Reference methods that are being counted.
pub struct Counting {
    exact: Exact,
    profile: Profile,
    /// How many.
    pub methods: usize,
}

impl Counting {
    /// `None` if there are none. What is counted below roots or to some depth only has none: they
    /// are counted everywhere.
    pub fn begin(
        agent: &mut Agent,
        jvm: &Jvm,
        plan: &ExactPlan,
        observer: &mut dyn Observer,
    ) -> Result<Option<Counting>> {
        if plan.roots().is_some() || plan.depth() > 0 {
            return Ok(None);
        }
        let (mut first, _) = sample_for(agent, jvm, FIRST, observer)?;
        let mut profile = Profile::new();
        first.look(&mut profile, 0)?;
        let woven = |class: &str| is_woven(class, &plan.include, &plan.exclude);
        let stacks = Stacks::of(&profile, woven);
        // From the outside inwards, and not much deeper than need be.
        let mut calls: HashMap<String, i64> = HashMap::new();
        for trial in 0..TRIALS {
            let tried = stacks.candidates(&calls, 1 << trial);
            if tried.is_empty() || observer.wants_end() {
                break;
            }
            let Some(mut counting) = Counting::start(agent, jvm, &tried, observer)? else {
                return Ok(None);
            };
            let before = counting.look(agent)?;
            std::thread::sleep(TRIAL);
            let after = counting.look(agent)?;
            counting.stop(agent, observer)?;
            calls.extend(tried.iter().map(|name| ((*name).to_owned(), 0)));
            let more = since(&before, after).into_iter();
            calls.extend(more.map(|(name, calls)| (name, calls.count)));
        }
        let names = stacks.fitting(&calls);
        if names.is_empty() {
            return Ok(None);
        }
        Counting::start(agent, jvm, &names, observer)
    }

    /// Counts just these; `None` if it is not wanted any more.
    pub fn start(
        agent: &mut Agent,
        jvm: &Jvm,
        names: &[&str],
        observer: &mut dyn Observer,
    ) -> Result<Option<Counting>> {
        let regions: Vec<Region> = names.iter().filter_map(|name| name.parse().ok()).collect();
        let methods = regions.len();
        let measure = Measure::Regions(regions);
        let plan = ExactPlan { memory: MEMORY, measure, ..ExactPlan::default() };
        let begun = weaving::start(agent, plan, observer)?;
        let Begun::Woven(memory) = begun else { return Ok(None) };
        let status = agent.status()?.exact().cloned().unwrap_or_default();
        let exact = Exact::new(Arena::new(memory), status, Origins::of(jvm));
        Ok(Some(Counting { exact, profile: Profile::new(), methods }))
    }

    /// How often each was called so far.
    pub fn look(&mut self, agent: &mut Agent) -> Result<Passed> {
        if let Some(status) = agent.status()?.exact().cloned() {
            self.exact.status = status;
        }
        self.exact.look_once(&mut self.profile, 0)?;
        let regions = tare_analysis::regions(&self.profile);
        Ok(regions.into_iter().map(|region| (region.name, region.all)).collect())
    }

    pub fn stop(self, agent: &mut Agent, observer: &mut dyn Observer) -> Result<()> {
        weaving::stop(agent, EngineName::Exact, observer)
    }
}

pub fn since(before: &Passed, now: Passed) -> Passed {
    let none = Passages::default();
    now.into_iter()
        .map(|(name, calls)| {
            let since = calls.since(before.get(&name).unwrap_or(&none));
            (name, since)
        })
        .collect()
}

fn fits(calls: &i64) -> bool {
    (SELDOM..=OFTEN).contains(calls)
}

/// The outermost methods of sampled stacks, of those that will be woven, from the outside, with
/// their weight.
struct Stacks(HashMap<Vec<String>, i64>);

impl Stacks {
    fn of(profile: &Profile, woven: impl Fn(&str) -> bool) -> Stacks {
        let series = profile.all_series().map(|(_, series)| series);
        let series = series.filter(|series| series.info().kind == ValueKind::CpuTime);
        let mut by_context: HashMap<ContextId, i64> = HashMap::new();
        for row in series.flat_map(|series| series.rows()) {
            *by_context.entry(row.context).or_default() += row.value;
        }
        let mut stacks: HashMap<Vec<String>, i64> = HashMap::new();
        for (context, weight) in by_context {
            let frames: Vec<_> = profile.contexts.frames(context).collect();
            let methods = frames.iter().rev().map(|frame| profile.frames.get(*frame).method);
            let names = methods.filter_map(|method| plain_name(profile, method, &woven));
            *stacks.entry(names.take(DEPTH).collect()).or_default() += weight;
        }
        Stacks(stacks)
    }

    /// What is to be tried next: of each stack that has none yet so many of the outermost methods
    /// whose calls are not known, those with most samples first.
    fn candidates(&self, calls: &HashMap<String, i64>, each: usize) -> Vec<&str> {
        self.most(TRIED, |stack| {
            let has_one = stack.iter().any(|name| calls.get(name).is_some_and(fits));
            let open = stack.iter().filter(|name| !has_one && !calls.contains_key(*name));
            open.take(each).map(String::as_str).collect()
        })
    }

    /// The outermost of each stack that is called neither too often nor too seldom.
    fn fitting(&self, calls: &HashMap<String, i64>) -> Vec<&str> {
        self.most(TAKEN, |stack| {
            let first = stack.iter().find(|name| calls.get(*name).is_some_and(fits));
            first.map(String::as_str).into_iter().collect()
        })
    }

    /// The names by the weight of the stacks that have them.
    fn most<'a>(
        &'a self,
        most: usize,
        of: impl Fn(&'a [String]) -> BTreeSet<&'a str>,
    ) -> Vec<&'a str> {
        let all: i64 = self.0.values().sum();
        let mut found: HashMap<&str, i64> = HashMap::new();
        for (stack, weight) in &self.0 {
            for name in of(stack) {
                *found.entry(name).or_default() += weight;
            }
        }
        let mut found: Vec<(&str, i64)> = found.into_iter().collect();
        found.retain(|(_, weight)| *weight as f64 >= all as f64 * SHARE);
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        found.into_iter().take(most).map(|(name, _)| name).collect()
    }
}

/// As a region is named; not what the JVM or a compiler made up, which may have another name next
/// time.
pub fn plain_name(
    profile: &Profile,
    method: MethodId,
    woven: impl Fn(&str) -> bool,
) -> Option<String> {
    let method = profile.methods.get(method);
    let (class, name) = (profile.strings.get(method.class), profile.strings.get(method.name));
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || more.contains(c))
    };
    let fits = method.kind == MethodKind::Java && plain(class, "._$") && plain(name, "_");
    (fits && woven(class)).then(|| format!("{class}.{name}"))
}

/// Waits until the JVM's compilers have little to do.
pub fn settle(agent: &mut Agent, jvm: &Jvm, observer: &dyn Observer) {
    let began = Instant::now();
    let mut before = compiling(jvm.pid);
    while began.elapsed() < SETTLE_MOST && !observer.wants_end() && !agent.has_gone() {
        std::thread::sleep(SETTLE);
        let now = compiling(jvm.pid);
        if now.saturating_sub(before).as_secs_f64() < SETTLE.as_secs_f64() * DONE {
            return;
        }
        before = now;
    }
}

/// What the JVM's compiler threads have taken of the processor so far.
pub fn compiling(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_task = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let ran = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = ran.split_whitespace().next()?.parse().ok()?;
        name.contains("Compiler").then(|| Duration::from_nanos(nanos))
    };
    tasks.filter_map(of_task).sum()
}

/// What a program has taken of the processor so far, without the JVM's compilers.
pub fn processor(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may have anything in it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let ran = (ticks(11)? + ticks(12)?) as f64 / per_second as f64;
    Some(Duration::from_secs_f64(ran).saturating_sub(compiling(pid)))
}

/// Whether a recording of these classes weaves one, as far as its name tells.
pub fn is_woven(class: &str, include: &[Pattern], exclude: &[Pattern]) -> bool {
    ClassChoice { include, exclude, also: &[] }.of(class).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Frame, Method, Row, SeriesInfo, ThreadId};

    #[test]
    fn they_are_the_outermost_that_are_called_neither_often_nor_seldom() {
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
        let stacks = Stacks::of(&profile, |class| class == "a.B");
        let calls = |all: [(&str, i64); 3]| all.map(|(name, n)| (name.to_owned(), n)).into();
        // Inner ones are tried only where the outer one is called too seldom.
        assert_eq!(stacks.candidates(&HashMap::new(), 1), ["a.B.serve"]);
        assert!(stacks.candidates(&[("a.B.serve".to_owned(), 100)].into(), 2).is_empty());
        let inner = stacks.candidates(&[("a.B.serve".to_owned(), 1)].into(), 2);
        assert_eq!(inner, ["a.B.again", "a.B.rare"]);
        assert_eq!(stacks.candidates(&HashMap::new(), 2).len(), 3);
        let names =
            stacks.fitting(&calls([("a.B.serve", 100), ("a.B.again", 50), ("a.B.rare", 50)]));
        assert_eq!(names, ["a.B.serve"]);
        // Once a second at most, or all the time, is no measure.
        let names =
            stacks.fitting(&calls([("a.B.serve", 1), ("a.B.again", 50), ("a.B.rare", 50_000)]));
        assert_eq!(names, ["a.B.again"]);
    }
}
