//! A profile as writers want it: stacks that are not too deep, names that are not too long, a frame
//! for values that have no stack, and, for formats that could not show them, no values below zero.

use crate::bounded::{CUT, FrameSize, Room, Stacks, Wanted};
use crate::format::Format;
use crate::settled::settled;
use std::borrow::Cow;
use tare_profile::{
    ContextId, EventTable, FieldValue, LossKind, MethodId, Profile, Row, Series, SeriesId,
    StringId, Strings, ThreadId,
};

/// The only frame of a value without a stack. Readers take it for what it is.
pub const NO_STACK: &str = "[no stack]";

/// Bytes of a text. HotSpot allows as many for a name, and native ones are seldom as long.
const LONGEST_NAME: usize = 1 << 16;
const SHORTEST_NAME: usize = 64;
/// Bytes of all names together, whatever the size of the file that they come from; for each byte of
/// that file, which has some for each call of a trace; and at most.
const NAMES: u64 = 64 << 20;
const NAMES_PER_BYTE: u64 = 64;
const MOST_NAMES: u64 = 8 << 30;

/// The profile to be written, and what a user should know of the difference.
pub struct Prepared<'p> {
    pub profile: Cow<'p, Profile>,
    pub notes: Vec<String>,
}

/// `source` is the size of the file that the profile comes from.
pub fn prepared(
    profile: &Profile,
    format: Format,
    chosen: SeriesId,
    source: Option<u64>,
) -> Prepared<'_> {
    let mut prepared = Prepared { profile: Cow::Borrowed(profile), notes: Vec::new() };
    prepared.bound_names(format, chosen, source);
    prepared.bound_stacks(format, chosen, source);
    // Only events of our own hold them: other readers count them as if they were above, or not at
    // all.
    if format != Format::Jfr {
        prepared.settle();
    }
    prepared
}

/// What a format writes of stacks, and about what it takes.
fn stacks_of(format: Format) -> (Stacks, FrameSize) {
    let (stacks, bytes) = match format {
        Format::Collapsed => (Stacks::OfThreads, 1),
        Format::Pprof => (Stacks::OfThreads, 3),
        Format::Speedscope => (Stacks::OfRows, 6),
        Format::Chrome => (Stacks::OfRows, 80),
        Format::Jfr => (Stacks::Once, 16),
        Format::Otlp => (Stacks::Once, 3),
        Format::Html | Format::Firefox | Format::Callgrind => (Stacks::Table, 0),
    };
    // The others write a name once and then its number.
    let named = matches!(format, Format::Collapsed | Format::Chrome);
    (stacks, FrameSize { bytes, named })
}

impl Prepared<'_> {
    /// Shortens texts that are longer than any name is, so that all names of methods together fit.
    fn bound_names(&mut self, format: Format, chosen: SeriesId, source: Option<u64>) {
        let profile = &*self.profile;
        let room = source.unwrap_or(0).saturating_mul(NAMES_PER_BYTE).clamp(NAMES, MOST_NAMES);
        let mut limit = LONGEST_NAME;
        while limit > SHORTEST_NAME && names_up_to(profile, limit, format, chosen) > room {
            limit /= 2;
        }
        let too_long = profile.strings.iter().filter(|(_, text)| text.len() > limit).count() as u64;
        if too_long == 0 {
            return;
        }
        let mut strings = Strings::default();
        for (_, text) in profile.strings.iter().skip(1) {
            strings.push(&shortened(text, limit));
        }
        let what = format!("no more than {limit} bytes of each are written");
        self.notes.push(format!("{too_long} long names: {what}"));
        let profile = self.profile.to_mut();
        profile.strings = strings;
        profile.run.lose(LossKind::Folded, "long names", too_long, &what);
    }

    fn bound_stacks(&mut self, format: Format, chosen: SeriesId, source: Option<u64>) {
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
        let (stacks, frame) = stacks_of(format);
        let room = Room { source, frame };
        let wanted = Wanted::new(profile, stacks, room, rows.chain(events));
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

/// Bytes of all names that are written if none of their parts has more than these: of each method
/// and thread once, and again wherever the format puts the name itself.
fn names_up_to(profile: &Profile, limit: usize, format: Format, chosen: SeriesId) -> u64 {
    let text = |id: StringId| profile.strings.get(id).len().min(limit) as u64;
    let method = |id: MethodId| {
        let method = profile.methods.get(id);
        text(method.class) + text(method.name)
    };
    let thread = |id: ThreadId| text(profile.threads.get(id).name);
    let methods = profile.methods.iter().map(|(id, row)| {
        let more = [row.descriptor, row.file].into_iter().map(text).sum::<u64>();
        method(id) + more
    });
    let mut all =
        methods.sum::<u64>() + profile.threads.iter().map(|(id, _)| thread(id)).sum::<u64>();
    if format == Format::Collapsed {
        all += profile.series(chosen).rows().map(|row| thread(row.thread)).sum::<u64>();
    }
    let innermost = |context: ContextId| {
        let frame = profile.contexts.frame(context);
        frame.map_or(0, |frame| method(profile.frames.get(frame).method))
    };
    if matches!(format, Format::Chrome | Format::Firefox | Format::Jfr) {
        for (_, table) in profile.all_events() {
            for (row, event) in table.events().enumerate() {
                all += innermost(event.context);
                let fields = (0..table.fields().len()).filter_map(|at| table.field(row, at));
                all += fields
                    .map(|value| match value {
                        FieldValue::Text(id) => text(id),
                        FieldValue::Thread(id) => thread(id),
                        FieldValue::Context(id) => innermost(id),
                        FieldValue::Integer(_) | FieldValue::Real(_) => 0,
                    })
                    .sum::<u64>();
            }
        }
    }
    all
}

/// Its beginning and its end, which tells more of a name than its middle.
fn shortened(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let half = (limit - "…".len()) / 2;
    let head = (0..=half).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let tail = (text.len() - half..).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    Cow::Owned(format!("{}…{}", &text[..head], &text[tail..]))
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
    for row in 0..table.len() {
        let (event, values) = table.moved_row(row, &place, &place);
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
