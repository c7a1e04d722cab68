//! `tare status`: how a JVM and the agent in it are, once or until Ctrl-C.

use crate::cli::{self, StatusArgs};
use crate::commands::list::Row;
use crate::figures::{roughly, say, several, wrap};
use crate::term::{self, BOLD, DIM, WARN, plain};
use anyhow::{Result, anyhow};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_protocol::{
    AllocStatus, ClassStatus, EventCounts, GRACE, HookStatus, LoadedBy, LockStatus, SampleStatus,
    Status,
};
use tare_session::agents;
use tare_session::client::Agent;
use tare_session::engines::counters;
use tare_session::words::{bytes, interval};
use tare_session::{Begun, Figures, Note, Observer, Output, Place, Plan, State, What};

pub fn run(args: &StatusArgs) -> Result<()> {
    let jvm = tare_attach::find(&args.target.jvm)?;
    let mut agent = enter(&jvm, args.target.patience.timeout)?;
    if args.watch {
        return watch(&jvm, &mut agent, args.interval);
    }
    let status = agent.status()?;
    if args.json {
        return term::json(&Json::new(&jvm, &status));
    }
    print(&jvm, &status)
}

/// The agent in the JVM, attached now if it is not there, with a word about it.
pub fn enter(jvm: &Jvm, patience: Duration) -> Result<Agent> {
    if let Some(agent) = agents::present(jvm, patience)? {
        return Ok(agent);
    }
    let began = Instant::now();
    let name = plain(jvm.name());
    errln!("{DIM}Attaching to JVM {} ({name}) …{DIM:#}", jvm.pid);
    let grace = grace()?;
    let agent = agents::attach(jvm, patience, grace)?;
    errln!(
        "{DIM}Attached in {:.0} ms. The agent leaves {} after the last command,\n\
         or at once with `tare detach {}`.{DIM:#}",
        began.elapsed().as_secs_f64() * 1e3,
        term::time(grace.unwrap_or(GRACE)),
        jvm.pid
    );
    Ok(agent)
}

/// The same for callers that come and go.
pub fn enter_quietly(jvm: &Jvm, patience: Duration) -> Result<Agent> {
    Ok(agents::enter(jvm, patience, grace()?)?)
}

/// How long an agent that is attached now is to stay while nobody talks to it, if the user's
/// environment says so.
fn grace() -> Result<Option<Duration>> {
    let Ok(text) = std::env::var("TARE_GRACE") else { return Ok(None) };
    cli::duration(&text).map(Some).map_err(|e| anyhow!("TARE_GRACE={text}: {e}"))
}

fn print(jvm: &Jvm, status: &Status) -> Result<()> {
    let mut out = term::stdout();
    let name = plain(jvm.name());
    writeln!(out, "{BOLD}JVM {}  {name}{BOLD:#}", jvm.pid)?;
    let room = term::width().unwrap_or(usize::MAX).saturating_sub(16).max(20);
    let mut row = |key: &str, value: String| {
        wrap(&value, room).iter().enumerate().try_for_each(|(at, line)| {
            let key = if at == 0 { key } else { "" };
            writeln!(out, "  {DIM}{key:<13}{DIM:#} {line}")
        })
    };
    row("java", format!("{}  ({} {})", status.java_version, status.vm_name, status.vm_version))?;
    row("user", jvm.user_name())?;
    row("uptime", term::time(jvm.uptime))?;
    row("threads", status.threads.to_string())?;
    row("classes", status.classes.to_string())?;
    let how = match status.loaded_by {
        Some(LoadedBy::Launch) => "launched with the program",
        Some(LoadedBy::Attach) => "attached",
        None => "loaded",
    };
    let since = term::time(Duration::from_millis(status.agent_ms));
    row("agent", format!("tare {} (build {}), {how} {since} ago", status.version, status.build))?;
    let on = if status.engines.is_empty() {
        "nothing; the agent is idle".to_owned()
    } else {
        status.engine_names().join(", ")
    };
    row("switched on", on)?;
    if let Some(sampling) = status.sampling() {
        row("sampling", describe(sampling))?;
        for note in &sampling.notes {
            row("", note.clone())?;
        }
    }
    if let Some(alloc) = status.alloc() {
        row("allocation", describe_alloc(alloc))?;
        for note in &alloc.notes {
            row("", note.clone())?;
        }
    }
    if let Some(locks) = status.locks() {
        row("locks", describe_locks(locks))?;
        for note in &locks.notes {
            row("", note.clone())?;
        }
    }
    if let Some(classes) = status.classes() {
        row("classes", describe_classes(classes))?;
        for note in &classes.notes {
            row("", note.clone())?;
        }
    }
    if let Some(refs) = status.jni_refs() {
        let made = roughly(refs.made, "reference");
        let text = format!("{made} made, {} not deleted", term::count(refs.alive));
        row("JNI references", text + &missing(&refs.failures, &refs.lost))?;
    }
    if let Some(hooks) = status.hooks() {
        row("hooks", describe_hooks(hooks))?;
    }
    let others = status.front_ends.saturating_sub(1);
    row(
        "front ends",
        if others == 0 { "only this one".into() } else { format!("this and {others} more") },
    )?;
    row(
        "capabilities",
        format!(
            "{} offered by this JVM; `tare doctor {}` says what that allows",
            status.capabilities.len() + status.capabilities_held.len(),
            jvm.pid
        ),
    )?;
    if status.methods_kept > 0 {
        let bytes = status.methods_kept_bytes + status.exact().map_or(0, |exact| exact.names);
        let methods = roughly(status.methods_kept, "woven method");
        row("remembers", format!("{methods}, in {} kB", bytes.div_ceil(1000)))?;
    }
    if status.refused > 0 {
        row("refused", several(status.refused, "connection"))?;
    }
    if status.panics > 0 {
        let errors = match status.panics {
            1 => "1 internal error of the agent was".to_owned(),
            n => format!("{n} internal errors of the agent were"),
        };
        writeln!(
            out,
            "  {WARN}{errors} stopped; the program was not harmed. Please report this.{WARN:#}"
        )?;
    }
    Ok(())
}

