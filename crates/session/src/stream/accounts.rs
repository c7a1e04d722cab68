//! What is said of sampled objects and of waits beside their values: facts of the run, and what is missing.

use super::collect::{Allocation, Classes, JniRefs, Live, Locks};
use std::time::Duration;
use tare_profile::facts::{Bytes, keys};
use tare_profile::{LossKind, RunInfo};
use tare_protocol::{AllocStatus, ClassStatus, JniRefsStatus, LockStatus};

/// Notes a loss, if there is any.
pub fn lose(run: &mut RunInfo, kind: LossKind, what: &str, count: u64, reason: &str) {
    if count > 0 {
        run.lose(kind, what, count, reason);
    }
}

/// `status` is what the agent said last.
pub fn of_allocation(allocation: &Allocation, status: Option<&AllocStatus>, run: &mut RunInfo) {
    let facts = &mut run.facts;
    facts.set(keys::ALLOCATION_SAMPLES, &allocation.samples);
    if let Some(status) = status {
        facts.set(keys::ALLOCATION_INTERVAL, &Bytes(status.interval_bytes));
        of_losses(status, run);
        for (count, reason) in status.failures.iter().filter_map(|line| numbered(line)) {
            lose(run, LossKind::Failed, "stacks of allocations", count, reason);
        }
    }
    let Some(live) = &allocation.live else { return };
    let unproven = live.unproven();
    let unproven = (unproven.objects.round() as u64, unproven.bytes.round() as u64);
    of_live(live, unproven, status, run);
}

/// What the agent has lost.
pub fn of_losses(status: &AllocStatus, run: &mut RunInfo) {
    for (count, reason) in status.lost.iter().filter_map(|line| numbered(line)) {
        let (kind, what, reason) = match reason.strip_prefix("not watched: ") {
            Some(reason) => (LossKind::Skipped, "live objects", reason),
            None => (LossKind::Dropped, "allocation samples", reason),
        };
        lose(run, kind, what, count, reason.trim_start_matches("lost: "));
    }
}

/// What lives, and how many objects and bytes are not proven to.
pub fn of_live(
    live: &Live,
    (objects, bytes): (u64, u64),
    status: Option<&AllocStatus>,
    run: &mut RunInfo,
) {
    let facts = &mut run.facts;
    let collections = status.map_or(0, |status| status.collections).max(live.epoch);
    facts.set(keys::COLLECTIONS, &collections);
    if let Some(status) = status {
        facts.set(keys::LIVE_TRACKED, &status.entries);
        facts.set(keys::LIVE_TRACKED_MOST, &status.entries_most);
        facts.set(keys::LIVE_TABLE_BYTES, &Bytes(status.table_bytes));
    }
    facts.set(keys::LIVE_UNPROVEN_OBJECTS, &objects);
    facts.set(keys::LIVE_UNPROVEN_BYTES, &Bytes(bytes));
    let reason = "they survived a collection, and their allocations were lost";
    lose(run, LossKind::Dropped, "live objects", live.lost(), reason);
}

/// Waits for locks.
pub fn of_locks(locks: &Locks, status: &LockStatus, run: &mut RunInfo) {
    let facts = &mut run.facts;
    facts.set(keys::LOCK_THRESHOLD, &Duration::from_nanos(status.threshold_ns));
    facts.set(keys::LOCK_TOLD, &locks.told);
    facts.set(keys::LOCK_WAITS, &locks.contended);
    facts.set(keys::LOCK_OWNERS, &locks.owned);
    facts.set(keys::LOCK_OWNER_STACKS, &locks.with_owner_stack);
    for (count, reason) in status.lost.iter().filter_map(|line| numbered(line)) {
        let (kind, what, reason) = match reason.split_once(": ") {
            Some(("without a stack", reason)) => (LossKind::Failed, "stacks of waits", reason),
            Some(("without a class", reason)) => (LossKind::Failed, "classes of locks", reason),
            Some(("not told", reason)) => (LossKind::Skipped, "waits", reason),
            Some((_, reason)) => (LossKind::Dropped, "waits", reason),
            None => (LossKind::Dropped, "waits", reason),
        };
        lose(run, kind, what, count, reason);
    }
    for (count, reason) in status.failures.iter().filter_map(|line| numbered(line)) {
        lose(run, LossKind::Failed, "stacks of waits", count, reason);
    }
}

