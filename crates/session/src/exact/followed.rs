//! What a recording in which one call of a root in so many is followed tells beside its trees: how
//! many calls there were, which of them were kept whole, and what a budget made of the number.

use super::Exact;
use crate::following::{Calls, Decision, Following, Look};
use crate::reference_methods::processor;
use std::collections::HashMap;
use tare_arena::layout::Holds;
use tare_arena::{Clock, KeptCall, RootCalls, Snapshot};
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
    /// Where a budget chooses how many are followed, and the process that runs the program.
    pub choosing: Option<(Following, u32)>,
    /// What was decided and is not in the file yet, and what the agent has not heard of.
    decided: Vec<(u64, Decision)>,
    asked: Option<u32>,
}

impl Followed {
    /// Given a snapshot, the threads of its trees, and what a call costs that is counted and timed.
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot,
        threads: &[ThreadId],
        a_call: f64,
        now: u64,
    ) {
        let all = snapshot.followed.roots.iter();
        self.calls =
            Some(all.fold((0, 0), |sum, root| (sum.0 + root.calls, sum.1 + root.followed)));
        self.choose(snapshot, a_call, now);
        let thread_of = |kept: &KeptCall| kept.thread.and_then(|tree| threads.get(tree)).copied();
        let kept = snapshot.followed.kept.iter();
        let kept = kept.map(|kept| (kept.clone(), thread_of(kept).unwrap_or(ThreadId::UNKNOWN)));
        self.kept = kept.collect();
        self.clock = Some(snapshot.clock);
        self.cpu_time = snapshot.cpu_time;
    }

    /// Decides how many are followed from now on.
    fn choose(&mut self, snapshot: &Snapshot, a_call: f64, now: u64) {
        let Some((following, pid)) = &mut self.choosing else { return };
        let nanos = |ticks: u64| super::nanos(snapshot, ticks.cast_signed()) as f64;
        let per_tick = nanos(1 << 30) / f64::from(1 << 30);
        let calls = |root: &RootCalls| Calls {
            all: root.calls as f64,
            time: nanos(root.ticks),
            followed: root.followed as f64,
            followed_time: nanos(root.followed_ticks),
            beside: nanos(root.beside),
            variance: root.variance * per_tick * per_tick,
        };
        let roots = snapshot.followed.roots.iter().map(|root| (root.root, calls(root))).collect();
        let look = Look { roots, processor: processor(*pid), a_call };
        if let Some(decision) = following.look(look) {
            self.decided.push((now, decision));
            self.asked = Some(decision.one_in);
        }
    }

    /// What the agent is to be told, once.
    pub(super) fn take_asked(&mut self) -> Option<u32> {
        self.asked.take()
    }

    /// Writes what was decided since the last time.
    pub(super) fn tell(&mut self, profile: &mut Profile) {
        let table = self.choosing.is_some().then(|| profile.events_of(&EventKind::follow()));
        let Some(table) = table else { return };
        for (time, decision) in self.decided.drain(..) {
            let fields =
                [FieldValue::Integer(decision.one_in.into()), FieldValue::Real(decision.overhead)];
            profile.events_mut(table).push(Event { time, ..Event::default() }, &fields);
        }
    }

    pub(super) fn calls(&self) -> Option<(u64, u64)> {
        self.calls
    }

    pub(super) fn account(&self, run: &mut RunInfo) {
        if let Some((all, followed)) = self.calls {
            run.facts.set(keys::ROOT_CALLS, &all);
            run.facts.set(keys::FOLLOWED_CALLS, &followed);
        }
        if let Some((following, _)) = &self.choosing {
            let (least, most) = following.range();
            run.facts.set(keys::FOLLOWED_ONE_IN, &following.one_in().into());
            run.facts.set(keys::FOLLOWED_LEAST, &least.into());
            run.facts.set(keys::FOLLOWED_MOST, &most.into());
            run.facts.set(keys::OVERHEAD_BUDGET, &following.budget());
            if let Some(overhead) = following.overhead() {
                run.facts.set(keys::OVERHEAD, &overhead);
                run.facts.set(keys::OVERHEAD_SOURCE, &following.source());
            }
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
                    net[caller] -= tree.nodes.get(at).total.cast_signed();
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

impl Exact {
    /// What there is beside the trees, after them.
    pub(super) fn look_at_followed(
        &mut self,
        snapshot: &Snapshot,
        threads: &[ThreadId],
        profile: &mut Profile,
    ) {
        if snapshot.holds == Holds::Followed {
            let a_call = self.costs().map_or(0.0, |costs| costs.timed);
            self.followed.look(snapshot, threads, a_call, self.looked);
            self.followed.tell(profile);
            self.look_at_lengths(snapshot);
        }
    }

    /// Has a budget choose how many calls of roots are followed, of a program in this process.
    pub fn choose_with(&mut self, following: Following, pid: u32) {
        self.followed.choosing = Some((following, pid));
    }

    pub fn following(&self) -> Option<&Following> {
        self.followed.choosing.as_ref().map(|(following, _)| following)
    }

    /// One call of a root in so many is to be followed, if that has changed.
    pub fn take_one_in(&mut self) -> Option<u32> {
        self.followed.take_asked()
    }
}
