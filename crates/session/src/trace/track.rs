//! One ring's records, made into calls: which methods a thread is in, and for each call that ends
//! its time and context. Where records are missing, what is not known is said to be so.

use super::Shared;
use super::types::Exit;
use std::collections::HashMap;
use tare_analysis::{MethodType, PARTS, Sequence, Sequences, Transition};
use tare_arena::trace::{Record, What};
use tare_profile::{ContextId, Event, FieldValue, Profile, Row, ThreadId};

/// Stands for a method that was entered while records were dropped.
pub const NOT_TRACED: u32 = 0;

/// A thread's place in its ring, and the figures of its contexts.
pub struct Track {
    pub thread: ThreadId,
    /// Their row, if virtual threads have used the ring.
    pub of_virtual_threads: Option<ThreadId>,
    open: Vec<Open>,
    nodes: Vec<Node>,
    children: HashMap<(u32, u32), u32>,
    /// Nodes whose figures are not yet in the profile.
    changed: Vec<u32>,
    /// Ticks so far in which the thread was held up for our sake, pauses included.
    held: u64,
    /// How many of the pauses are in there.
    pauses: usize,
    /// A thread's name as far as it has come, and its bytes that are still to come.
    name: Vec<u8>,
    coming: Option<(u64, u32)>,
    /// Of the thread that had the ring last.
    pub owner: String,
    pub dropped: u64,
    /// Ticks for which threads waited for room in the ring, once the trace is over.
    pub waited: u64,
    /// The last entry or exit, if nothing is missing since.
    last: Option<Passed>,
    /// The agent's empty methods that are under way.
    empty: Vec<MethodType>,
}

/// An entry or exit, as the one after it needs it.
#[derive(Clone, Copy)]
struct Passed {
    time: u64,
    held: u64,
    /// The method that it led out of.
    before: MethodType,
    how: Transition,
}

/// A call under way.
struct Open {
    node: u32,
    method: u32,
    kind: MethodType,
    start: u64,
    /// What `Track::held` was at its start.
    held: u64,
    /// Ticks of what it called, with and without being held up.
    inner: u64,
    inner_net: u64,
}

/// The figures of a context, since they last went to the profile.
struct Node {
    context: ContextId,
    /// The child that was entered last: method and node.
    last: (u32, u32),
    calls: i64,
    /// Ticks of its own: without what held it up, and all that passed.
    net: i64,
    elapsed: i64,
    /// Ticks of its own that were the probes', in parts.
    probes: i64,
    is_changed: bool,
}

impl Node {
    fn of(context: ContextId) -> Self {
        Node { context, last: (0, 0), calls: 0, net: 0, elapsed: 0, probes: 0, is_changed: false }
    }
}

/// A thread as its ring names it.
pub struct Owner {
    pub id: u64,
    pub name: String,
    pub is_virtual: bool,
}

impl Track {
    pub fn new() -> Self {
        Track {
            thread: ThreadId::UNKNOWN,
            of_virtual_threads: None,
            open: Vec::new(),
            nodes: vec![Node::of(ContextId::ROOT)],
            children: HashMap::new(),
            changed: Vec::new(),
            held: 0,
            pauses: 0,
            name: Vec::new(),
            coming: None,
            owner: String::new(),
            dropped: 0,
            waited: 0,
            last: None,
            empty: Vec::new(),
        }
    }

    /// Takes an entry or exit of one of the agent's empty methods.
    pub fn calibrate(&mut self, record: Record, kind: MethodType, known: &mut Sequences) {
        let how = match record.what {
            What::Entry => Transition::Entry,
            What::Exit => Transition::Exit,
            _ => Transition::Thrown,
        };
        let top = self.empty.last().copied().unwrap_or(MethodType::OUTSIDE);
        match how {
            Transition::Entry => self.empty.push(kind),
            _ => drop(self.empty.pop()),
        }
        let after = self.empty.last().copied().unwrap_or(MethodType::OUTSIDE);
        let passed = Passed { time: record.time, held: self.held, before: top, how };
        if let Some((sequence, length)) = self.since(passed, top, after) {
            known.calibrate(sequence, length);
        }
        self.last = if self.empty.is_empty() { None } else { Some(passed) };
    }

    /// What was passed since the last entry or exit, in a method of this type, and how long that
    /// took; `None` if something is missing in between, or if we held the thread up.
    #[inline]
    fn since(
        &self,
        passed: Passed,
        between: MethodType,
        after: MethodType,
    ) -> Option<(Sequence, u32)> {
        let last = self.last.filter(|last| last.held == passed.held)?;
        let length = passed.time.saturating_sub(last.time);
        let (before, first, second) = (last.before, last.how, passed.how);
        let sequence = Sequence { before, first, between, second, after };
        // What takes longer than a second has nothing to tell of probes.
        Some((sequence, u32::try_from(length).unwrap_or(u32::MAX - 1)))
    }