/// A sampling session in a few words.
fn describe(sampling: &SampleStatus) -> String {
    let engine = sampling.trigger.map_or("an unknown engine".to_owned(), |e| e.to_string());
    let clock = if sampling.wall { "by the wall clock" } else { "by processor time" };
    let mut text = format!("{clock}, every {} by {engine}", interval(sampling.interval_ns));
    if sampling.paused {
        text.push_str(", paused");
    }
    text.push_str(&format!(
        "; {} of {}",
        roughly(sampling.samples, "sample"),
        several(sampling.threads_seen, "thread"),
    ));
    text + &missing(&sampling.failures, &sampling.lost)
}

/// Sampled allocation, or watched objects, in a few words.
fn describe_alloc(alloc: &AllocStatus) -> String {
    let mut text = match alloc.interval_bytes {
        0 => "what woven code hands over".to_owned(),
        interval => format!("every {}", bytes(interval)),
    };
    if alloc.paused {
        text.push_str(", paused");
    }
    text.push_str(&format!("; {}", roughly(alloc.samples, "object")));
    if alloc.live {
        text.push_str(&format!(
            "; {} watched ({} not proven to live yet), in {}; {}",
            term::count(alloc.entries),
            term::count(alloc.unproven),
            bytes(alloc.table_bytes),
            several(alloc.collections, "collection"),
        ));
    }
    text + &missing(&alloc.failures, &alloc.lost)
}

/// Waits for locks in a few words.
fn describe_locks(locks: &LockStatus) -> String {
    let mut text = format!("waits from {} on", interval(locks.threshold_ns));
    if locks.paused {
        text.push_str(", paused");
    }
    let time = |nanos| term::time(Duration::from_nanos(nanos));
    text.push_str(&format!(
        "; {} of {} in all, {} waiting for something to happen; {} told, {} with an owner; {} waiting \
         now",
        roughly(locks.contentions, "contention"),
        time(locks.blocked_ns),
        time(locks.waiting_ns),
        term::count(locks.told),
        term::count(locks.owned),
        several(locks.waiting, "thread"),
    ));
    text + &missing(&locks.failures, &locks.lost)
}

/// Classes in a few words.
fn describe_classes(classes: &ClassStatus) -> String {
    let mut text = format!(
        "{} loaded, {} linked, {} unloaded; {} were there before",
        roughly(classes.loads, "class"),
        term::count(classes.links),
        term::count(classes.unloads),
        term::count(classes.present),
    );
    if classes.paused {
        text.push_str(", paused");
    }
    text + &missing(&classes.failures, &classes.lost)
}

/// Hooks in a few words.
fn describe_hooks(hooks: &HookStatus) -> String {
    let share = hooks.spent_ns as f64 * 100.0 / (hooks.cpu_ns as f64).max(1.0);
    let text = format!(
        "{} set, {} ever; {share:.1} % of the program's processor time",
        several(hooks.hooks.len(), "hook"),
        hooks.ever,
    );
    text + &missing(&[], &hooks.lost)
}

