//! What a recording in which one call of a root in so many is followed tells beside its trees: how
//! many calls there were, and which of them were kept whole.

use std::collections::HashMap;
use tare_arena::layout::Holds;
use tare_arena::{Clock, KeptCall, Snapshot};
use tare_profile::facts::keys;
use tare_profile::{ContextId, Event, EventKind, FieldValue, FrameId, Profile, RunInfo, ThreadId};

/// As of the last look.
#[derive(Default)]
pub(super) struct Followed {
    /// Calls of roots, and those of them that were followed.
    calls: Option<(u64, u64)>,
    kept: Vec<(KeptCall, ThreadId)>,
    clock: Option<Clock>,
    cpu_time: bool,
}

impl Followed {
    /// Given a snapshot and the threads of its trees.
    pub(super) fn look(&mut self, snapshot: &Snapshot, threads: &[ThreadId]) {
        if snapshot.holds != Holds::Followed {
            return;
        }
        self.calls = Some((snapshot.root_calls.0, snapshot.root_calls.1));
        let thread_of = |kept: &KeptCall| kept.thread.and_then(|tree| threads.get(tree)).copied();
        let kept = snapshot.kept.iter();
        let kept = kept.map(|kept| (kept.clone(), thread_of(kept).unwrap_or(ThreadId::UNKNOWN)));
        self.kept = kept.collect();
        self.clock = Some(snapshot.clock);
        self.cpu_time = snapshot.cpu_time;
    }

    pub(super) fn calls(&self) -> Option<(u64, u64)> {
        self.calls
    }

    pub(super) fn account(&self, run: &mut RunInfo) {
        if let Some((all, followed)) = self.calls {
            run.facts.set(keys::ROOT_CALLS, &all);
            run.facts.set(keys::FOLLOWED_CALLS, &followed);
        }
    }

    /// Writes the calls that were kept, one event each and one for each of their contexts.
    pub(super) fn complete(&self, profile: &mut Profile, frames: &HashMap<i32, FrameId>) {
        let Some(clock) = self.clock else { return };
        let nanos = |ticks: u64| if self.cpu_time { ticks } else { clock.nanos(ticks) };
        for (number, (kept, thread)) in (0_i64..).zip(&self.kept) {
            // A thread's processor time does not tell when that was.
            let time = if self.cpu_time { 0 } else { clock.since_start(kept.begun) };
            let tree = &kept.tree;
            let mut contexts = vec![ContextId::ROOT; tree.nodes.len()];
            let mut net: Vec<i64> = tree.nodes.iter().map(|n| n.total.cast_signed()).collect();
            for at in 1..tree.nodes.len() {
                let caller = tree.caller_with_time(at);
                if caller != at {
                    net[caller] -= tree.nodes[at].total.cast_signed();
                }
            }
            let contexts_of = profile.events_of(&EventKind::kept_context());
            for (at, node) in tree.nodes.iter().enumerate().skip(1) {
                let above = contexts[node.parent as usize];
                // What has no name was never added to a tree: there was no memory for it.
                let Some(frame) = frames.get(&node.method) else {
                    contexts[at] = above;
                    continue;
                };
                contexts[at] = profile.contexts.child(above, *frame);
                let event = Event {
                    time,
                    duration: nanos(node.total),
                    thread: *thread,
                    context: contexts[at],
                };
                let own = nanos(net[at].unsigned_abs()).cast_signed() * net[at].signum();
                let fields = [number, node.count.cast_signed(), own].map(FieldValue::Integer);
                profile.events_mut(contexts_of).push(event, &fields);
            }
            let calls = profile.events_of(&EventKind::kept_call());
            let called = tree.nodes.iter().position(|node| node.method == kept.root);
            let context = called.map_or(ContextId::ROOT, |at| contexts[at]);
            let event = Event { time, duration: nanos(kept.took), thread: *thread, context };
            let fields = [number, i64::from(kept.slow), i64::from(kept.drawn)];
            profile.events_mut(calls).push(event, &fields.map(FieldValue::Integer));
        }
    }
}
