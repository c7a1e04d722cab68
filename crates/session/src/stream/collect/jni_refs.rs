//! Global and weak references of native code as values of the profile: how many were made, and how
//! many of them are there, by the stack that made them.

use super::{Addresses, Collector, Place};
use tare_arena::samples::{DeclaredKind, StreamEvent};
use tare_profile::{
    JniReferences, Profile, Row, SeriesId, SeriesInfo, ThreadId, TimeAxis, ValueKind,
};

/// Events that may stand back for names. Past it, unnamed methods stay unnamed.
const MOST_WAITING: usize = 1 << 18;

/// Where in an event our fields are.
#[derive(Clone, Copy)]
pub struct JniRefsRecordKind([Option<usize>; 3]);

impl JniRefsRecordKind {
    /// `None` if it is none of this engine's.
    pub fn of(kind: &DeclaredKind) -> Option<Self> {
        let place = |name: &str| kind.fields.iter().position(|(field, _)| field == name);
        let fields = ["weak", "made", "deleted"];
        (kind.name == "jni-refs").then(|| JniRefsRecordKind(fields.map(place)))
    }
}

/// What has changed at a site.
#[derive(Clone, Copy)]
struct Notice {
    time: u64,
    trace: u32,
    weak: bool,
    made: u64,
    deleted: u64,
}

/// What the stream has told of references.
#[derive(Default)]
pub struct JniRefs {
    waiting: Vec<Notice>,
    /// Made and alive: of global ones, then of weak ones.
    series: Option<[SeriesId; 4]>,
    pub made: u64,
    pub deleted: u64,
}

impl JniRefs {
    pub fn push(&mut self, kind: &JniRefsRecordKind, event: &StreamEvent) {
        let value = |at: Option<usize>| at.and_then(|at| event.values.get(at)).copied();
        let [weak, made, deleted] = kind.0.map(|at| value(at).unwrap_or(0));
        let (time, trace) = (event.head.time, event.head.trace);
        self.waiting.push(Notice { time, trace, weak: weak != 0, made, deleted });
    }

    fn series(&mut self, profile: &mut Profile) -> [SeriesId; 4] {
        *self.series.get_or_insert_with(|| {
            JniReferences::ALL.map(|kind| {
                let kind = ValueKind::from(kind);
                profile.add_series(SeriesInfo::new("jni", kind).with_time(TimeAxis::Exact))
            })
        })
    }
}

impl<A: Addresses> Collector<A> {
    /// Adds the references whose stacks have all their names; with `last`, all of them.
    pub(super) fn add_jni_refs(&mut self, profile: &mut Profile, last: bool) {
        let Some(mut refs) = self.jni_refs.take() else { return };
        let series = refs.series(profile);
        let waiting = std::mem::take(&mut refs.waiting);
        let last = last || waiting.len() > MOST_WAITING;
        for notice in waiting {
            let place = match notice.trace {
                // The agent counts those that it has not looked at.
                0 => {
                    let frame = profile.special("[stack not taken]");
                    Some(Place::of(profile.contexts.stack([frame])))
                }
                trace => self.context(profile, trace, last),
            };
            let Some(place) = place else {
                refs.waiting.push(notice);
                continue;
            };
            refs.made = refs.made.saturating_add(notice.made);
            refs.deleted = refs.deleted.saturating_add(notice.deleted);
            let value = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            let (made, alive) = (value(notice.made), value(notice.made) - value(notice.deleted));
            let first = if notice.weak { 2 } else { 0 };
            let time = notice.time.saturating_sub(self.zero);
            for (series, value) in series[first..].iter().zip([made, alive]) {
                if value != 0 {
                    let row = Row::new(place.context, ThreadId::UNKNOWN, value).at(time);
                    profile.series_mut(*series).push(row);
                }
            }
        }
        self.jni_refs = Some(refs);
    }
}