fn missing(failures: &[String], lost: &[String]) -> String {
    let failures = failures.iter().map(|what| format!("; failed {what}"));
    failures.chain(lost.iter().map(|what| format!("; lost {what}"))).collect()
}

/// A line per interval until Ctrl-C or the JVM's end. The counters are switched off by the agent
/// when our connection ends, however it ends.
fn watch(jvm: &Jvm, agent: &mut Agent, interval: Duration) -> Result<()> {
    let mut watcher = Watcher(Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&watcher.0))?;
    }
    let what = What::Counters(counters::Plan { every: interval });
    let plan = Plan { what, duration: None, command: Vec::new() };
    let mut nowhere = || Place { output: Output::Writer(Box::new(io::sink())), result: None };
    let begun = tare_session::begin(agent, jvm, &plan, &mut nowhere, &mut watcher)?;
    let Begun::Recording(mut counting) = begun else { return Ok(()) };
    let mut out = term::stdout();
    let mut last = EventCounts::default();
    let mut lines = 0_u32;
    loop {
        let progress = match counting.poll(&mut watcher) {
            State::Going => continue,
            State::Progress(progress) => progress,
            State::Over => break,
        };
        let Figures::Counters(now) = progress.figures else { continue };
        if lines.is_multiple_of(20) {
            writeln!(
                out,
                "{DIM}    TIME  THREADS  +STARTED  -ENDED  CLASSES  +LOADED  COMPILED  GCS  GC TIME{DIM:#}"
            )?;
        }
        lines += 1;
        let new = now.counts.since(last);
        writeln!(
            out,
            "{:>6.1} s  {:>7}  {:>8}  {:>6}  {:>7}  {:>7}  {:>8}  {:>3}  {:>4.1} ms",
            progress.elapsed.as_secs_f64(),
            now.threads,
            new.threads_started,
            new.threads_ended,
            now.classes,
            new.classes_prepared,
            new.methods_compiled,
            new.collections,
            new.collection_ns as f64 / 1e6,
        )?;
        out.flush()?;
        last = now.counts;
    }
    let end = counting.finish(&mut watcher);
    if !watcher.wants_end() && has_ended(jvm) {
        writeln!(out, "JVM {} has ended.", jvm.pid)?;
        return Ok(());
    }
    end.finished?;
    if end.alive { Ok(()) } else { Err(tare_session::Error::Gone(None).into()) }
}

/// Who watches until Ctrl-C.
struct Watcher(Arc<AtomicBool>);

impl Observer for Watcher {
    fn note(&mut self, note: Note) {
        say(note);
    }

    fn wants_end(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether the process is gone, or goes within a moment: a JVM closes its sockets on its way out.
fn has_ended(jvm: &Jvm) -> bool {
    (0..40).any(|round| {
        if round > 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
        tare_attach::inspect(jvm.pid).is_err()
    })
}

/// What `--json` shows. A promise to scripts: fields are added, never renamed.
#[derive(Serialize)]
struct Json<'a> {
    jvm: Row,
    agent_version: &'a str,
    build: &'a str,
    loaded_by: Option<String>,
    agent_ms: u64,
    vm_name: &'a str,
    vm_version: &'a str,
    java_version: &'a str,
    command: String,
    threads: u32,
    classes: u32,
    capabilities: &'a [String],
    capabilities_held: &'a [String],
    front_ends: u32,
    engines: Vec<&'static str>,
    methods_kept: u64,
    methods_kept_bytes: u64,
    panics: u64,
    refused: u64,
}

impl<'a> Json<'a> {
    fn new(jvm: &Jvm, status: &'a Status) -> Self {
        Json {
            jvm: Row::new(jvm),
            agent_version: &status.version,
            build: &status.build,
            loaded_by: status.loaded_by.map(|how| how.to_string()),
            agent_ms: status.agent_ms,
            vm_name: &status.vm_name,
            vm_version: &status.vm_version,
            java_version: &status.java_version,
            command: tare_attach::mask_secrets_in(&status.command),
            threads: status.threads,
            classes: status.classes,
            capabilities: &status.capabilities,
            capabilities_held: &status.capabilities_held,
            front_ends: status.front_ends,
            engines: status.engine_names(),
            methods_kept: status.methods_kept,
            methods_kept_bytes: status.methods_kept_bytes,
            panics: status.panics,
            refused: status.refused,
        }
    }
}