    /// An entry or exit of the program: the probes behind it weigh on the method that was under
    /// way.
    #[inline]
    fn pass(&mut self, time: u64, how: Transition, after: MethodType, shared: &mut Shared) {
        let top = self.open.last().map(|open| (open.node, open.kind));
        let between = top.map_or(MethodType::OUTSIDE, |(_, kind)| kind);
        let passed = Passed { time, held: self.held, before: between, how };
        if let (Some((node, _)), Some((sequence, length))) =
            (top, self.since(passed, between, after))
        {
            let weight = shared.sequences.see(sequence, length);
            self.nodes[node as usize].probes += i64::from(weight);
        }
        self.last = Some(passed);
    }

    /// Takes an entry or an exit; false for what else there is.
    #[inline]
    pub fn take_call(
        &mut self,
        record: Record,
        shared: &mut Shared,
        profile: &mut Profile,
    ) -> bool {
        let exit = match record.what {
            What::Entry => {
                self.enter(record, shared, profile);
                return true;
            }
            What::Exit => Exit::Return,
            What::Thrown => Exit::Exception,
            _ => return false,
        };
        let depth = record.depth as usize;
        self.pass_pauses(record.time, shared);
        if self.open.len() != depth + 1 {
            self.cut(depth + 1, record.time, shared, profile);
            self.fill(depth + 1, record, shared, profile);
        }
        let outer = self.open.len().checked_sub(2).and_then(|outer| self.open.get(outer));
        let after = outer.map_or(MethodType::OUTSIDE, |open| open.kind);
        if let Some(how) = exit.transition() {
            self.pass(record.time, how, after, shared);
        }
        self.close(exit, record.time, shared, profile);
        true
    }

    /// Takes one record. If it completes the name of a thread that from now on uses the ring, that
    /// thread is returned.
    pub fn take(
        &mut self,
        record: Record,
        shared: &mut Shared,
        profile: &mut Profile,
    ) -> Option<Owner> {
        let depth = record.depth as usize;
        match record.what {
            What::Entry | What::Exit | What::Thrown => {
                self.take_call(record, shared, profile);
            }
            What::Caught => {
                self.pass_pauses(record.time, shared);
                self.cut(depth + 1, record.time, shared, profile);
            }
            What::Held => self.held += u64::from(record.value),
            What::Gap => self.gap(record, shared, profile),
            What::Thread => {
                // Whoever had the ring before has left all its methods.
                self.last = None;
                self.cut(0, shared.last, shared, profile);
                self.name.clear();
                self.coming = Some((record.time, record.value));
                return self.owner();
            }
            What::Name => {
                self.name.extend(record.time.to_le_bytes());
                return self.owner();
            }
            What::Compiled | What::Discarded | What::Pause => {}
        }
        None
    }

