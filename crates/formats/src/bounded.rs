//! Stacks of bounded depth, for all that is written. Formats put stacks down whole, so that a
//! recursion of ten thousand calls that was met at each depth would be fifty million frames, and a
//! crafted recording of a kilobyte gigabytes.
//!
//! Nothing is done to a profile of common stacks. In deeper ones, from a depth on, frames that
//! repeat those before them (a method that calls itself, or a circle of a few) join the ones that
//! they repeat. What is still too deep keeps its outermost frames and its innermost one. Values
//! stay.
//!
//! How much all stacks may take together hangs on the size of the file that they come from: numbers
//! of rows, of contexts and of letters in a name are what a crafted file makes as large as it
//! likes.

use tare_profile::{ContextId, Contexts, FrameId, MethodId, Profile, StringId, ThreadId};

/// Stacks of up to this many frames are written as they are. It is many times what frameworks need.
const COMMON_DEPTH: usize = 512;
/// Frames that one stack may have; what the other samplers of the JVM allow at most.
const MOST_FRAMES: usize = 2_048;
/// No stack is cut to fewer frames: its outermost ones, the mark of the cut, and its innermost one.
const FEWEST_FRAMES: usize = 4;
/// Bytes of all stacks together, about, whatever the size of the file that they come from.
const BYTES: u64 = 128 << 20;
/// And no more than these, whatever its size.
const MOST_BYTES: u64 = 8 << 30;
/// Frames for each byte of that file. A sample takes some two bytes at least, so its stack may have
/// twice as many.
const FRAMES_PER_BYTE: u64 = 32;
/// The longest circle of calls that is known as one.
const LONGEST_CIRCLE: usize = 8;

/// The innermost frame of a stack that was cut stands below this one.
pub const CUT: &str = "[… frames folded …]";

/// Which of a profile's stacks are written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Stacks {
    /// Those of every row.
    OfRows,
    /// Each once for each thread.
    OfThreads,
    /// Each once.
    Once,
    /// None: a table has what calls what.
    Table,
}

impl Stacks {
    /// Without those that are written once for all.
    fn merged(self, mut all: Vec<(ContextId, ThreadId)>) -> Vec<(ContextId, ThreadId)> {
        if self != Stacks::OfRows {
            all.sort_unstable();
            all.dedup();
        }
        all
    }
}

/// About how many bytes a frame takes each time it is written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FrameSize {
    pub bytes: u64,
    /// And its name.
    pub named: bool,
}

/// How much may be written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Room {
    /// The size of the file that the profile comes from, if it comes from one.
    pub source: Option<u64>,
    pub frame: FrameSize,
}

impl Room {
    fn bytes(self) -> u64 {
        let frames = self.source.unwrap_or(0).saturating_mul(FRAMES_PER_BYTE);
        // A name that is longer than most is not worth more.
        let each = self.frame.bytes + if self.frame.named { COMMON_NAME } else { 0 };
        frames.saturating_mul(each).clamp(BYTES, MOST_BYTES)
    }
}

/// Letters of a method's name, with its class.
const COMMON_NAME: u64 = 40;

/// Where contexts went, and how many stacks with values are not what they were.
pub struct Bounded {
    pub contexts: Contexts,
    /// By context.
    pub place: Vec<ContextId>,
    pub folded: u64,
    pub cut: u64,
    /// Frames of the longest stack that was left.
    pub limit: usize,
}

/// What is asked of a profile: its stacks, and how they are written.
pub struct Wanted<'p> {
    profile: &'p Profile,
    stacks: Stacks,
    room: Room,
    /// What a frame takes each time it is written, by its number.
    sizes: Vec<u64>,
    depth: Vec<u32>,
    /// The stacks that are written, by context and thread.
    written: Vec<(ContextId, ThreadId)>,
    /// Which contexts have something.
    held: Vec<bool>,
}

impl<'p> Wanted<'p> {
    /// The contexts are those of all rows and events that are written.
    pub fn new(
        profile: &'p Profile,
        stacks: Stacks,
        room: Room,
        rows: impl Iterator<Item = (ContextId, ThreadId)>,
    ) -> Self {
        let mut held = vec![false; profile.contexts.len()];
        let mut written = Vec::new();
        for (context, thread) in rows {
            held[context.index()] = true;
            match stacks {
                Stacks::OfRows | Stacks::OfThreads => written.push((context, thread)),
                Stacks::Once => written.push((context, ThreadId::UNKNOWN)),
                Stacks::Table => {}
            }
        }
        let depth = depths(&profile.contexts);
        let sizes = sizes(profile, room.frame);
        Wanted { profile, stacks, room, sizes, depth, written: stacks.merged(written), held }
    }

    pub fn is_too_deep(&self) -> bool {
        let deepest = self.depth.iter().max().map_or(0, |depth| *depth as usize);
        deepest > COMMON_DEPTH || !self.fits(&self.written, &self.profile.contexts)
    }

