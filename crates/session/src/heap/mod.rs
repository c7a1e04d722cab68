//! Heap snapshots of a running JVM: a copy of it is made in a short pause, and the heap is read from
//! the copy into a file while the program runs on.
//!
//! Who does what: the agent makes the copy and lets it mark and hand out objects; everything that
//! is known of HotSpot is here. `copy` is the conversation, `tables` and `hotspot` say where the JVM
//! keeps what, `classes` and `roots` read it, `dump` is the way out where no copy can be made.
//! `histogram` has HotSpot count its objects, without a copy.

mod classes;
mod copy;
mod dump;
mod fields;
pub mod histogram;
mod hotspot;
mod objects;
mod roots;
mod samples;
mod symbols;
mod tables;

pub use dump::dump_by_hotspot;

use crate::client::{self, Agent, Answered, Turn};
use crate::error::{Context, Error, Result};
use crate::words::plain;
use classes::Classes;
use copy::Copy;
use hotspot::Hotspot;
use objects::Objects;
use roots::Rooted;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tables::Tables;
use tare_attach::Jvm;
use tare_heapdump::snapshot::{Contents, Head, Sample, Writer};
use tare_protocol::heap::wire::{MOST_STACKS, Marked, RawRoot};
use tare_protocol::{
    BatchProgress, EngineName, EnginePlan, HeapPlan, HeapStatus, Request, Response, Status,
};

/// How often a copy that did not come to its end is made anew.
const TRIES: u32 = 3;

/// How long the copy may be silent. Marking is one answer, and takes a large heap long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of these only carriers have stacks that the JVM tells of by itself.
const VIRTUAL_THREAD: &str = "java.lang.VirtualThread";

