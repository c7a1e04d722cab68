//! From the records of a stream to a profile: methods, contexts, and whose stack it was. What the
//! engines tell is in `samples`, `allocation` (with `live`), `locks`, `classes`, `jni_refs` and
//! `events`.
//!
//! Names may come after the stacks that they are in, so stacks wait until all their names are
//! there. The stream tells each thing once; what has been read is kept here, since the agent
//! forgets it.

mod allocation;
mod classes;
mod events;
mod jni_refs;
mod live;
mod locks;
mod naming;
mod samples;

pub use allocation::Allocation;
pub use classes::Classes;
pub use jni_refs::JniRefs;
pub use live::{Live, Object};
pub use locks::Locks;
pub use naming::Addresses;
pub use samples::{Clock, Samples};

use crate::java_method::JavaMethod;
use crate::origins::Origins;
use events::Events;
use naming::{class, function};
use std::collections::HashMap;
use tare_arena::samples::{
    Frame as SampleFrame, How, Record, SampleMethod, SampleThread, Special, ThreadType, Trace,
};
use tare_java_names::{jvm_thread, type_name};
use tare_profile::{
    ContextId, Execution, Frame, FrameId, LossKind, MethodKind, Profile, RunInfo, Thread, ThreadId,
    ThreadKind,
};
use tare_protocol::Pattern;

/// A stack of the stream.
enum Stack {
    /// As it came; not all of its names are known.
    Raw(Trace),
    Known(Place),
}

/// Where a stack is in the profile.
#[derive(Clone, Copy)]
struct Place {
    context: ContextId,
    /// It is a virtual thread's.
    is_virtual: bool,
    /// It has no method that is to be shown.
    is_outside: bool,
}

impl Place {
    fn of(context: ContextId) -> Self {
        Place { context, is_virtual: false, is_outside: false }
    }
}

/// Which classes' methods are shown; what others do stays with the caller that is.
#[derive(Clone, Debug, Default)]
pub struct Fitting {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
}

impl Fitting {
    fn has(&self, class: &str) -> bool {
        let fits = |pattern: &Pattern| pattern.fits_class(class);
        (self.include.is_empty() || self.include.iter().any(fits)) && !self.exclude.iter().any(fits)
    }
}

/// The frame of stacks without any method that is to be shown.
const OUTSIDE: &str = "[no method that fits]";

pub struct Collector<A> {
    /// What was asked for: samples, allocation, locks, classes, or several of them.
    pub samples: Option<Samples>,
    pub allocation: Option<Allocation>,
    pub locks: Option<Locks>,
    pub classes: Option<Classes>,
    pub jni_refs: Option<JniRefs>,
    /// What the stream's clock said when the run began.
    zero: u64,
    addresses: A,
    origins: Option<Origins>,
    methods: HashMap<u64, SampleMethod>,
    frames: HashMap<SampleFrame, FrameId>,
    /// Addresses of calls lie before where they return to, those of interrupted code do not.
    callers: HashMap<SampleFrame, FrameId>,
    stacks: HashMap<u32, Stack>,
    threads: HashMap<u32, ThreadId>,
    virtuals: HashMap<u64, ThreadId>,
    /// Virtual threads whose ids could not be had, one for each carrier.
    unknown_virtuals: HashMap<u32, ThreadId>,
    events: Events,
    fitting: Fitting,
}

impl<A: Addresses> Collector<A> {
    pub fn new(
        samples: Option<Samples>,
        allocation: Option<Allocation>,
        zero: u64,
        addresses: A,
    ) -> Self {
        Collector {
            samples,
            allocation,
            locks: None,
            classes: None,
            jni_refs: None,
            zero,
            addresses,
            origins: None,
            methods: HashMap::new(),
            frames: HashMap::new(),
            callers: HashMap::new(),
            stacks: HashMap::new(),
            threads: HashMap::new(),
            virtuals: HashMap::new(),
            unknown_virtuals: HashMap::new(),
            events: Events::default(),
            fitting: Fitting::default(),
        }
    }

    /// Shows only methods that fit; from the first record on.
    pub fn show_only(&mut self, fitting: Fitting) {
        self.fitting = fitting;
    }

