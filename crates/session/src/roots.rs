//! Roots by themselves: methods of a program that are called as often as requests and tasks are,
//! found by a short look before anything is woven for long.
//!
//! Samples tell which methods are outermost, and what the frames around them say of their job.
//! Then calls of candidates are counted for a second, as `reference_methods` counts them. What a
//! recording does with its roots is no business of this file.

use crate::client::Agent;
use crate::engines::{Beginning, exact};
use crate::error::{Result, refuse};
use crate::observer::{Note, Observer};
use crate::recorder::Source;
use crate::reference_methods::{Counting, is_woven, plain_name, since};
use crate::window::sample_for;
use crate::words::{self, grouped};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_profile::{ContextId, MethodKind, Profile, ValueKind};
use tare_protocol::{ExactPlan, Figures, Follow, Measure, MethodPattern, Roots, Scheme, TreeRoots};

/// For so long it is sampled, and for so long calls are counted.
const SAMPLED: Duration = Duration::from_secs(2);
const COUNTED: Duration = Duration::from_secs(1);
/// A program that is only starting is looked at again, for so long.
const STARTING: Duration = Duration::from_secs(20);
/// So many are counted at a time, so many times, and so many taken.
const TRIED: usize = 48;
const TRIALS: usize = 3;
const TAKEN: usize = 16;
/// A method is looked for among so many of the outermost of a stack, unless its job is known.
const DEPTH: usize = 12;
/// Stacks of less than this share of the samples have no say.
const SHARE: f64 = 0.01;
/// Where roots have less than this share of the samples, they do not tell what the program does.
const ENOUGH: f64 = 0.5;
/// Fewer samples say nothing.
const FEW: usize = 50;
/// A root is called so often in a second, at least and at most.
const SELDOM: f64 = 10.0;
const OFTEN: f64 = 20_000.0;

/// What a method is for, as far as names around it tell; what is preferred comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Job {
    Request,
    Listener,
    Scheduled,
    Task,
    Other,
}

impl Job {
    fn told(self) -> &'static str {
        match self {
            Job::Request => "handles requests",
            Job::Listener => "listens",
            Job::Scheduled => "is scheduled",
            Job::Task => "an executor's task",
            Job::Other => "outermost of those that are called so often",
        }
    }
}

/// What is done with roots that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindRoots {
    pub follow: Follow,
    /// Leave out methods that would be little but probe.
    pub skip_trivial: bool,
}

/// A method that was found, and why.
#[derive(Clone, Debug, PartialEq)]
struct Root {
    method: MethodPattern,
    reason: String,
}

/// What a look brought.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    Roots(Vec<Root>),
    /// Why there are none.
    None(String),
}

/// The plan of a recording that begins with a look: of the roots that are found, or, if there are none,
/// of the whole program. `None` if it is not wanted any more.
pub fn with_roots(
    plan: &exact::Plan,
    how: FindRoots,
    beginning: &mut Beginning<'_>,
) -> Result<Option<exact::Plan>> {
    let Beginning { agent, jvm, observer, .. } = beginning;
    let launched = !beginning.plan.command.is_empty();
    let found = find(agent, jvm, &plan.weave, launched, *observer);
    if agent.has_gone() {
        refuse!(
            "the program ended before roots were found in it; `--overhead none` records all of its \
             calls from the beginning"
        );
    }
    let found = found?;
    if observer.wants_end() {
        return Ok(None);
    }
    let mut chosen = exact::Plan { find_roots: None, ..plan.clone() };
    match found {
        Found::Roots(roots) => {
            for root in &roots {
                let line = format!("{}: {}", root.method, root.reason);
                observer.note(Note::Aside(format!("root {line}")));
                chosen.found.push(line);
            }
            let methods = roots.into_iter().map(|root| root.method).collect();
            if let Measure::Trees(trees) = &mut chosen.weave.measure {
                trees.roots = Roots::of(methods, Scheme::Lazy).map(|roots| TreeRoots {
                    roots,
                    follow_threads: false,
                    follow: Some(how.follow),
                });
                if let Figures::Times { some, .. } = &mut trees.figures {
                    *some = None;
                }
            }
            chosen.weave.skip_trivial |= how.skip_trivial;
            let word = "--root names others, --include records all calls of some classes";
            observer.note(Note::Aside(word.to_owned()));
        }
        Found::None(why) => {
            let text = format!("no roots: {why}. All calls are counted, and some of them timed");
            observer.note(Note::Warning(text));
            chosen.found.push(format!("none: {why}"));
            chosen.overhead = None;
        }
    }
    Ok(Some(chosen))
}