    fn fits(&self, written: &[(ContextId, ThreadId)], contexts: &Contexts) -> bool {
        if self.stacks == Stacks::Table {
            return true;
        }
        let mut sizes = vec![0_u64; contexts.len()];
        for (id, parent, frame) in contexts.iter() {
            // The frame that marks a cut is none of the profile's.
            let own = self.sizes.get(frame.index()).copied().unwrap_or(self.room.frame.bytes);
            sizes[id.index()] = sizes[parent.index()].saturating_add(own);
        }
        let all = written.iter().fold(0_u64, |sum, (at, _)| sum.saturating_add(sizes[at.index()]));
        all <= self.room.bytes()
    }

    /// Shorter stacks, with `cut` as the frame that marks a cut.
    pub fn bounded(&self, cut: FrameId) -> Bounded {
        let repeats = repeats(self.profile);
        let mut limit = MOST_FRAMES;
        loop {
            let mut bounded = fold(&self.profile.contexts, &repeats, cut, limit);
            let moved = self.written.iter().map(|(at, of)| (bounded.place[at.index()], *of));
            let fits = self.fits(&self.stacks.merged(moved.collect()), &bounded.contexts);
            if fits || limit <= FEWEST_FRAMES {
                let depth = depths(&bounded.contexts);
                for at in (0..self.held.len()).filter(|at| self.held[*at]) {
                    let place = bounded.place[at];
                    let parent = bounded.contexts.parent(place);
                    if parent.and_then(|parent| bounded.contexts.frame(parent)) == Some(cut) {
                        bounded.cut += 1;
                    } else if depth[place.index()] != self.depth[at] {
                        bounded.folded += 1;
                    }
                }
                return bounded;
            }
            limit /= 2;
        }
    }
}

/// What each frame takes.
fn sizes(profile: &Profile, frame: FrameSize) -> Vec<u64> {
    let text = |id: StringId| profile.strings.get(id).len() as u64;
    let size = |method: MethodId| {
        let method = profile.methods.get(method);
        let name = if frame.named { text(method.class) + text(method.name) } else { 0 };
        frame.bytes + name
    };
    profile.frames.iter().map(|(_, frame)| size(frame.method)).collect()
}

fn depths(contexts: &Contexts) -> Vec<u32> {
    let mut depth = vec![0_u32; contexts.len()];
    for (id, parent, _) in contexts.iter() {
        depth[id.index()] = depth[parent.index()] + 1;
    }
    depth
}

/// For each context that ends with a circle of calls like the one before it, how long that is; or
/// zero.
fn repeats(profile: &Profile) -> Vec<u8> {
    let contexts = &profile.contexts;
    let method = |id: ContextId| contexts.frame(id).map(|frame| profile.frames.get(frame).method);
    // By context: for each length, how many of its last frames are as those that far before them.
    let mut runs = vec![[0_u16; LONGEST_CIRCLE]; contexts.len()];
    let mut out = vec![0; contexts.len()];
    for (id, parent, frame) in contexts.iter() {
        let own = profile.frames.get(frame).method;
        let mut before = parent;
        for length in 1..=LONGEST_CIRCLE {
            if before == ContextId::ROOT {
                break;
            }
            if method(before) == Some(own) {
                let run = runs[parent.index()][length - 1].saturating_add(1);
                runs[id.index()][length - 1] = run;
                if out[id.index()] == 0 && usize::from(run) >= length {
                    out[id.index()] = length as u8;
                }
            }
            before = contexts.parent(before).unwrap_or(ContextId::ROOT);
        }
    }
    out
}

/// A tree in the making, with the depth of each of its nodes.
struct Made {
    contexts: Contexts,
    depth: Vec<usize>,
}

impl Made {
    fn child(&mut self, parent: ContextId, frame: FrameId) -> ContextId {
        let child = self.contexts.child(parent, frame);
        if child.index() == self.depth.len() {
            self.depth.push(self.depth[parent.index()] + 1);
        }
        child
    }
}

