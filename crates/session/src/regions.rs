//! From the arena's figures of code regions to events of a profile: what is new since the last
//! look.

use std::collections::HashMap;
use tare_arena::{RegionFigures, Snapshot, stretch};
use tare_profile::{Event, EventKind, FieldValue, Profile, ThreadId};
use tare_protocol::Region;

/// The figures as they were at the last look, by where they lie.
#[derive(Default)]
pub struct Regions {
    seen: HashMap<u32, RegionFigures>,
}

impl Regions {
    /// Whether figures of a region were seen, by its number.
    pub fn has(&self, region: usize) -> bool {
        self.seen.values().any(|figures| figures.region as usize == region)
    }

    /// Of all regions, at the last look.
    pub fn passages(&self) -> u64 {
        self.seen.values().map(|figures| figures.count).sum()
    }

    /// Adds what is new. `threads` are those of the snapshot's trees, `names` the regions in the
    /// order of their numbers; `nanos` turns ticks into nanoseconds.
    pub fn look(
        &mut self,
        snapshot: &Snapshot,
        threads: &[ThreadId],
        names: &[Region],
        time: u64,
        nanos: impl Fn(u64) -> i64,
        profile: &mut Profile,
    ) {
        for figures in &snapshot.regions {
            let before = self.seen.get(&figures.at);
            let (count, total) = before.map_or((0, 0), |b| (b.count, b.total));
            if figures.count == count {
                continue;
            }
            let name = names.get(figures.region as usize).map(Region::to_string);
            let name = profile.strings.intern(&name.unwrap_or_default());
            let region = FieldValue::Text(name);
            let thread = threads.get(figures.tree).copied().unwrap_or(ThreadId::UNKNOWN);
            let event = Event { time, thread, ..Event::default() };
            let integer = |value: u64| FieldValue::Integer(value.cast_signed());
            let passages = [
                region,
                integer(figures.count - count),
                FieldValue::Integer(nanos(figures.total.saturating_sub(total))),
                FieldValue::Integer(nanos(figures.min)),
                FieldValue::Integer(nanos(figures.max)),
            ];
            let table = profile.events_of(&EventKind::region());
            profile.events_mut(table).push(event, &passages);
            let table = profile.events_of(&EventKind::region_times());
            let known: HashMap<usize, u64> =
                before.map(|b| b.times.iter().copied().collect()).unwrap_or_default();
            for &(number, times) in &figures.times {
                let more = times - known.get(&number).copied().unwrap_or(0);
                if more > 0 {
                    let (from, to) = stretch(number);
                    let (from, to) = (nanos(from), nanos(to + 1));
                    let row =
                        [region, FieldValue::Integer(from), FieldValue::Integer(to), integer(more)];
                    profile.events_mut(table).push(event, &row);
                }
            }
            self.seen.insert(figures.at, figures.clone());
        }
    }
}
