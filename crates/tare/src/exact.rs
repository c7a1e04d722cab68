//! From the arena of an exact recording to a profile. What the arena holds is `tare-arena`'s
//! business, what a profile is `tare-profile`'s; this file only knows how one becomes the other.

use crate::client::{self, Found};
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use tare_arena::{MethodName, Names, Snapshot, Tree, layout};
use tare_attach::Jvm;
use tare_profile::{
    ContextId, Frame, FrameId, LossKind, Method, Profile, Row, RunInfo, SeriesInfo, Thread,
    ThreadKind, ValueKind,
};
use tare_protocol::{ExactStatus, Request};

/// How long a JVM may take to answer somebody who only looks.
const PATIENCE: Duration = Duration::from_secs(10);

/// The memory that the JVM shares with us. It outlives the JVM for as long as we hold it.
pub struct Arena {
    trees: File,
    names: File,
}

impl Arena {
    pub fn new([trees, names]: [File; 2]) -> Self {
        Arena { trees, names }
    }

    /// What is there now. The trees come first: every name in them is logged before.
    pub fn read(&self) -> Result<(Snapshot, Names)> {
        let head = read_up_to(&self.trees, Snapshot::HEADER as u64)?;
        let bytes = read_up_to(&self.trees, Snapshot::used(&head)?)?;
        let snapshot = Snapshot::read(&bytes)?;
        let length = self.names.metadata().context("cannot ask for the length of the names")?.len();
        Ok((snapshot, Names::read(&read_up_to(&self.names, length)?)))
    }
}

fn read_up_to(file: &File, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length)?];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e).context("cannot read the memory shared with the JVM"),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

/// The profile, as it is now, of a JVM that somebody records at this moment.
pub fn live(who: &str) -> Result<Profile> {
    let jvm = tare_attach::find(who)?;
    let Found::Ours(mut agent) = client::find(&jvm, PATIENCE)? else {
        bail!("JVM {} is not being recorded; begin with `tare record --exact {0}`", jvm.pid);
    };
    let Some(status) = agent.status()?.exact else {
        bail!("JVM {} is not being recorded; begin with `tare record --exact {0}`", jvm.pid);
    };
    let arena = Arena::new(agent.tell_for_files(&Request::ExactOpen)?);
    let (snapshot, names) = arena.read()?;
    let mut run = RunInfo { duration: status.elapsed_ns, ..run_info(&jvm) };
    add_refusals(&mut run, &status);
    Ok(to_profile(&snapshot, &names, run))
}

/// What is known of a run before anything is measured.
pub fn run_info(jvm: &Jvm) -> RunInfo {
    let uname = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    RunInfo {
        tool: format!("tare {}", tare_protocol::VERSION),
        command_line: jvm.command_line.clone(),
        main_class: jvm.name().to_owned(),
        pid: Some(jvm.pid),
        jdk: jvm.java_version.clone().unwrap_or_default(),
        vm: crate::commands::list::vm(jvm),
        host: text(uname.nodename()),
        os: format!("{} {}", text(uname.sysname()), text(uname.release())),
        cpus: std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok()),
        ..RunInfo::default()
    }
}

/// Notes what was not woven.
pub fn add_refusals(run: &mut RunInfo, status: &ExactStatus) {
    for refused in &status.refused {
        run.lose(LossKind::Refused, &refused.what, refused.count, &refused.reason);
    }
}

/// Calls and contexts of a snapshot, for a line of progress.
pub fn totals(snapshot: &Snapshot) -> (u64, usize) {
    let nodes = snapshot.trees.iter().flat_map(|tree| &tree.nodes);
    nodes.fold((0, 0), |(calls, contexts), node| {
        let ours = node.method == layout::CALIBRATION;
        (calls + if ours { 0 } else { node.count }, contexts + usize::from(node.method > 0))
    })
}