/// What to take.
#[derive(Clone, Debug)]
pub struct SnapshotPlan {
    /// Contents of objects stay in the JVM.
    pub redact: bool,
    /// After that time the copy ends in any case.
    pub limit: Duration,
    /// Set when it is not wanted any more, as by Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

impl Default for SnapshotPlan {
    fn default() -> Self {
        SnapshotPlan { redact: false, limit: Duration::from_secs(300), stop: Arc::default() }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The copy is there, and the program runs on after a pause.
    Copied { pause: Duration },
    /// Classes are read.
    Classes { read: usize },
    /// What is reachable is known.
    Marked { objects: u64, bytes: u64 },
    /// So much of it has come.
    Image { bytes: u64, of: u64 },
    /// It did not come to its end, and is tried again.
    Again { number: u32 },
}

/// Who watches.
pub type Watch<'a> = dyn FnMut(Stage) + 'a;

/// What was taken.
#[derive(Clone, Debug)]
pub struct Taken {
    pub path: PathBuf,
    /// HotSpot's own dump, and no snapshot of ours.
    pub is_hprof: bool,
    /// For how long the program stood, and how much of that the system took for the copy. Of
    /// HotSpot's dump, as long as it took.
    pub pause: Duration,
    pub fork: Duration,
    /// How long the copy lived.
    pub life: Duration,
    /// The program stood so often: copies that came to no end were made anew.
    pub attempts: u32,
    pub objects: u64,
    pub bytes: u64,
    /// Objects that a recording of allocation has sampled.
    pub samples: usize,
    /// What the snapshot lacks, in sentences for a person.
    pub notes: Vec<String>,
}

/// Takes a snapshot into a new file. A refusal of the agent ([`Error::Agent`]) says why no copy can
/// be made, and what can be done instead; then the program was not stopped.
pub fn take(
    agent: &mut Agent,
    jvm: &Jvm,
    plan: &SnapshotPlan,
    output: &Path,
    watch: &mut Watch<'_>,
) -> Result<Taken> {
    let status = agent.status()?;
    let mut number = 1;
    loop {
        // The JVM's own code finds what stacks of virtual threads hold, and may hang in the copy:
        // at last it is left out.
        let stacks = number < TRIES;
        let began = Instant::now();
        let taken = take_once(agent, jvm, &status, plan, stacks, output, watch);
        if plan.stop.load(Ordering::Relaxed) && taken.is_err() {
            // The agent may be in the midst of the pause: it ends the copy with the connection.
            return Err(stopped());
        }
        let lost = |error: &Error| matches!(error.root(), Error::Gone(_) | Error::Silent(_));
        let how = taken.as_ref().err().filter(|error| lost(error)).and_then(|_| ended(agent));
        let _ = agent.tell(&Request::Stop(EngineName::Heap));
        let error = match taken {
            Ok(taken) => return Ok(Taken { attempts: number, ..taken }),
            Err(error) => error,
        };
        let Some(how) = how else {
            let why = match agent.has_gone() {
                false => return Err(error),
                true if tare_attach::inspect(jvm.pid).is_err() => {
                    format!("JVM {} ended while a snapshot of it was taken", jvm.pid)
                }
                true => "the agent left the JVM meanwhile, as it does when somebody sends it away \
                         (`tare detach`); take the snapshot again"
                    .to_owned(),
            };
            return Err(error.during(why));
        };
        // One that had all its time would not be quicker the next time.
        if number == TRIES || began.elapsed() >= plan.limit {
            return Err(error.during(format!("the copy of the JVM {how}")));
        }
        watch(Stage::Again { number });
        number += 1;
    }
}

/// How the copy of this connection ended. `None` when the agent does not tell.
fn ended(agent: &mut Agent) -> Option<String> {
    // Its socket ends a moment before it is gone.
    for _ in 0..100 {
        if let Some(how) = agent.status().ok()?.heap()?.ended.clone() {
            return Some(how);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Some("did not come to its end".to_owned())
}

fn take_once(
    agent: &mut Agent,
    jvm: &Jvm,
    status: &Status,
    plan: &SnapshotPlan,
    stacks: bool,
    output: &Path,
    watch: &mut Watch<'_>,
) -> Result<Taken> {
    let limit_s = u32::try_from(plan.limit.as_secs()).unwrap_or(u32::MAX);
    let request = Request::Start(EnginePlan::Heap(HeapPlan { redact: plan.redact, limit_s }));
    // The pause may be waited for as long as it takes the JVM to come to one.
    let mut waiting = Waiting(&plan.stop);
    match agent.patiently(PATIENCE, |agent| agent.ask_watched(&request, &mut waiting))? {
        Answered::With(Response::Ok) => {}
        Answered::With(Response::Error { message, .. }) => {
            return Err(Error::Agent(plain(&message).into_owned()));
        }
        _ => return Err(Error::another_question()),
    }
    let [socket] = agent.files_for(&request)?;
    let began = SystemTime::now();
    let told = agent.status()?.heap().cloned().unwrap_or_default();
    watch(Stage::Copied { pause: Duration::from_nanos(told.pause_ns) });
    let mut copy = Copy::greet(socket, plan.limit.max(PATIENCE), Arc::clone(&plan.stop))?;
    let context = || format!("cannot write {}", output.display());
    // A heap has secrets: nobody else may read it.
    let file = File::options().write(true).create_new(true).mode(0o600).open(output);
    let file = file.with_context(context)?;
    let mut unfinished = Unfinished(Some(output));
    let mut capture = Capture::read(&mut copy, plan.redact, watch)?;
    let marked = capture.mark(&mut copy, stacks, watch)?;
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 20, file)).with_context(context)?;
    let mut shown = 0;
    copy.image(|address, bytes| {
        writer.append(address, bytes).with_context(context)?;
        let now = writer.image_bytes();
        // A few dozen times in all.
        if now - shown > marked.bytes / 64 {
            shown = now;
            watch(Stage::Image { bytes: now, of: marked.bytes });
        }
        Ok(())
    })?;
    let rooted = capture.roots(&mut copy)?;
    let taken_ns = copy.hello.taken_ns;
    copy.end();
    let life = began.elapsed().unwrap_or_default();
    let contents = capture.contents(jvm, status, &told, &marked, rooted, taken_ns);
    let complete = writer.image_bytes() == marked.bytes;
    if !complete {
        return Err(Error::Confused(format!(
            "the copy of the JVM handed out {} bytes of {}",
            writer.image_bytes(),
            marked.bytes
        )));
    }
    let (notes, samples) = (contents.head.notes.clone(), contents.samples.len());
    let mut file = writer.finish(&contents).with_context(context)?;
    file.flush().with_context(context)?;
    unfinished.0 = None;
    Ok(Taken {
        path: output.to_owned(),
        is_hprof: false,
        pause: Duration::from_nanos(told.pause_ns),
        fork: Duration::from_nanos(told.fork_ns),
        life,
        attempts: 1,
        objects: marked.objects,
        bytes: marked.bytes,
        samples,
        notes,
    })
}

/// A file of ours that is removed unless it is completed.
struct Unfinished<'a>(Option<&'a Path>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn stopped() -> Error {
    Error::Refused("it was ended before it was done".to_owned())
}

/// Waits for the pause, as long as somebody wants it.
struct Waiting<'a>(&'a AtomicBool);

impl client::Watch for Waiting<'_> {
    fn told(&mut self, _: &BatchProgress) {}

    fn turn(&mut self) -> Turn {
        if self.0.load(Ordering::Relaxed) { Turn::GiveUp } else { Turn::Wait }
    }

    fn given_up(&self, patience: Duration) -> String {
        client::unanswered(patience)
    }
}