/// Looks for roots among the methods that a plan would weave.
fn find(
    agent: &mut Agent,
    jvm: &Jvm,
    plan: &ExactPlan,
    launched: bool,
    observer: &mut dyn Observer,
) -> Result<Found> {
    observer.note(Note::Aside(
        "looking for roots: the program is sampled, and calls of some methods are counted".into(),
    ));
    let began = Instant::now();
    loop {
        let found = look(agent, jvm, plan, observer)?;
        let starts = launched && began.elapsed() < STARTING;
        if matches!(found, Found::Roots(_)) || !starts || observer.wants_end() || agent.has_gone() {
            return Ok(found);
        }
    }
}

fn look(
    agent: &mut Agent,
    jvm: &Jvm,
    plan: &ExactPlan,
    observer: &mut dyn Observer,
) -> Result<Found> {
    let (mut sampled, _) = sample_for(agent, jvm, SAMPLED, observer)?;
    let mut profile = Profile::new();
    sampled.look(&mut profile, 0)?;
    let woven = |class: &str| is_woven(class, &plan.include, &plan.exclude);
    let stacks = Stacks::of(&profile, woven);
    if stacks.samples < FEW {
        return Ok(Found::None(format!(
            "the program used a processor for {} samples only",
            stacks.samples
        )));
    }
    let mut rates: HashMap<String, f64> = HashMap::new();
    for trial in 0..TRIALS {
        let tried = stacks.candidates(&rates, 2 << trial);
        if tried.is_empty() || observer.wants_end() {
            break;
        }
        let Some(mut counting) = Counting::start(agent, jvm, &tried, observer)? else { break };
        let before = counting.look(agent)?;
        let began = Instant::now();
        std::thread::sleep(COUNTED);
        let after = counting.look(agent)?;
        let seconds = began.elapsed().as_secs_f64();
        counting.stop(agent, observer)?;
        rates.extend(tried.iter().map(|name| ((*name).to_owned(), 0.0)));
        let calls = since(&before, after).into_iter();
        rates.extend(calls.map(|(name, calls)| (name, calls.count as f64 / seconds)));
    }
    Ok(stacks.choose(&rates))
}

/// A method of a stack that could be a root.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Candidate {
    name: String,
    job: Job,
}

/// Sampled stacks: the program's outermost methods, and those whose job is known, from the outside.
struct Stacks {
    by_stack: HashMap<Vec<Candidate>, i64>,
    whole: i64,
    samples: usize,
}

impl Stacks {
    fn of(profile: &Profile, woven: impl Fn(&str) -> bool) -> Stacks {
        let series = profile.all_series().map(|(_, series)| series);
        let mut by_context: HashMap<ContextId, i64> = HashMap::new();
        let mut samples = 0;
        for row in series
            .filter(|series| series.info().kind == ValueKind::CpuTime)
            .flat_map(|series| series.rows())
        {
            *by_context.entry(row.context).or_default() += row.value;
            samples += 1;
        }
        let mut by_stack: HashMap<Vec<Candidate>, i64> = HashMap::new();
        for (context, weight) in by_context {
            let stack = candidates(profile, context, &woven);
            // The JVM's own threads, and those of the JDK alone, are no part of the program.
            if !stack.is_empty() {
                *by_stack.entry(stack).or_default() += weight;
            }
        }
        let whole = by_stack.values().sum();
        Stacks { by_stack, whole, samples }
    }

    /// What is to be counted next: of each stack that has no root yet those whose job is known, and
    /// so many of the outermost others.
    fn candidates(&self, rates: &HashMap<String, f64>, each: usize) -> Vec<&str> {
        let mut found: HashMap<&str, (Job, i64)> = HashMap::new();
        for (stack, weight) in &self.by_stack {
            if best(stack, rates).is_some() {
                continue;
            }
            let open = stack.iter().filter(|one| !rates.contains_key(&one.name));
            let mut others = 0;
            for one in open {
                others += usize::from(one.job == Job::Other);
                if one.job == Job::Other && others > each {
                    continue;
                }
                let entry = found.entry(&one.name).or_insert((one.job, 0));
                entry.1 += weight;
            }
        }
        self.most(found, TRIED)
    }