    /// The thread whose name has come to its end.
    fn owner(&mut self) -> Option<Owner> {
        use tare_arena::layout::record::{UTF16, VIRTUAL};
        let (id, value) = self.coming?;
        let length = (value & 0xffff) as usize;
        if self.name.len() < length {
            return None;
        }
        self.coming = None;
        let raw = &self.name[..length];
        let name = if value & UTF16 == 0 {
            raw.iter().map(|&b| char::from(b)).collect()
        } else {
            let units: Vec<u16> =
                raw.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&units)
        };
        self.owner.clone_from(&name);
        Some(Owner { id, name, is_virtual: value & VIRTUAL != 0 })
    }

    fn enter(&mut self, record: Record, shared: &mut Shared, profile: &mut Profile) {
        self.pass_pauses(record.time, shared);
        let depth = record.depth as usize;
        if self.open.len() != depth {
            self.cut(depth, record.time, shared, profile);
            self.fill(depth, record, shared, profile);
        }
        self.push(record.value, record.time, shared, profile);
    }

    fn push(&mut self, method: u32, time: u64, shared: &mut Shared, profile: &mut Profile) {
        let parent = self.open.last().map_or(0, |open| open.node);
        let node = self.child(parent, method, shared, profile);
        let kind = shared.kind(method, time);
        if method == NOT_TRACED {
            self.last = None;
        } else {
            self.pass(time, Transition::Entry, kind, shared);
        }
        let open =
            Open { node, method, kind, start: time, held: self.held, inner: 0, inner_net: 0 };
        self.open.push(open);
        self.nodes[node as usize].calls += i64::from(method != NOT_TRACED);
        self.change(node);
    }

    /// Methods that were entered while nothing was recorded. Of one that is about to end, the name
    /// is known.
    fn fill(&mut self, depth: usize, record: Record, shared: &mut Shared, profile: &mut Profile) {
        while self.open.len() < depth {
            let is_last = self.open.len() + 1 == depth && record.what != What::Entry;
            let method = if is_last { record.value } else { NOT_TRACED };
            self.push(method, record.time, shared, profile);
        }
        self.last = None;
    }

    fn child(
        &mut self,
        parent: u32,
        method: u32,
        shared: &mut Shared,
        profile: &mut Profile,
    ) -> u32 {
        let last = self.nodes[parent as usize].last;
        if last.0 == method && last.1 != 0 {
            return last.1;
        }
        let known = self.children.get(&(parent, method)).copied();
        let node = known.unwrap_or_else(|| {
            let frame = shared.frame(method, profile);
            let context = profile.contexts.child(self.nodes[parent as usize].context, frame);
            let node = self.nodes.len() as u32;
            self.nodes.push(Node::of(context));
            self.children.insert((parent, method), node);
            node
        });
        self.nodes[parent as usize].last = (method, node);
        node
    }

    /// Ends all calls but the outermost `depth`: how is not known.
    fn cut(&mut self, depth: usize, time: u64, shared: &mut Shared, profile: &mut Profile) {
        while self.open.len() > depth {
            self.last = None;
            self.close(Exit::Cut, time, shared, profile);
        }
    }

    /// Ends all calls, which the trace does not live to see.
    pub fn end(&mut self, time: u64, shared: &mut Shared, profile: &mut Profile) {
        self.pass_pauses(time, shared);
        while !self.open.is_empty() {
            self.close(Exit::Running, time, shared, profile);
        }
    }

    fn close(&mut self, exit: Exit, time: u64, shared: &mut Shared, profile: &mut Profile) {
        let Some(open) = self.open.pop() else { return };
        let elapsed = time.saturating_sub(open.start);
        let held = (self.held - open.held).min(elapsed);
        let net = elapsed - held;
        if let Some(outer) = self.open.last_mut() {
            outer.inner += elapsed;
            outer.inner_net += net;
        }
        let node = &mut self.nodes[open.node as usize];
        node.elapsed += elapsed.cast_signed() - open.inner.cast_signed();
        node.net += net.cast_signed() - open.inner_net.cast_signed();
        let context = node.context;
        self.change(open.node);
        shared.last = shared.last.max(time);
        let (from, to) = (shared.clock.nanos(open.start), shared.clock.nanos(time));
        let event = Event { time: from, duration: to - from, thread: self.thread, context };
        if open.method == NOT_TRACED {
            return; // Since when, and which method, is not known: no call to tell of.
        }
        let texts = &shared.texts;
        profile.events_mut(shared.calls).push(
            event,
            &[
                FieldValue::Text(texts.exits[exit as usize]),
                FieldValue::Text(texts.types[open.kind.index()]),
                FieldValue::Integer(shared.clock.length(held).cast_signed()),
            ],
        );
    }

    /// Records were dropped; methods deeper than the least depth meanwhile are over.
    fn gap(&mut self, record: Record, shared: &mut Shared, profile: &mut Profile) {
        self.pass_pauses(record.time, shared);
        self.cut(record.depth as usize, record.time, shared, profile);
        self.last = None;
        let time = shared.clock.nanos(record.time);
        let context =
            self.open.last().map_or(ContextId::ROOT, |open| self.nodes[open.node as usize].context);
        let event = Event { time, duration: 0, thread: self.thread, context };
        let events = FieldValue::Integer(i64::from(record.value));
        profile.events_mut(shared.gaps).push(event, &[events]);
    }

    /// Pauses that were over by a time hold this thread up, too.
    fn pass_pauses(&mut self, time: u64, shared: &Shared) {
        while let Some((_, length)) = shared.pauses.get(self.pauses).filter(|p| p.0 <= time) {
            self.held += length;
            self.pauses += 1;
        }
    }

    fn change(&mut self, node: u32) {
        let known = &mut self.nodes[node as usize];
        if !known.is_changed {
            known.is_changed = true;
            self.changed.push(node);
        }
    }

    /// Puts what the contexts came to since the last time into the profile.
    pub fn tell(&mut self, shared: &Shared, profile: &mut Profile, time: u64) {
        for node in std::mem::take(&mut self.changed) {
            let node = &mut self.nodes[node as usize];
            node.is_changed = false;
            let figures = [
                (shared.series.calls, std::mem::take(&mut node.calls)),
                (shared.series.net, shared.clock.signed(std::mem::take(&mut node.net))),
                (shared.series.elapsed, shared.clock.signed(std::mem::take(&mut node.elapsed))),
                (shared.series.probes, shared.clock.signed(node.probes / i64::from(PARTS))),
            ];
            node.probes %= i64::from(PARTS);
            for (series, value) in figures.into_iter().filter(|(_, value)| *value != 0) {
                let row = Row::new(node.context, self.thread, value).at(time);
                profile.series_mut(series).push(row);
            }
        }
    }
}
