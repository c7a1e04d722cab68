//! How long the calls of contexts took, where calls of roots are followed: percentiles out of what
//! the probes have counted.

use super::Exact;
use std::collections::BTreeMap;
use tare_arena::{Clock, Snapshot, spread_ticks};
use tare_profile::{
    ContextId, Event, EventKind, FieldValue, FrameId, LossKind, MethodId, Profile, RunInfo,
};

/// Calls in each stretch of times.
type Calls = BTreeMap<u8, u64>;

/// As of the last look.
#[derive(Default)]
pub(super) struct Lengths {
    by_context: BTreeMap<ContextId, Calls>,
    clock: Option<Clock>,
    cpu_time: bool,
    /// Calls whose length found no room.
    lost: u64,
}

impl Exact {
    /// After the trees: only then contexts are known by their nodes.
    pub(super) fn look_at_lengths(&mut self, snapshot: &Snapshot) {
        let mut by_context: BTreeMap<ContextId, Calls> = BTreeMap::new();
        for spread in &snapshot.followed.spreads {
            let Some((context, _)) = self.seen(spread.at) else { continue };
            let calls = by_context.entry(context).or_default();
            for (number, more) in &spread.calls {
                let sum = calls.entry(*number).or_default();
                *sum = sum.saturating_add(*more);
            }
        }
        self.lengths = Lengths {
            by_context,
            clock: Some(snapshot.clock),
            cpu_time: snapshot.cpu_time,
            lost: snapshot.followed.unspread,
        };
    }
}

impl Lengths {
    pub(super) fn account(&self, run: &mut RunInfo) {
        if self.lost > 0 {
            let why =
                "no room for how long they took: percentiles are without them; more --memory helps";
            run.lose(LossKind::Skipped, "lengths of calls", self.lost, why);
        }
    }

    /// One event for each context, and one for each method.
    pub(super) fn complete(&self, profile: &mut Profile) {
        let Some(clock) = self.clock.filter(|_| !self.by_context.is_empty()) else { return };
        let nanos = |ticks: f64| {
            let ticks = ticks as u64;
            let nanos = if self.cpu_time { ticks } else { clock.nanos(ticks) };
            FieldValue::Integer(i64::try_from(nanos).unwrap_or(i64::MAX))
        };
        let fields = |calls: &Calls| {
            let all = calls.values().fold(0_u64, |sum, more| sum.saturating_add(*more));
            let of = |share| nanos(percentile(calls, share));
            let all = FieldValue::Integer(i64::try_from(all).unwrap_or(i64::MAX));
            [all, of(0.5), of(0.9), of(0.99)]
        };
        let mut by_method: BTreeMap<MethodId, (FrameId, Calls)> = BTreeMap::new();
        let table = profile.events_of(&EventKind::call_lengths());
        for (context, calls) in &self.by_context {
            let event = Event { context: *context, ..Event::default() };
            profile.events_mut(table).push(event, &fields(calls));
            let Some(frame) = profile.contexts.frame(*context) else { continue };
            let method = profile.frames.get(frame).method;
            let sums = &mut by_method.entry(method).or_insert_with(|| (frame, Calls::new())).1;
            for (number, more) in calls {
                let sum = sums.entry(*number).or_default();
                *sum = sum.saturating_add(*more);
            }
        }
        let table = profile.events_of(&EventKind::method_lengths());
        for (frame, calls) in by_method.values() {
            let context = profile.contexts.child(ContextId::ROOT, *frame);
            profile.events_mut(table).push(Event { context, ..Event::default() }, &fields(calls));
        }
    }
}

/// In ticks: this share of the calls took no longer. Within a stretch all lengths are as likely.
fn percentile(calls: &Calls, share: f64) -> f64 {
    let all: f64 = calls.values().map(|calls| *calls as f64).sum();
    let mut left = all * share;
    for (number, calls) in calls {
        let calls = *calls as f64;
        let (first, behind) = spread_ticks(*number);
        if left <= calls {
            return first as f64 + (behind - first) as f64 * left / calls.max(1.0);
        }
        left -= calls;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_between_the_ends_of_their_stretch() {
        // 90 calls of 160 to 176 ticks, and 10 of thousands.
        let (short, long) = (10_u8, 40_u8);
        let calls = Calls::from([(short, 90), (long, 10)]);
        let is_in = |ticks: f64, number| {
            let (first, behind) = spread_ticks(number);
            (first as f64..=behind as f64).contains(&ticks)
        };
        assert!(is_in(percentile(&calls, 0.5), short) && is_in(percentile(&calls, 0.9), short));
        assert!(is_in(percentile(&calls, 0.99), long));
        assert_eq!(percentile(&Calls::new(), 0.5), 0.0);
    }
}