/// What is read of a copy beside its objects.
struct Capture {
    hotspot: Hotspot,
    classes: Classes,
    raw: Vec<RawRoot>,
    /// Virtual threads that are not mounted.
    virtuals: Vec<u64>,
    /// Objects that a recording of allocation has sampled.
    samples: Vec<Sample>,
    redact: bool,
    notes: Vec<String>,
}

impl Capture {
    fn read(copy: &mut Copy, redact: bool, watch: &mut Watch<'_>) -> Result<Self> {
        let tables = Tables::read(copy)?;
        let hotspot = Hotspot::find(copy, &tables)?;
        let classes = Classes::read(copy, &hotspot)?;
        watch(Stage::Classes { read: classes.all.len() });
        let raw = roots::raw(copy)?;
        let samples = samples::read(copy)?;
        let mut notes = Vec::new();
        if copy.hello.roots_dropped > 0 {
            notes.push(format!(
                "{} roots beyond the first {} were not kept: what only they hold is missing.",
                copy.hello.roots_dropped,
                raw.len()
            ));
        }
        Ok(Capture { hotspot, classes, raw, virtuals: Vec::new(), samples, redact, notes })
    }

    fn mark(&mut self, copy: &mut Copy, stacks: bool, watch: &mut Watch<'_>) -> Result<Marked> {
        let mut marked = copy.mark(&self.classes.plan(&self.hotspot)?)?;
        if let Some(klass) = self.classes.of_jdk(VIRTUAL_THREAD).map(|class| class.klass) {
            marked = self.look_at_stacks(copy, klass, marked, stacks)?;
        }
        if marked.moved > 0 {
            self.settle(copy)?;
        }
        if marked.strange > 0 {
            self.notes.push(format!(
                "{} references lead to what is no object of a known class; they were passed over.",
                marked.strange
            ));
        }
        watch(Stage::Marked { objects: marked.objects, bytes: marked.bytes });
        Ok(marked)
    }

    /// What virtual threads hold that no carrier runs.
    fn look_at_stacks(
        &mut self,
        copy: &mut Copy,
        klass: u64,
        marked: Marked,
        wanted: bool,
    ) -> Result<Marked> {
        if !wanted {
            self.notes.push(
                "What only stacks of virtual threads hold that were not mounted is missing: the \
                 JVM's code that finds it hung in the copy."
                    .to_owned(),
            );
            return Ok(marked);
        }
        let (virtuals, stacks, marked) = copy.stacks(klass)?;
        self.virtuals = virtuals;
        self.raw = roots::raw(copy)?;
        if stacks.left_out > 0 {
            self.notes.push(format!(
                "What only stacks of {} virtual threads hold is missing: the stacks of {MOST_STACKS} \
                 were looked at.",
                stacks.left_out
            ));
        }
        Ok(marked)
    }

    /// The collector was moving objects: addresses that are not in the image follow them.
    fn settle(&mut self, copy: &mut Copy) -> Result<()> {
        let roots = self.raw.iter_mut().map(|root| &mut root.object);
        let samples = self.samples.iter_mut().map(|sample| &mut sample.object);
        let others = roots.chain(samples);
        let mut places: Vec<&mut u64> = others.chain(self.classes.addresses()).collect();
        let mut now: Vec<u64> = places.iter().map(|place| **place).collect();
        copy.settle(&mut now)?;
        places.iter_mut().zip(now).for_each(|(place, now)| **place = now);
        Ok(())
    }

    fn roots(&self, copy: &mut Copy) -> Result<Rooted> {
        let objects = Objects::new(&self.hotspot, &self.classes, self.redact);
        Rooted::of(&self.raw, &self.virtuals, copy, &self.hotspot, &self.classes, &objects)
    }

    fn contents(
        self,
        jvm: &Jvm,
        status: &Status,
        told: &HeapStatus,
        marked: &Marked,
        rooted: Rooted,
        taken_ns: u64,
    ) -> Contents {
        let head = Head {
            java: status.java_version.clone(),
            vm: status.vm_name.clone(),
            pid: jvm.pid,
            command: status.command.clone(),
            taken: rfc3339(UNIX_EPOCH + Duration::from_nanos(taken_ns)),
            pause_ns: told.pause_ns,
            redacted: self.redact,
            objects: marked.objects,
            bytes: marked.bytes,
            stack_chunk_size_offset: self.classes.chunk_size_offset(),
            complete: self.notes.is_empty(),
            notes: self.notes,
            ..self.hotspot.head
        };
        Contents {
            head,
            edges: self.classes.edges(),
            classes: self.classes.all,
            roots: rooted.roots,
            threads: rooted.threads,
            samples: self.samples,
        }
    }
}

/// A moment as text, in UTC.
fn rfc3339(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days from 1 March of a year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{of_month:02}T{:02}:{:02}:{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