/// Turns trees of nodes into contexts with invocations and, when timed, net times.
pub fn to_profile(snapshot: &Snapshot, names: &Names, run: RunInfo) -> Profile {
    let mut profile = Profile::new();
    profile.run = run;
    let calls = profile.add_series(SeriesInfo::new("exact", ValueKind::Invocations));
    let kind = if snapshot.cpu_time { ValueKind::CpuTime } else { ValueKind::WallTime };
    let time = snapshot.timed.then(|| profile.add_series(SeriesInfo::new("exact", kind)));
    let mut frames = HashMap::new();
    let mut merged = HashMap::new();
    for tree in &snapshot.trees {
        // The trees that virtual threads borrow, and those used again, mean nothing one by one.
        let thread = match (tree.of_virtual_threads, tree.shared) {
            (false, false) => add_thread(&mut profile, tree),
            kind => *merged.entry(kind).or_insert_with(|| add_thread(&mut profile, tree)),
        };
        let net = snapshot.timed.then(|| net_times(snapshot, tree));
        let mut contexts: Vec<ContextId> = Vec::with_capacity(tree.nodes.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            let nothing = node.method == layout::REST && node.count == 0;
            if node.method == layout::ROOT || node.method == layout::CALIBRATION || nothing {
                contexts.push(ContextId::ROOT);
                continue;
            }
            let frame = *frames
                .entry(node.method)
                .or_insert_with(|| add_frame(&mut profile, snapshot, names, node.method));
            let context = profile.contexts.child(contexts[node.parent as usize], frame);
            contexts.push(context);
            let count = i64::try_from(node.count).unwrap_or(i64::MAX);
            profile.series_mut(calls).push(Row::new(context, thread, count));
            if let (Some(time), Some(net)) = (time, &net) {
                profile.series_mut(time).push(Row::new(context, thread, net[at]));
            }
        }
    }
    if snapshot.refused > 0 {
        let reason =
            format!("the memory for trees was full; {} has the calls", rest_name(snapshot));
        profile.run.lose(LossKind::Folded, "calls in new contexts", snapshot.refused, &reason);
    }
    if snapshot.lost > 0 {
        let reason = "there was no memory left to count them";
        profile.run.lose(LossKind::Dropped, "calls", snapshot.lost, reason);
    }
    profile
}

fn add_thread(profile: &mut Profile, tree: &Tree) -> tare_profile::ThreadId {
    let (kind, name) = if tree.of_virtual_threads {
        (ThreadKind::Virtual, "virtual threads")
    } else if tree.shared {
        (ThreadKind::Java, "several threads that have ended")
    } else {
        (ThreadKind::Java, tree.name.as_str())
    };
    let name = profile.strings.intern(name);
    let java_id = (!tree.of_virtual_threads && !tree.shared).then_some(tree.thread);
    profile.threads.push(Thread { kind, name, java_id, ..Thread::default() })
}

/// What calls without a node of their own are shown as.
fn rest_name(snapshot: &Snapshot) -> &'static str {
    match (snapshot.depth > 0, snapshot.refused > 0) {
        (false, _) => "[no room]",
        (true, false) => "[deeper]",
        (true, true) => "[deeper or no room]",
    }
}

fn add_frame(profile: &mut Profile, snapshot: &Snapshot, names: &Names, id: i32) -> FrameId {
    if id == layout::REST {
        return profile.special(rest_name(snapshot));
    }
    let unknown =
        MethodName { class: "[unknown]".into(), name: id.to_string(), ..Default::default() };
    let known = u32::try_from(id).ok().and_then(|id| names.get(id)).unwrap_or(&unknown);
    let mut intern = |text: &str| profile.strings.intern(text);
    let method = Method {
        class: intern(&known.class.replace('/', ".")),
        name: intern(&known.name),
        descriptor: intern(&known.descriptor),
        file: intern(&known.file),
        loader: intern(&loader_name(known.loader)),
        line: (known.line > 0).then_some(known.line),
        ..Method::default()
    };
    let method = profile.methods.intern(method);
    profile.frames.intern(Frame::of(method))
}

fn loader_name(number: u32) -> String {
    if number == 0 { "boot".to_owned() } else { format!("loader {number}") }
}

/// For each node the nanoseconds that were its own, invocations under way included.
fn net_times(snapshot: &Snapshot, tree: &Tree) -> Vec<i64> {
    let clock = snapshot.clock;
    let gross: Vec<i64> = tree
        .nodes
        .iter()
        .map(|node| {
            if snapshot.cpu_time {
                // In nanoseconds already; and only the thread itself could read its clock now.
                return i64::try_from(node.total).unwrap_or(i64::MAX);
            }
            let under_way = if node.start == 0 { 0 } else { clock.now.saturating_sub(node.start) };
            i64::try_from(clock.nanos(node.total + under_way)).unwrap_or(i64::MAX)
        })
        .collect();
    let mut net = gross.clone();
    for (at, node) in tree.nodes.iter().enumerate() {
        if node.parent as usize != at {
            net[node.parent as usize] -= gross[at];
        }
    }
    net
}