    fn most<'a>(&self, found: HashMap<&'a str, (Job, i64)>, most: usize) -> Vec<&'a str> {
        let mut found: Vec<_> = found.into_iter().collect();
        found.retain(|(_, (_, weight))| *weight as f64 >= self.whole as f64 * SHARE);
        found.sort_by(|a, b| b.1.1.cmp(&a.1.1).then(a.0.cmp(b.0)));
        found.into_iter().take(most).map(|(name, _)| name).collect()
    }

    /// The best method of each stack, with the share of samples that are below it.
    fn choose(&self, rates: &HashMap<String, f64>) -> Found {
        let mut found: HashMap<&str, (Job, i64)> = HashMap::new();
        for (stack, weight) in &self.by_stack {
            if let Some(one) = best(stack, rates) {
                found.entry(&one.name).or_insert((one.job, 0)).1 += weight;
            }
        }
        let jobs: BTreeMap<&str, (Job, i64)> = found.iter().map(|(n, j)| (*n, *j)).collect();
        let names = self.most(found, TAKEN);
        let covers = |(stack, weight): (&Vec<Candidate>, &i64)| {
            stack.iter().any(|one| names.contains(&&*one.name)).then_some(*weight)
        };
        let covered: i64 = self.by_stack.iter().filter_map(covers).sum();
        let share = |weight: i64| weight as f64 / (self.whole as f64).max(1.0);
        if share(covered) < ENOUGH {
            let [least, most] = [SELDOM, OFTEN].map(|rate| grouped(rate as i64));
            return Found::None(format!(
                "methods that are called from {least} to {most} times a second have {:.0} % of the \
                 samples only",
                share(covered) * 100.0
            ));
        }
        let root = |name: &&str| {
            let (job, weight) = jobs[name];
            let rate = rates.get(*name).copied().unwrap_or(0.0);
            let reason = format!(
                "{}, {} calls/s, {:.0} % of the samples",
                job.told(),
                words::count(rate.round() as u64),
                share(weight) * 100.0
            );
            Some(Root { method: name.parse().ok()?, reason })
        };
        Found::Roots(names.iter().filter_map(root).collect())
    }
}

/// The method of a stack that is called neither too often nor too seldom: one whose job is known, else
/// the outermost.
fn best<'a>(stack: &'a [Candidate], rates: &HashMap<String, f64>) -> Option<&'a Candidate> {
    let fits =
        |one: &&Candidate| rates.get(&one.name).is_some_and(|rate| (SELDOM..=OFTEN).contains(rate));
    // Of equals the first is the outermost.
    stack.iter().filter(fits).min_by_key(|one| one.job)
}

fn candidates(
    profile: &Profile,
    context: ContextId,
    woven: impl Fn(&str) -> bool,
) -> Vec<Candidate> {
    let frames: Vec<_> = profile.contexts.frames(context).collect();
    let mut found = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    // What the frames since the last method of the program say.
    let mut around = Job::Other;
    let mut depth = 0;
    for frame in frames.iter().rev() {
        let id = profile.frames.get(*frame).method;
        let method = profile.methods.get(id);
        if method.kind != MethodKind::Java {
            continue;
        }
        let text = |id| profile.strings.get(id);
        let (class, name) = (text(method.class), text(method.name));
        match plain_name(profile, id, &woven) {
            Some(full) => {
                depth += 1;
                let job = job(class, name, text(method.descriptor)).min(around);
                if (job != Job::Other || depth <= DEPTH) && seen.insert(full.clone()) {
                    found.push(Candidate { name: full, job });
                }
                around = Job::Other;
            }
            // Lambdas and what compilers make up stand between.
            None => around = around.min(runs(class, name)),
        }
    }
    found
}

/// What a frame of the JDK says of what it calls.
fn runs(class: &str, name: &str) -> Job {
    match (class, name) {
        ("java.util.concurrent.ThreadPoolExecutor", "runWorker")
        | ("java.util.concurrent.ForkJoinPool", "runWorker")
        | ("java.util.concurrent.FutureTask" | "java.util.concurrent.ForkJoinTask", _) => Job::Task,
        ("java.util.concurrent.ScheduledThreadPoolExecutor$ScheduledFutureTask", "run")
        | ("java.util.TimerThread", _) => Job::Scheduled,
        _ => Job::Other,
    }
}

/// Parameters that only whoever handles requests has.
const REQUESTS: [&str; 8] = [
    "ServletRequest;",
    "HttpExchange;",
    "Lorg/eclipse/jetty/server/Request;",
    "Lorg/apache/coyote/Request;",
    "Lio/grpc/stub/StreamObserver;",
    "Lio/netty/handler/codec/http/FullHttpRequest;",
    "Lio/undertow/server/HttpServerExchange;",
    "ServerRequest;",
];
const MESSAGES: [&str; 3] = [
    "javax/jms/Message;",
    "jakarta/jms/Message;",
    "Lorg/apache/kafka/clients/consumer/ConsumerRecord",
];

