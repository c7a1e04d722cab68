//! Locks on a timeline: a track for each thread and lock that others waited for, which shows when
//! they did, and an arrow from each wait to it.
//!
//! A thread may have several locks at once, and what it does meanwhile is drawn on its own track,
//! so each lock has a track of its own.

use super::{Events, micros};
use std::collections::BTreeMap;
use std::io;
use tare_profile::{EventKind, FieldValue, Profile, StringId, ThreadId, Wait};

/// Tracks of threads have lower numbers.
const FIRST_TRACK: u32 = 1 << 30;

/// When somebody waited, and on which track.
type Waits = Vec<(u64, u64, ThreadId)>;

pub(super) fn write(profile: &Profile, events: &mut Events<'_>) -> io::Result<()> {
    let mut had: BTreeMap<(ThreadId, StringId), Waits> = BTreeMap::new();
    let lock = EventKind::lock();
    for (_, table) in profile.all_events().filter(|(_, table)| table.kind().name == lock.name) {
        let [class, owner, operation] =
            ["class", "owner", "operation"].map(|name| table.field_named(name));
        for (row, event) in table.events().enumerate() {
            let field = |field: Option<usize>| field.and_then(|field| table.field(row, field));
            let text = |at| match field(at) {
                Some(FieldValue::Text(text)) => text,
                _ => StringId::EMPTY,
            };
            let wait = Wait::from_name(profile.strings.get(text(operation)));
            let contended = wait.is_some_and(Wait::is_contention);
            if let Some(FieldValue::Thread(owner)) = field(owner)
                && owner != ThreadId::UNKNOWN
                && contended
                && event.duration > 0
            {
                let end = event.time.saturating_add(event.duration);
                let waits = had.entry((owner, text(class))).or_default();
                waits.push((event.time, end, event.thread));
            }
        }
    }
    let mut arrow = 0_u64;
    for (track, ((owner, class), mut waits)) in (FIRST_TRACK..).zip(had) {
        let class = match profile.strings.get(class) {
            "" => "a lock",
            class => class,
        };
        let name = format!("{} has {class}", profile.thread_name(owner));
        events.name("thread_name", track, &name)?;
        waits.sort_unstable();
        let overlaps = |until: &mut u64, wait: &(u64, u64, ThreadId)| {
            let new = wait.0 >= *until;
            *until = (*until).max(wait.1);
            new
        };
        let mut until = 0;
        let mut begins: Vec<usize> = Vec::new();
        for (at, wait) in waits.iter().enumerate() {
            if overlaps(&mut until, wait) || at == 0 {
                begins.push(at);
            }
        }
        for (number, from) in begins.iter().enumerate() {
            let to = begins.get(number + 1).copied().unwrap_or(waits.len());
            let together = &waits[*from..to];
            let end = together.iter().map(|wait| wait.1).max().unwrap_or(0);
            events.slice(&name, "locks", track, (together[0].0, end))?;
            write!(events.out, ",\"args\":{{\"waits\":{}}}}}", together.len())?;
        }
        for (time, _, waiter) in waits {
            arrow += 1;
            for (phase, thread) in [('s', waiter.raw()), ('f', track)] {
                events.begin("waits for", phase, thread)?;
                let ts = micros(time);
                write!(events.out, ",\"cat\":\"locks\",\"id\":{arrow},\"ts\":{ts}")?;
                write!(events.out, "{}}}", if phase == 'f' { ",\"bp\":\"e\"" } else { "" })?;
            }
        }
    }
    Ok(())
}
