//! A profile as writers want it: stacks that are not too deep, a frame for values that have no stack,
//! and, for formats that could not show them, no values below zero.

use crate::bounded::{CUT, Stacks, Wanted};
use crate::format::Format;
use crate::settled::settled;
use std::borrow::Cow;
use tare_profile::{ContextId, Event, EventTable, LossKind, Profile, Row, Series, SeriesId};

/// The only frame of a value without a stack. Readers take it for what it is.
pub const NO_STACK: &str = "[no stack]";

/// The profile to be written, and what a user should know of the difference.
pub struct Prepared<'p> {
    pub profile: Cow<'p, Profile>,
    pub notes: Vec<String>,
}

pub fn prepared(profile: &Profile, format: Format, chosen: SeriesId) -> Prepared<'_> {
    let mut prepared = Prepared { profile: Cow::Borrowed(profile), notes: Vec::new() };
    prepared.bound_stacks(format, chosen);
    // Only events of our own hold them: other readers count them as if they were above, or not at all.
    if format != Format::Jfr {
        prepared.settle();
    }
    prepared
}

/// What a format writes of stacks.
fn stacks_of(format: Format) -> Stacks {
    match format {
        Format::Collapsed => Stacks::OfThreads { bytes: 40 },
        Format::Pprof => Stacks::OfThreads { bytes: 3 },
        Format::Speedscope => Stacks::OfRows { bytes: 6 },
        Format::Chrome => Stacks::OfRows { bytes: 120 },
        Format::Jfr => Stacks::Once { bytes: 16 },
        Format::Otlp => Stacks::Once { bytes: 3 },
        Format::Html | Format::Firefox | Format::Callgrind => Stacks::Table,
    }
}

impl Prepared<'_> {
    fn bound_stacks(&mut self, format: Format, chosen: SeriesId) {
        let profile = &*self.profile;
        let written = |id: SeriesId| {
            id == chosen
                || !matches!(format, Format::Collapsed | Format::Chrome | Format::Callgrind)
        };
        let series: Vec<&Series> =
            profile.all_series().filter(|(id, _)| written(*id)).map(|(_, s)| s).collect();
        let stackless = |series: &&Series| {
            series.rows().any(|row| row.context == ContextId::ROOT && row.value != 0)
        };
        let stackless = series.iter().any(stackless);
        let rows = series.iter().flat_map(|series| series.rows());
        let rows = rows.map(|row| (row.context, row.thread));
        // Of events, only JFR puts stacks down.
        let events = profile.all_events().filter(|_| format == Format::Jfr);
        let events = events.flat_map(|(_, table)| table.events());
        let events = events.map(|event| (event.context, event.thread));
        let wanted = Wanted::new(profile, stacks_of(format), rows.chain(events));
        let too_deep = wanted.is_too_deep();
        if !too_deep && !stackless {
            return;
        }
        let mut names = without_rows(profile);
        let mut place: Vec<ContextId> = Vec::new();
        if too_deep {
            let cut = names.special(CUT);
            let bounded = wanted.bounded(cut);
            for (count, what) in [
                (bounded.folded, "frames that repeat those before them are folded".to_owned()),
                (bounded.cut, format!("no more than {} frames of each are written", bounded.limit)),
            ] {
                if count > 0 {
                    names.run.lose(LossKind::Folded, "deep stacks", count, &what);
                    let stacks = if count == 1 { "deep stack" } else { "deep stacks" };
                    self.notes.push(format!("{count} {stacks}: {what}"));
                }
            }
            names.contexts = bounded.contexts;
            place = bounded.place;
        } else {
            names.contexts = profile.contexts.clone();
        }
        let no_stack = match stackless {
            true => {
                let frame = names.special(NO_STACK);
                names.contexts.child(ContextId::ROOT, frame)
            }
            false => ContextId::ROOT,
        };
        let place = |context: ContextId| place.get(context.index()).copied().unwrap_or(context);
        for (_, series) in profile.all_series() {
            let mut moved = Series::new(series.info().clone());
            for row in series.rows() {
                let context =
                    if row.context == ContextId::ROOT { no_stack } else { place(row.context) };
                moved.push(Row { context, ..row });
            }
            names.add_made_series(moved);
        }
        for (_, table) in profile.all_events() {
            add_events(&mut names, table, place);
        }
        self.profile = Cow::Owned(names);
    }

    fn settle(&mut self) {
        let contexts = &self.profile.contexts;
        let settled: Vec<(SeriesId, Series)> = self
            .profile
            .all_series()
            .filter_map(|(id, series)| Some((id, settled(contexts, series)?)))
            .collect();
        for (id, series) in settled {
            *self.profile.to_mut().series_mut(id) = series;
        }
    }
}

/// The names of a profile, without contexts, rows and events.
fn without_rows(profile: &Profile) -> Profile {
    let mut out = Profile::new();
    out.strings = profile.strings.clone();
    out.methods = profile.methods.clone();
    out.frames = profile.frames.clone();
    out.threads = profile.threads.clone();
    out.run = profile.run.clone();
    out
}

fn add_events(out: &mut Profile, table: &EventTable, place: impl Fn(ContextId) -> ContextId) {
    let id = out.events_of(table.kind());
    for (row, event) in table.events().enumerate() {
        let values: Vec<_> =
            (0..table.fields().len()).filter_map(|field| table.field(row, field)).collect();
        let event = Event { context: place(event.context), ..event };
        out.events_mut(id).push(event, &values);
    }
}

/// The context that a reader makes of a stack: what was written as one without frames has none.
pub fn as_read(profile: &Profile, context: ContextId) -> ContextId {
    let alone = profile.contexts.parent(context) == Some(ContextId::ROOT);
    let name = profile.contexts.frame(context).filter(|_| alone).map(|frame| {
        let method = profile.method_of(frame);
        profile.strings.get(method.name)
    });
    if name == Some(NO_STACK) { ContextId::ROOT } else { context }
}
