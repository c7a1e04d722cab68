//! Where the JDK starts threads, takes tasks over and runs them. With `--follow-threads` these few
//! methods have probes that take the subgraph along: to a thread that is started inside it, and to
//! whoever runs a task that was handed over inside it.
//!
//! The tasks on their way are in a table that the probes keep by themselves; it is here because it
//! must outlive every session in which a probe may be looking at it.

use super::inject::Part;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tare_arena::layout::own::TASKS;
use tare_classfile::descriptor::{MethodDescriptor, slots};
use tare_weaver::{Arg, Call, CallProbe, FrameProbe, MethodInfo, ProbeSet, Probes};

static TABLE: OnceLock<Box<[AtomicU64]>> = OnceLock::new();

const THREAD: &str = "java/lang/Thread";
const BUILDERS: &str = "java/lang/ThreadBuilders";
const POOL: &str = "java/util/concurrent/ThreadPoolExecutor";
const SCHEDULED: &str = "java/util/concurrent/ScheduledThreadPoolExecutor";
const FORK_JOIN_POOL: &str = "java/util/concurrent/ForkJoinPool";
const FORK_JOIN_TASK: &str = "java/util/concurrent/ForkJoinTask";

const RUN: (&str, &str, &str) = ("java/lang/Runnable", "run", "()V");
const RUNNABLE: &[u8] = b"Ljava/lang/Runnable;";
const SCHEDULED_TASK: &[u8] = b"Ljava/util/concurrent/RunnableScheduledFuture;";
const FORKED_TASK: &[u8] = b"Ljava/util/concurrent/ForkJoinTask;";

/// The classes that have such methods.
pub const CLASSES: [&str; 6] = [THREAD, BUILDERS, POOL, SCHEDULED, FORK_JOIN_POOL, FORK_JOIN_TASK];

/// The tasks that are handed over have their place among the first local variables.
const PLACES: u16 = 5;

/// The table, empty, for a new session.
pub fn table() -> &'static [AtomicU64] {
    let table = TABLE.get_or_init(|| (0..TASKS).map(|_| AtomicU64::new(0)).collect());
    table.iter().for_each(|entry| entry.store(0, Relaxed));
    table
}

/// Tasks of this session that found no place in the table, and were not followed.
pub fn lost() -> u64 {
    TABLE.get().and_then(|table| table.first()).map_or(0, |count| count.load(Relaxed))
}

/// The probes of those methods.
pub struct Follow {
    starts: Probes,
    submits: Vec<Probes>,
    resubmits: Probes,
    /// Around `run()` of a task, in a worker thread of a pool and elsewhere.
    works: Probes,
    runs: Probes,
    executes: Probes,
    serves: Probes,
    before: Probes,
    after: Probes,
    handles: Probes,
}

impl Follow {
    pub fn new() -> Result<Self, &'static str> {
        let owner = Part::Tasks.name();
        let given = |name: &str, place: u16| {
            Call::new(&owner, name, "(Ljava/lang/Object;)V", &[Arg::Parameter(place)])
        };
        let serves = || Call::new(&owner, "serves", "()V", &[]);
        let checked = |set| Probes::new(set).map_err(|_| "the probes do not fit their runtime");
        let at_entry = |entry| checked(ProbeSet { entry: Some(entry), ..ProbeSet::default() });
        let end = Call::new(&owner, "ends", "(J)V", &[Arg::Token]);
        let fails =
            Call::new(&owner, "fails", "(Ljava/lang/Throwable;J)V", &[Arg::Exception, Arg::Token]);
        let around = |(class, method, descriptor): (&str, &str, &str), entry, thrown: &Call| {
            let call = CallProbe {
                targets: vec![(class.to_owned(), method.to_owned(), descriptor.to_owned(), 0)],
                before: Call::new(&owner, "begins", "(Ljava/lang/Object;)J", &[Arg::Object]),
                after: end.clone(),
                after_throw: Some(thrown.clone()),
            };
            checked(ProbeSet { entry, call: Some(call), ..ProbeSet::default() })
        };
        Ok(Follow {
            starts: at_entry(given("starts", 0))?,
            submits: (0..PLACES)
                .map(|p| at_entry(given("submits", p)))
                .collect::<Result<_, _>>()?,
            resubmits: at_entry(given("resubmits", 1))?,
            works: around(RUN, Some(serves()), &fails)?,
            runs: around(RUN, None, &fails)?,
            // What a forked task throws is caught at once, and kept for whoever joins it.
            executes: around((FORK_JOIN_TASK, "exec", "()Z"), None, &end)?,
            serves: at_entry(serves())?,
            before: at_entry(given("before", 2))?,
            after: at_entry(Call::new(
                &owner,
                "after",
                "(Ljava/lang/Object;Ljava/lang/Object;)V",
                &[Arg::Parameter(1), Arg::Parameter(2)],
            ))?,
            handles: checked(ProbeSet {
                frames: vec![FrameProbe {
                    enter: Call::new(
                        &owner,
                        "handles",
                        "(Ljava/lang/Object;)J",
                        &[Arg::Parameter(1)],
                    ),
                    exit: end.clone(),
                    exit_throw: Some(end.clone()),
                    caught: None,
                }],
                ..ProbeSet::default()
            })?,
        })
    }

    /// What a method of one of the classes gets.
    pub fn of(&self, class: &str, info: &MethodInfo<'_>) -> Option<&Probes> {
        match (class, info.name) {
            (THREAD, b"start") => Some(&self.starts),
            (THREAD, b"runWith") => Some(&self.runs),
            (THREAD, b"dispatchUncaughtException") => Some(&self.handles),
            (BUILDERS, b"newVirtualThread") => self.submits(info, RUNNABLE),
            (POOL, b"execute") => self.submits(info, RUNNABLE),
            (POOL, b"runWorker") => Some(&self.works),
            // Threads that wait in the former while we come go on with its old code.
            (POOL, b"beforeExecute") => Some(&self.before),
            (POOL, b"afterExecute") => Some(&self.after),
            (SCHEDULED, b"delayedExecute") => self.submits(info, SCHEDULED_TASK),
            (SCHEDULED, b"reExecutePeriodic") => Some(&self.resubmits),
            // Versions differ in which of these is the one that all others call.
            (FORK_JOIN_POOL, b"externalSubmit" | b"poolSubmit") => self.submits(info, FORKED_TASK),
            (FORK_JOIN_POOL, b"runWorker") => Some(&self.serves),
            (FORK_JOIN_TASK, b"fork") => self.submits.first(),
            (FORK_JOIN_TASK, b"doExec") => Some(&self.executes),
            _ => None,
        }
    }

    /// For a method that takes a task over: where its parameter of that type is.
    fn submits(&self, info: &MethodInfo<'_>, task: &[u8]) -> Option<&Probes> {
        let types = MethodDescriptor::parse(info.descriptor)?;
        let receiver = usize::from(info.access_flags & tare_classfile::access::STATIC == 0);
        let before: usize = types.parameters().take_while(|ty| *ty != task).map(slots).sum();
        (before < types.parameter_slots()).then(|| self.submits.get(receiver + before)).flatten()
    }
}