    /// Leaves kinds of events out, by their names; from the first record on.
    pub fn leave_out(&mut self, kinds: &'static [&'static str]) {
        self.events.left_out = kinds;
    }

    /// Takes waits for locks, too.
    pub fn with_locks(mut self, locks: Option<Locks>) -> Self {
        self.locks = locks;
        self
    }

    /// Takes classes, too.
    pub fn with_classes(mut self, classes: Option<Classes>) -> Self {
        self.classes = classes;
        self
    }

    /// Takes references of native code, too.
    pub fn with_jni_refs(mut self, refs: Option<JniRefs>) -> Self {
        self.jni_refs = refs;
        self
    }

    /// Has methods named with the jars that they come from.
    pub fn with_origins(mut self, origins: Origins) -> Self {
        self.origins = Some(origins);
        self
    }

    /// Samples, sampled objects and waits without any method that is to be shown.
    pub fn outside(&self) -> u64 {
        let samples = self.samples.as_ref().map_or(0, |samples| samples.outside);
        let objects = self.allocation.as_ref().map_or(0, |allocation| allocation.outside);
        let waits = self.locks.as_ref().map_or(0, |locks| locks.outside);
        let loads = self.classes.as_ref().map_or(0, |classes| classes.outside);
        samples + objects + waits + loads
    }

    /// Notes which files of code or classes were not read, and why.
    pub fn account(&self, run: &mut RunInfo) {
        for file in self.addresses.unread() {
            let reason = "the file did not answer in time; its functions go by their offsets";
            run.lose(LossKind::Skipped, &format!("names of {file}"), 1, reason);
        }
        if self.events.undeclared > 0 {
            let reason = "the stream does not say what kind of event they are";
            run.lose(LossKind::Damaged, "events", self.events.undeclared, reason);
        }
        self.origins.iter().for_each(|origins| origins.account(run));
    }

    /// Adds what the records tell to the profile, which must be the same at each call. With `last`,
    /// what still waits for names goes without.
    pub fn add(
        &mut self,
        profile: &mut Profile,
        records: impl IntoIterator<Item = Record>,
        last: bool,
    ) {
        for record in records {
            match record {
                Record::Sample(sample) => {
                    self.samples.iter_mut().for_each(|samples| samples.push(sample));
                }
                Record::Trace(trace) => {
                    self.stacks.insert(trace.id, Stack::Raw(trace));
                }
                Record::Method(method) => self.name(profile, method),
                Record::Thread(thread) => self.thread(profile, &thread),
                Record::ThreadEnd { thread, time } => {
                    if let Some(id) = self.threads.get(&thread) {
                        profile.threads.get_mut(*id).ended = Some(time.saturating_sub(self.zero));
                    }
                }
                Record::EventKind(kind) => self.declare(profile, &kind),
                Record::Text(text) => self.events.text(text),
                Record::Event(event) => self.push_event(event),
            }
        }
        self.add_events(profile, last);
        self.add_samples(profile, last);
        self.add_allocations(profile, last);
        self.add_waits(profile, last);
        self.add_classes(profile, last);
        self.add_jni_refs(profile, last);
    }

    /// A method's names. A key that comes again for another method leaves the stacks that came
    /// before to the old one.
    fn name(&mut self, profile: &mut Profile, method: SampleMethod) {
        let key = method.key;
        let other = self.methods.get(&key).is_some_and(|known| *known != method);
        if other {
            let of_key = |frame: &SampleFrame| matches!(frame, SampleFrame::Java { method, .. } if *method == key);
            let older: Vec<u32> = self
                .stacks
                .iter()
                .filter(|(_, stack)| {
                    matches!(stack, Stack::Raw(trace) if trace.frames.iter().any(of_key))
                })
                .map(|(id, _)| *id)
                .collect();
            for id in older {
                self.context(profile, id, true);
            }
            self.frames.retain(|frame, _| !of_key(frame));
        }
        self.methods.insert(key, method);
    }

    fn thread(&mut self, profile: &mut Profile, thread: &SampleThread) {
        let name = profile.strings.intern(&thread.name);
        let kind = match thread.kind {
            ThreadType::Java => ThreadKind::Java,
            ThreadType::Native if jvm_thread(&thread.name).is_some() => ThreadKind::Vm,
            ThreadType::Native => ThreadKind::Native,
        };
        let started = (thread.started != 0).then(|| thread.started.saturating_sub(self.zero));
        if let Some(id) = self.threads.get(&thread.number) {
            // It was seen before the JVM told of it, or has another name now.
            let known = profile.threads.get_mut(*id);
            (known.name, known.kind) = (name, kind);
            known.started = known.started.or(started);
            known.java_id = known.java_id.or((thread.java_id != 0).then_some(thread.java_id));
            return;
        }
        let id = profile.threads.push(Thread {
            kind,
            name,
            java_id: (thread.java_id != 0).then_some(thread.java_id),
            os_id: (thread.os_id != 0).then_some(u64::from(thread.os_id)),
            started,
            ended: None,
        });
        self.threads.insert(thread.number, id);
    }

    /// Whose stack it was: that of a virtual thread, or of the thread that carried none.
    fn thread_of(
        &mut self,
        profile: &mut Profile,
        carrier_number: u32,
        java_id: u64,
        is_virtual: bool,
    ) -> ThreadId {
        let carrier = self.threads.get(&carrier_number).copied().unwrap_or(ThreadId::UNKNOWN);
        if java_id != 0 {
            return *self.virtuals.entry(java_id).or_insert_with(|| {
                // It may be mounted on others later.
                let name = match carrier {
                    ThreadId::UNKNOWN => format!("virtual thread {java_id}"),
                    _ => {
                        let first = profile.thread_name(carrier);
                        format!("virtual thread {java_id}, first on {first}")
                    }
                };
                let name = profile.strings.intern(&name);
                let (kind, java_id) = (ThreadKind::Virtual, Some(java_id));
                profile.threads.push(Thread { kind, name, java_id, ..Thread::default() })
            });
        }
        if !is_virtual {
            return carrier;
        }
        *self.unknown_virtuals.entry(carrier_number).or_insert_with(|| {
            let carrier = profile.thread_name(carrier);
            let name = profile.strings.intern(&format!("virtual, id unknown, on {carrier}"));
            profile.threads.push(Thread { kind: ThreadKind::Virtual, name, ..Thread::default() })
        })
    }

    /// Where a trace is in the profile. `None` while names are missing, unless they will not come
    /// any more.
    fn context(&mut self, profile: &mut Profile, id: u32, last: bool) -> Option<Place> {
        let trace = match self.stacks.get(&id) {
            Some(Stack::Known(place)) => return Some(*place),
            Some(Stack::Raw(trace)) => trace,
            None if last => {
                // Its stack was lost, which the agent counts; what it stands for was not.
                let frame = profile.special("[stack lost]");
                return Some(Place::of(profile.contexts.stack([frame])));
            }
            None => return None,
        };
        let known = trace.frames.iter().all(|frame| match frame {
            SampleFrame::Java { method, .. } => self.methods.contains_key(method),
            SampleFrame::Class { text } => self.events.has_text(*text),
            _ => true,
        });
        if !known && !last {
            return None;
        }
        let Some(Stack::Raw(trace)) = self.stacks.remove(&id) else { return None };
        let is_virtual = trace.frames.iter().any(|frame| self.is_virtual(frame));
        // Below the frame that entered a virtual thread are its carrier's.
        let own = trace.frames.iter().position(|frame| self.is_method(frame, ENTERED));
        let frames = &trace.frames[..own.unwrap_or(trace.frames.len())];
        // The class of an object stays, whatever of its stack is shown.
        let classes = frames.iter().take_while(|f| matches!(f, SampleFrame::Class { .. })).count();
        let (classes, frames) = frames.split_at(classes);
        let shown = self.stack_frames(profile, frames);
        let is_outside = shown.is_none();
        let shown = shown.unwrap_or_else(|| vec![profile.special(OUTSIDE)]);
        let classes: Vec<FrameId> =
            classes.iter().map(|frame| self.frame(profile, frame, false)).collect();
        let stack = classes.iter().chain(&shown).rev().copied();
        let place = Place { context: profile.contexts.stack(stack), is_virtual, is_outside };
        self.stacks.insert(id, Stack::Known(place));
        Some(place)
    }

    /// The frames of a trace, innermost first; `None` if it has some, and none is to be shown.
    fn stack_frames(
        &mut self,
        profile: &mut Profile,
        trace: &[SampleFrame],
    ) -> Option<Vec<FrameId>> {
        let (mut in_native, mut in_kernel) = (false, false);
        let mut frames = Vec::with_capacity(trace.len());
        for frame in trace {
            // The first of each was interrupted; the others called.
            let called = match frame {
                SampleFrame::Native { .. } => std::mem::replace(&mut in_native, true),
                SampleFrame::Kernel { .. } => std::mem::replace(&mut in_kernel, true),
                _ => {
                    in_native = true;
                    false
                }
            };
            if !self.is_shown(frame) {
                continue;
            }
            let known = if called { self.callers.get(frame) } else { self.frames.get(frame) };
            let id = match known {
                Some(id) => *id,
                None => {
                    let id = self.frame(profile, frame, called);
                    let cache = if called { &mut self.callers } else { &mut self.frames };
                    cache.insert(*frame, id);
                    id
                }
            };
            frames.push(id);
        }
        // No stack has no method that was asked for, either.
        if frames.is_empty() && (!trace.is_empty() || !self.fitting.include.is_empty()) {
            return None;
        }
        if frames.is_empty() {
            frames.push(profile.special("[no stack]"));
        }
        Some(frames)
    }

    fn is_shown(&self, frame: &SampleFrame) -> bool {
        let class = match frame {
            SampleFrame::Java { method, .. } => self.methods.get(method).map(|m| m.class.as_str()),
            _ => None,
        };
        match class {
            Some(class) => self.fitting.has(class),
            // What has no class is none that was asked for.
            None => self.fitting.include.is_empty(),
        }
    }

    fn frame(&mut self, profile: &mut Profile, frame: &SampleFrame, called: bool) -> FrameId {
        let before = u64::from(called);
        match *frame {
            SampleFrame::Java { method: key, bci, how } => {
                let Some(method) = self.methods.get(&key) else {
                    return profile.special("[unnamed method]");
                };
                let line = bci.and_then(|bci| method.line(bci));
                let Some(method) = JavaMethod::sampled(method) else {
                    return profile.special("[unloaded class]");
                };
                let method = method.add(profile, self.origins.as_ref());
                let execution = match how {
                    How::Unknown => Execution::Unknown,
                    How::Interpreted => Execution::Interpreted,
                    How::Compiled => Execution::Compiled { tier: 0 },
                    How::Inlined => Execution::Inlined,
                    How::Native => Execution::Native,
                };
                profile.frames.intern(Frame { method, bci, line, execution })
            }
            SampleFrame::Native { address } => {
                let symbol = self.addresses.native(address.wrapping_sub(before));
                function(profile, &symbol, MethodKind::Native, Execution::Native)
            }
            SampleFrame::Kernel { address } => {
                let symbol = self.addresses.kernel(address.wrapping_sub(before));
                function(profile, &symbol, MethodKind::Kernel, Execution::Kernel)
            }
            SampleFrame::Special(special) => profile.special(special.name()),
            SampleFrame::Class { text } => {
                let signature = self.events.text_of(text).unwrap_or_default();
                match type_name(signature) {
                    Some(name) => class(profile, &name),
                    None => profile.special("[unknown class]"),
                }
            }
            SampleFrame::Other => profile.special("[frame of an unknown kind]"),
        }
    }

    fn is_virtual(&self, frame: &SampleFrame) -> bool {
        *frame == SampleFrame::Special(Special::Continuation)
            || self.is_method(frame, ENTERED)
            || self.is_method(frame, ("java/lang/VirtualThread", "run"))
    }

    fn is_method(&self, frame: &SampleFrame, (class, name): (&str, &str)) -> bool {
        let SampleFrame::Java { method, .. } = frame else { return false };
        self.methods.get(method).is_some_and(|m| m.class == class && m.name == name)
    }
}

/// What a carrier calls to run a virtual thread.
const ENTERED: (&str, &str) = ("jdk/internal/vm/Continuation", "enterSpecial");

#[cfg(test)]
mod tests;