/// What a method of the program is for, by its own name and parameters.
fn job(class: &str, name: &str, descriptor: &str) -> Job {
    let parameters = descriptor.split(')').next().unwrap_or("");
    let handles = ["service", "handle", "invoke", "onRequest", "apply", "process"];
    let servlet = name.strip_prefix("do").is_some_and(|verb| verb.starts_with(char::is_uppercase));
    let takes = |types: &[&str]| types.iter().any(|class| parameters.contains(class));
    if takes(&REQUESTS) && (servlet && name != "doFilter" || handles.contains(&name)) {
        return Job::Request;
    }
    let listens = name.starts_with("on") && class.ends_with("Listener") || name == "onMessage";
    if listens || takes(&MESSAGES) && name.starts_with("on") {
        return Job::Listener;
    }
    Job::Other
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Frame, Method, Row, SeriesInfo, ThreadId};

    /// Stacks of class, method and descriptor, the outermost first, with numbers of samples.
    fn stacks(all: &[(&[[&str; 3]], i64)]) -> Stacks {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::CpuTime));
        for (stack, weight) in all {
            let frames: Vec<_> = stack
                .iter()
                .map(|texts| {
                    let [class, name, descriptor] = texts.map(|text| profile.strings.intern(text));
                    let method = Method { class, name, descriptor, ..Method::default() };
                    let method = profile.methods.intern(method);
                    profile.frames.intern(Frame::of(method))
                })
                .collect();
            let context = profile.contexts.stack(frames);
            profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, *weight));
        }
        Stacks::of(&profile, |class| !class.starts_with("java."))
    }

    fn rates(all: &[(&str, f64)]) -> HashMap<String, f64> {
        all.iter().map(|(name, rate)| ((*name).to_owned(), *rate)).collect()
    }

    fn chosen(stacks: &Stacks, rates: &HashMap<String, f64>) -> Vec<(String, String)> {
        match stacks.choose(rates) {
            Found::Roots(roots) => {
                roots.into_iter().map(|root| (root.method.to_string(), root.reason)).collect()
            }
            Found::None(why) => vec![(String::new(), why)],
        }
    }

    const SERVICE: &str = "(Ljakarta/servlet/ServletRequest;Ljakarta/servlet/ServletResponse;)V";

    #[test]
    fn whoever_handles_requests_is_preferred_to_who_is_outside_of_it() {
        let stacks = stacks(&[(
            &[
                ["java.lang.Thread", "run", "()V"],
                ["org.web.Runner", "run", "()V"],
                ["org.web.Pool", "runJob", "()V"],
                ["shop.Desk", "service", SERVICE],
                ["shop.Orders", "place", "()V"],
            ],
            100,
        )]);
        let none = HashMap::new();
        assert_eq!(stacks.candidates(&none, 1), ["org.web.Runner.run", "shop.Desk.service"]);
        let rates = rates(&[
            ("org.web.Runner.run", 0.0),
            ("org.web.Pool.runJob", 300.0),
            ("shop.Desk.service", 300.0),
        ]);
        assert!(stacks.candidates(&rates, 4).is_empty());
        let found = chosen(&stacks, &rates);
        assert_eq!(found[0].0, "shop.Desk.service");
        assert_eq!(found[0].1, "handles requests, 300 calls/s, 100 % of the samples");
    }

    #[test]
    fn tasks_are_known_by_who_runs_them_also_through_lambdas() {
        let pool = ["java.util.concurrent.ThreadPoolExecutor", "runWorker", "()V"];
        let future = ["java.util.concurrent.FutureTask", "run", "()V"];
        let stacks = stacks(&[(
            &[
                ["shop.Worker", "run", "()V"],
                pool,
                future,
                ["shop.Shop", "lambda$main$0", "()V"],
                ["shop.Shop", "pack", "()V"],
                ["shop.Shop", "fold", "()V"],
            ],
            100,
        )]);
        let rates =
            rates(&[("shop.Worker.run", 50.0), ("shop.Shop.pack", 90.0), ("shop.Shop.fold", 90.0)]);
        let found = chosen(&stacks, &rates);
        assert_eq!((&*found[0].0, found.len()), ("shop.Shop.pack", 1));
        assert!(found[0].1.starts_with("an executor's task, 90 calls/s"), "{found:?}");
    }

    #[test]
    fn a_program_without_such_methods_has_none() {
        let stacks = stacks(&[
            (&[["a.Main", "main", "()V"], ["a.Main", "parse", "()V"]], 90),
            (&[["a.Main", "main", "()V"], ["a.Main", "check", "()V"]], 10),
        ]);
        let rates = rates(&[("a.Main.main", 0.0), ("a.Main.parse", 1e6), ("a.Main.check", 50.0)]);
        let found = chosen(&stacks, &rates);
        assert!(found[0].1.contains("have 10 % of the samples only"), "{found:?}");
    }
}