fn fold(contexts: &Contexts, repeats: &[u8], cut: FrameId, limit: usize) -> Bounded {
    let common = COMMON_DEPTH.min(limit / 2);
    let mut made = Made { contexts: Contexts::default(), depth: vec![0] };
    let mut place = vec![ContextId::ROOT; contexts.len()];
    for (id, parent, frame) in contexts.iter() {
        let above = place[parent.index()];
        let (depth, repeated) = (made.depth[above.index()], repeats[id.index()]);
        place[id.index()] = if repeated > 0 && depth >= common {
            let mut same = id;
            (0..repeated).for_each(|_| same = contexts.parent(same).unwrap_or(ContextId::ROOT));
            place[same.index()]
        } else if depth == limit {
            // It stands below the mark in place of its caller.
            let mark = made.contexts.parent(above).unwrap_or(ContextId::ROOT);
            made.child(mark, frame)
        } else if depth + 2 == limit {
            let mark = made.child(above, cut);
            made.child(mark, frame)
        } else {
            made.child(above, frame)
        };
    }
    Bounded { contexts: made.contexts, place, folded: 0, cut: 0, limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Row, SeriesId, SeriesInfo, ValueKind};

    /// A row for each context of a chain of methods, by their names.
    fn chain(names: impl Iterator<Item = String>) -> Profile {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::Samples));
        let mut at = ContextId::ROOT;
        for name in names {
            let frame = profile.special(&name);
            at = profile.contexts.child(at, frame);
            profile.series_mut(series).push(Row::new(at, ThreadId::UNKNOWN, 1));
        }
        profile
    }

    const SMALL: FrameSize = FrameSize { bytes: 8, named: false };

    fn bound(profile: &Profile, stacks: Stacks) -> Option<(Profile, Bounded)> {
        bound_in(profile, stacks, Room { source: None, frame: SMALL })
    }

    fn bound_in(profile: &Profile, stacks: Stacks, room: Room) -> Option<(Profile, Bounded)> {
        let series = profile.series(SeriesId::new(0));
        let rows = series.rows().map(|row| (row.context, row.thread));
        let wanted = Wanted::new(profile, stacks, room, rows);
        let mut named = profile.clone();
        let cut = named.special(CUT);
        wanted.is_too_deep().then(|| (named, wanted.bounded(cut)))
    }

    fn names(profile: &Profile, contexts: &Contexts, id: ContextId) -> Vec<String> {
        let frames = contexts.frames(id);
        frames.map(|frame| profile.method_name(profile.frames.get(frame).method)).collect()
    }

    #[test]
    fn common_stacks_are_left_alone() {
        let profile = chain((0..COMMON_DEPTH).map(|_| "a".to_owned()));
        assert!(bound(&profile, Stacks::OfRows).is_none());
    }

    #[test]
    fn a_circle_of_calls_is_folded_and_what_it_calls_stays() {
        for circle in 1..=LONGEST_CIRCLE {
            let deep = (0..9_000).map(|n| format!("m{}", n % circle));
            let profile = chain(deep.chain(["x".to_owned(), "y".to_owned()]));
            let (profile, bounded) = bound(&profile, Stacks::OfRows).unwrap();
            let last = bounded.place[profile.contexts.len() - 1];
            let stack = names(&profile, &bounded.contexts, last);
            assert!(stack.len() < COMMON_DEPTH + 3 * circle + 3, "{circle}: {}", stack.len());
            assert_eq!(stack[..2], ["y", "x"]);
            assert_eq!(stack[2], format!("m{}", (9_000 - 1) % circle));
            assert!(bounded.folded > 8_000 && bounded.cut == 0, "{circle}: {}", bounded.folded);
        }
    }

    #[test]
    fn what_repeats_nothing_is_cut_and_keeps_its_innermost_frame() {
        let profile = chain((0..5_000).map(|n| format!("m{n}")));
        let (profile, bounded) = bound(&profile, Stacks::Once).unwrap();
        let last = bounded.place[profile.contexts.len() - 1];
        let stack = names(&profile, &bounded.contexts, last);
        assert_eq!((stack[0].as_str(), stack[1].as_str()), ("m4999", CUT));
        assert_eq!((stack.len(), stack[2].as_str()), (MOST_FRAMES, "m2045"));
        assert_eq!((bounded.cut, bounded.folded), (5_000 - 2_046, 0));
    }

    #[test]
    fn all_stacks_together_are_bounded() {
        let profile = chain((0..100_000).map(|n| format!("m{n}")));
        let (_, bounded) = bound(&profile, Stacks::OfRows).unwrap();
        let depths = depths(&bounded.contexts);
        let frames: u64 = bounded.place.iter().map(|at| u64::from(depths[at.index()])).sum();
        assert!(frames <= BYTES / 8, "{frames}");
        let (_, table) = bound(&profile, Stacks::Table).unwrap();
        assert_eq!((bounded.limit, table.limit), (128, MOST_FRAMES));
    }
    /// Rows and letters of names cost a crafted file next to nothing.
    #[test]
    fn neither_many_rows_nor_long_names_make_room() {
        let mut profile = chain((0..1_000).map(|n| format!("m{n}")));
        let deepest = ContextId::new(1_000);
        for _ in 0..400_000 {
            let row = Row::new(deepest, ThreadId::UNKNOWN, 1);
            profile.series_mut(SeriesId::new(0)).push(row);
        }
        let (_, bounded) = bound(&profile, Stacks::OfRows).unwrap();
        assert_eq!(bounded.limit, 32, "frames of so many stacks in 128 MiB");
        // The same of an honest file, which has some bytes for each of them.
        let room = Room { source: Some(2_500_000), frame: SMALL };
        let (_, bounded) = bound_in(&profile, Stacks::OfRows, room).unwrap();
        assert_eq!(bounded.limit, 128);

        let long = "x".repeat(20_000);
        let profile = chain((0..1_000).map(|n| format!("{n}{long}")));
        let frame = FrameSize { named: true, ..SMALL };
        let room = Room { source: Some(10_000), frame };
        let (_, bounded) = bound_in(&profile, Stacks::OfThreads, room).unwrap();
        assert!(bounded.limit <= 16, "{}", bounded.limit);
    }
}