/// Classes.
pub fn of_classes(classes: &Classes, status: &ClassStatus, run: &mut RunInfo) {
    let facts = &mut run.facts;
    facts.set(keys::CLASSES_PRESENT, &classes.present);
    facts.set(keys::CLASSES_LOADED, &classes.loads);
    facts.set(keys::CLASSES_LINKED, &classes.links);
    facts.set(keys::CLASSES_UNLOADED, &classes.unloads);
    if let Some([loads, unloads, ours]) = classes.of_jvm {
        facts.set(keys::CLASSES_LOADED_BY_JVM, &loads.saturating_sub(ours));
        facts.set(keys::CLASSES_UNLOADED_BY_JVM, &unloads);
    }
    if status.jvm_loads.is_some() {
        let [told, own, twice, shared] = classes.account().map(Duration::from_nanos);
        facts.set(keys::CLASS_TIME, &Duration::from_nanos(classes.time));
        facts.set(keys::CLASS_TIME_BY_JVM, &told);
        facts.set(keys::CLASS_TIME_OWN, &own);
        facts.set(keys::CLASS_TIME_TWICE, &twice);
        facts.set(keys::CLASS_TIME_SHARED, &shared);
        let before = status.jvm_before_ns.iter().sum();
        facts.set(keys::CLASS_TIME_BEFORE, &Duration::from_nanos(before));
    }
    for (count, reason) in status.lost.iter().filter_map(|line| numbered(line)) {
        let (kind, what, reason) = match reason.split_once(": ") {
            Some(("without a stack", reason)) => (LossKind::Failed, "stacks of loads", reason),
            Some(("not watched", reason)) => (LossKind::Skipped, "classes", reason),
            Some((_, reason)) => (LossKind::Dropped, "events of classes", reason),
            None => (LossKind::Dropped, "events of classes", reason),
        };
        lose(run, kind, what, count, reason);
    }
    for (count, reason) in status.failures.iter().filter_map(|line| numbered(line)) {
        lose(run, LossKind::Failed, "stacks of loads", count, reason);
    }
}

/// References of native code.
pub fn of_jni_refs(refs: &JniRefs, status: &JniRefsStatus, run: &mut RunInfo) {
    let facts = &mut run.facts;
    facts.set(keys::JNI_MADE, &refs.made);
    facts.set(keys::JNI_DELETED, &refs.deleted);
    facts.set(keys::JNI_DELETED_OLDER, &status.before);
    for (count, reason) in status.lost.iter().filter_map(|line| numbered(line)) {
        let (kind, what, reason) = match reason.split_once(": ") {
            Some(("without a stack", reason)) => (LossKind::Failed, "stacks of references", reason),
            Some((_, reason)) => (LossKind::Skipped, "references", reason),
            None => (LossKind::Skipped, "references", reason),
        };
        lose(run, kind, what, count, reason);
    }
    for (count, reason) in status.failures.iter().filter_map(|line| numbered(line)) {
        lose(run, LossKind::Failed, "stacks of references", count, reason);
    }
}

/// What the agent says of waits that it has lost, if there are any. Those that only lack a stack, or
/// that it was not to tell, are none.
pub fn lost_waits(status: &LockStatus) -> Option<String> {
    let lost = status.lost.iter().filter_map(|line| numbered(line));
    let lost = lost.filter_map(|(_, reason)| reason.strip_prefix("lost: "));
    let reasons: Vec<&str> = lost.collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// A number and what it counts, as the agent writes it.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let (count, reason) = line.split_once(' ')?;
    Some((count.parse().ok()?, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_has_lost_is_told_by_what_it_was() {
        let told = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let status = AllocStatus {
            interval_bytes: 65_536,
            collections: 3,
            entries: 5,
            lost: told(&["7 lost: no buffer", "2 not watched: too many at once", "nothing", "x y"]),
            failures: told(&["4 [unknown_Java]"]),
            ..AllocStatus::default()
        };
        let mut run = RunInfo::default();
        of_allocation(&Allocation::new(65_536, true), Some(&status), &mut run);
        let losses: Vec<_> = run
            .losses
            .iter()
            .map(|loss| (loss.kind, &*loss.name, loss.count, &*loss.reason))
            .collect();
        let expected = [
            (LossKind::Dropped, "allocation samples", 7, "no buffer"),
            (LossKind::Skipped, "live objects", 2, "too many at once"),
            (LossKind::Failed, "stacks of allocations", 4, "[unknown_Java]"),
        ];
        assert_eq!(losses, expected);
        assert_eq!(run.facts.get(keys::ALLOCATION_INTERVAL), Some(Bytes(65_536)));
        assert_eq!(run.facts.get(keys::COLLECTIONS), Some(3));
        assert_eq!(run.facts.get(keys::LIVE_TRACKED), Some(5));
        let mut run = RunInfo::default();
        of_allocation(&Allocation::new(65_536, false), Some(&status), &mut run);
        assert!(!run.facts.has(keys::LIVE_TRACKED), "nothing was watched");
    }

    #[test]
    fn waits_are_lost_only_if_they_were_to_be_told() {
        for (line, lost) in [
            ("2 lost: too many threads wait at once", Some("too many threads wait at once")),
            ("3 not told: they began before the recording, or while it was paused", None),
            ("4 without a stack: no buffer for walking it", None),
        ] {
            let status = LockStatus { lost: vec![line.to_owned()], ..LockStatus::default() };
            assert_eq!(lost_waits(&status).as_deref(), lost);
        }
        assert_eq!(lost_waits(&LockStatus::default()), None);
    }
}
