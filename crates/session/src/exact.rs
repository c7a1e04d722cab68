//! From the arena of an exact recording to a profile. What the arena holds is `tare-arena`'s
//! business, what a profile is `tare-profile`'s; this file only knows how one becomes the other.

mod demoted;
mod followed;
mod lengths;
mod live;
mod loads;
mod memory;
mod missing;
mod naming;
mod source;
mod subgraph;
mod times;

pub use live::{live, run_info, vm};
pub use memory::{Arena, NameFile};
pub use naming::add_frame;

use naming::{add_thread, rest_name, thread_name};
use times::{Doubts, has_time, nanos, net_ticks, of_method};

use crate::completion;
use crate::demotion::Steering;
use crate::error::Result;
use crate::origins::Origins;
use crate::recorder::Source;
use crate::regions::Regions;
use crate::stream::Watched;
use followed::Followed;
use lengths::Lengths;
use missing::Missing;
use std::collections::HashMap;
use tare_analysis::{
    CALLING, CALLS_VARIANCE, Calibration, TARGET_TIME, TIME_VARIANCE, TIMED_CALLS, TOTAL_VARIANCE,
    UNTIMED,
};
use tare_arena::layout::{self, Holds};
use tare_arena::{MethodName, Names, Node, Snapshot, Tree};
use tare_profile::facts::ProbeCost;
use tare_profile::{
    ContextId, FrameId, Profile, Row, SeriesId, SeriesInfo, ThreadId, TimeAxis, Unit, ValueKind,
};
use tare_protocol::{COST_PS, ExactStatus};

/// What an exact recording has come to so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Or samples.
    pub calls: u64,
    pub samples: bool,
    /// Of those, in a timed recording, the ones that were only counted.
    pub untimed: u64,
    /// And where only some are timed, those of the others that were.
    pub some_timed: Option<u64>,
    /// Where calls of roots are drawn: how many there were, and how many of them were followed.
    pub followed: Option<(u64, u64)>,
    pub bytecodes: u64,
    /// Allocated.
    pub objects: u64,
    pub bytes: u64,
    pub contexts: usize,
    pub trees: usize,
}

/// An exact recording under way, as a source of increments: trees mostly grow, so what is new is
/// the difference to the last look. Of what was pruned since then, the calls are in the rest of
/// another context; they are taken back where they were.
pub struct Exact {
    arena: Arena,
    origins: Origins,
    /// The agent's last word; whoever talks to the agent keeps it fresh.
    pub status: ExactStatus,
    names: Names,
    axis: TimeAxis,
    /// `None` before the first look.
    series: Option<AllSeries>,
    frames: HashMap<i32, FrameId>,
    /// What is known of each node, by the page and the place in it where it lies.
    pages: Vec<Vec<Seen>>,
    /// In the same places, what sessions have that do more than count calls.
    figures: Vec<Vec<Figures>>,
    threads: HashMap<Owner, ThreadId>,
    /// When the last look was, in nanoseconds since the start of the run.
    looked: u64,
    totals: Totals,
    missing: Missing,
    /// Counts the looks, to tell nodes that are no longer there.
    look: u32,
    regions: Regions,
    /// The names of the threads whose trees were seen, by where the tree lies.
    of_trees: HashMap<u32, String>,
    /// When objects of some classes are watched.
    pub watched: Option<Watched>,
    /// When methods are not timed for the sake of a budget.
    pub steering: Option<Steering>,
    /// By id, the calls up to the last look that have no time.
    untimed: Vec<u64>,
    /// Where calls of roots are drawn.
    followed: Followed,
    lengths: Lengths,
}

/// What only timed sessions have: net times, calls that have none, and calls that made timed calls.
#[derive(Clone, Copy)]
struct Timed {
    net: SeriesId,
    untimed: SeriesId,
    calling: SeriesId,
}

/// Invocations, and what else the session counts.
#[derive(Clone, Copy)]
struct AllSeries {
    calls: SeriesId,
    times: Option<Timed>,
    /// In the order of [`Figures::counted`].
    counted: [Option<SeriesId>; COUNTED],
}

/// What a node may count beside its calls: bytecodes, objects, bytes; or, where some calls are timed
/// or followed, how many were timed or the variance of all calls, and the variances of its own time
/// and of its total.
const COUNTED: usize = 3;

/// A node as it was at the last look. There may be many millions, so it is as small as can be.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The root for nodes that are not shown.
    context: ContextId,
    thread: ThreadId,
    /// With the context's parent it says whether the same node is still there.
    method: i32,
    look: u32,
    count: u64,
}

/// What a node has beside its calls.
#[derive(Clone, Copy, Default)]
struct Figures {
    /// Those of the calls that have no time.
    untimed: u64,
    /// Those that made timed calls.
    calling: u64,
    /// Ticks of its own.
    net: i64,
    /// As far as the session counts it.
    counted: [u64; COUNTED],
}

/// Whose a tree is. Those that virtual threads borrow, and those used again, mean nothing one by
/// one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Thread { tree: u32 },
    EndedThreads,
    VirtualThreads,
}

/// Increments are stamped with the second in which their stretch began.
const BUCKET: u64 = 1_000_000_000;

/// Contexts between two words of how far a look is.
const STRETCH: usize = 1 << 14;

/// No two nodes of a page begin within so many bytes.
const NODE_SPACE: usize = layout::node::SIZE_COUNTED;

impl Exact {
    pub fn new(arena: Arena, status: ExactStatus, origins: Origins) -> Self {
        Exact {
            arena,
            origins,
            status,
            names: Names::default(),
            axis: TimeAxis::Buckets { width: BUCKET },
            series: None,
            frames: HashMap::new(),
            pages: Vec::new(),
            figures: Vec::new(),
            threads: HashMap::new(),
            looked: 0,
            totals: Totals::default(),
            missing: Missing::default(),
            look: 0,
            regions: Regions::default(),
            of_trees: HashMap::new(),
            watched: None,
            steering: None,
            untimed: Vec::new(),
            followed: Followed::default(),
            lengths: Lengths::default(),
        }
    }

    fn calibration(&self) -> Option<Calibration> {
        Calibration::of(&ProbeCost::of_lines(&self.status.calibration))
    }

    /// The only look that is taken: it tells how much there is, not when it came.
    pub fn look_once(&mut self, profile: &mut Profile, elapsed: u64) -> Result<()> {
        self.axis = TimeAxis::None;
        self.look(profile, elapsed)
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether regions are all that has been recorded.
    pub fn has_regions_only(&self) -> bool {
        !self.status.regions.is_empty() && self.totals.contexts == 0
    }

    /// Passages of all regions so far.
    pub fn passages(&self) -> u64 {
        self.regions.passages()
    }

    /// What the calls so far cost in probes, at least, in nanoseconds.
    pub fn in_probes(&self) -> f64 {
        let Totals { calls, untimed, some_timed, .. } = self.totals;
        let a_call = self.status.probe_ps as f64 / 1e3;
        let counted = self.calibration().map_or(a_call, |c| c.counted);
        let timed = some_timed.unwrap_or(calls - untimed);
        timed as f64 * a_call + (calls - timed.min(calls)) as f64 * counted
    }

    /// How many methods were woven, and how many of them were seen to run.
    pub fn woven_and_ran(&self) -> Result<(usize, usize)> {
        let names = self.arena.names()?;
        let site = |id: &i32| names.get(id.cast_unsigned()).is_some_and(MethodName::is_site);
        Ok((names.methods(), self.frames.keys().filter(|id| !site(id)).count()))
    }

    /// Turns what is new in the trees into contexts with invocations and, when timed, net times.
    fn add(&mut self, snapshot: &Snapshot, profile: &mut Profile) -> Result<()> {
        let time = self.looked / BUCKET * BUCKET;
        let AllSeries { calls, times, counted } = self.series(snapshot, profile);
        let rest = rest_name(snapshot);
        let samples = snapshot.holds == Holds::Samples;
        let more_than_calls = snapshot.holds != Holds::Nothing;
        let some = snapshot.holds == Holds::SomeTimes;
        self.totals = Totals {
            trees: snapshot.trees.len(),
            samples,
            some_timed: some.then_some(0),
            ..Totals::default()
        };
        self.look += 1;
        let pruned = snapshot.pruned != self.missing.pruned;
        let threads: Vec<ThreadId> =
            snapshot.trees.iter().map(|tree| self.thread(tree, profile)).collect();
        let in_nanos = |ticks: u64| nanos(snapshot, ticks.cast_signed());
        self.regions.look(snapshot, &threads, &self.status.regions, time, in_nanos, profile);
        self.untimed.clear();
        completion::begins(snapshot.trees.iter().map(|tree| tree.nodes.len()).sum());
        for (tree, &thread) in snapshot.trees.iter().zip(&threads) {
            let net = times.map(|_| net_ticks(snapshot, tree));
            let doubts = Doubts::of(snapshot, tree);
            let mut contexts: Vec<ContextId> = Vec::with_capacity(tree.nodes.len());
            for (at, node) in tree.nodes.iter().enumerate() {
                if at % STRETCH == 0 {
                    completion::more(STRETCH.min(tree.nodes.len() - at));
                }
                let counts = node.count > 0 || node.objects > 0;
                let nothing = node.method == layout::REST && !counts;
                if node.method == layout::ROOT || node.method == layout::CALIBRATION || nothing {
                    contexts.push(ContextId::ROOT);
                    continue;
                }
                let (page, place) = self.place(node.at, more_than_calls);
                let mut before = self.pages[page][place];
                let mut had = match more_than_calls {
                    true => self.figures[page][place],
                    false => Figures::default(),
                };
                let above = contexts[node.parent as usize];
                // A place that was pruned is used again, also that of a node above. And what the
                // rest is called may change, when memory ends in a session of limited depth.
                let same = before.method == node.method
                    && node.method != layout::REST
                    && profile.contexts.parent(before.context) == Some(above);
                let context = if same {
                    before.context
                } else {
                    let frame = self.frame(node.method, rest, profile)?;
                    profile.contexts.child(above, frame)
                };
                if before.context != context {
                    self.take_back(before, had, snapshot, profile);
                    (before, had) = (Seen::default(), Figures::default());
                }
                contexts.push(context);
                let now = Seen {
                    context,
                    thread,
                    method: node.method,
                    look: self.look,
                    count: node.count,
                };
                let has = Figures {
                    untimed: if has_time(node) || node.method <= 0 { 0 } else { node.count },
                    calling: node.calling,
                    net: net.as_ref().map_or(0, |n| n[at]),
                    counted: match &doubts {
                        Some(doubts) => doubts.counted(at, node),
                        None => [self.bytecodes(node), node.objects, node.bytes],
                    },
                };
                if times.is_some() && has.untimed > 0 {
                    *of_method(&mut self.untimed, node.method) += has.untimed;
                }
                // Less than before, if it was pruned and came back.
                let more = now.count.wrapping_sub(before.count).cast_signed();
                if more != 0 {
                    let row = Row::new(context, thread, more).at(time);
                    profile.series_mut(calls).push(row);
                }
                if let Some(times) = times
                    && has.net != had.net
                {
                    let more = nanos(snapshot, has.net.wrapping_sub(had.net));
                    let row = Row::new(context, thread, more).at(time);
                    profile.series_mut(times.net).push(row);
                }
                let of_calls = times.map(|times| {
                    [
                        (times.untimed, has.untimed.wrapping_sub(had.untimed)),
                        (times.calling, has.calling.wrapping_sub(had.calling)),
                    ]
                });
                for (series, more) in of_calls.into_iter().flatten().filter(|(_, more)| *more != 0)
                {
                    let row = Row::new(context, thread, more.cast_signed()).at(time);
                    profile.series_mut(series).push(row);
                }
                for (at, series) in counted.iter().enumerate() {
                    let more = has.counted[at].wrapping_sub(had.counted[at]).cast_signed();
                    if let (Some(series), true) = (series, more != 0) {
                        let row = Row::new(context, thread, more).at(time);
                        profile.series_mut(*series).push(row);
                    }
                }
                self.pages[page][place] = now;
                if more_than_calls {
                    self.figures[page][place] = has;
                }
                self.totals.calls += node.count;
                self.totals.untimed += if times.is_some() { has.untimed } else { 0 };
                self.totals.some_timed.iter_mut().for_each(|timed| *timed += node.some_timed);
                self.totals.bytecodes += node.bytecodes;
                self.totals.objects += node.objects;
                self.totals.bytes += node.bytes;
                self.totals.contexts += usize::from(node.method != layout::REST);
            }
        }
        if pruned {
            self.take_back_what_is_gone(snapshot, profile);
        }
        self.missing = Missing::of(snapshot, rest);
        self.look_at_followed(snapshot, &threads, profile);
        self.totals.followed = self.followed.calls();
        Ok(())
    }

    /// Bytecodes, or the nanoseconds that they would take on a target.
    fn bytecodes(&self, node: &Node) -> u64 {
        if self.status.costs { node.bytecodes * COST_PS / 1000 } else { node.bytecodes }
    }

    /// Takes a node's figures out of its context again: they are now in the rest of another.
    fn take_back(&self, seen: Seen, had: Figures, snapshot: &Snapshot, profile: &mut Profile) {
        let Some(AllSeries { calls, times, counted }) = self.series else { return };
        let time = self.looked / BUCKET * BUCKET;
        if seen.count > 0 {
            let less = i64::try_from(seen.count).map_or(i64::MIN, |count| -count);
            profile.series_mut(calls).push(Row::new(seen.context, seen.thread, less).at(time));
        }
        if let Some(times) = times
            && had.net != 0
        {
            let less = nanos(snapshot, had.net.wrapping_neg());
            profile.series_mut(times.net).push(Row::new(seen.context, seen.thread, less).at(time));
        }
        let of_calls =
            times.map(|times| [(times.untimed, had.untimed), (times.calling, had.calling)]);
        for (series, was) in of_calls.into_iter().flatten().filter(|(_, was)| *was != 0) {
            let less = was.cast_signed().wrapping_neg();
            let row = Row::new(seen.context, seen.thread, less).at(time);
            profile.series_mut(series).push(row);
        }
        for (series, was) in counted.iter().zip(had.counted) {
            if let (Some(series), true) = (series, was != 0) {
                let less = was.wrapping_neg().cast_signed();
                let row = Row::new(seen.context, seen.thread, less).at(time);
                profile.series_mut(*series).push(row);
            }
        }
    }

    fn take_back_what_is_gone(&mut self, snapshot: &Snapshot, profile: &mut Profile) {
        let mut pages = std::mem::take(&mut self.pages);
        for (page, seen) in pages.iter_mut().enumerate() {
            let gone = |seen: &Seen| seen.context != ContextId::ROOT && seen.look != self.look;
            for (place, seen) in seen.iter_mut().enumerate().filter(|(_, seen)| gone(seen)) {
                let had = self.figures.get(page).and_then(|page| page.get(place));
                let had = had.copied().unwrap_or_default();
                self.take_back(std::mem::take(seen), had, snapshot, profile);
            }
        }
        self.pages = pages;
    }

    fn series(&mut self, snapshot: &Snapshot, profile: &mut Profile) -> AllSeries {
        *self.series.get_or_insert_with(|| {
            let axis = self.axis;
            let mut add = |kind| profile.add_series(SeriesInfo::new("exact", kind).with_time(axis));
            let samples = snapshot.holds == Holds::Samples;
            let calls = add(if samples { ValueKind::Samples } else { ValueKind::Invocations });
            let kind = if snapshot.cpu_time { ValueKind::CpuTime } else { ValueKind::WallTime };
            let of_calls =
                |name: &str| ValueKind::Other { name: name.to_owned(), unit: Unit::Count };
            let some = snapshot.holds == Holds::SomeTimes;
            let followed = snapshot.holds == Holds::Followed;
            let times = (some || followed || snapshot.holds == Holds::Times).then(|| Timed {
                net: add(kind),
                untimed: add(of_calls(UNTIMED)),
                calling: add(of_calls(CALLING)),
            });
            let mut counted = [None; COUNTED];
            if some || followed {
                counted[0] = Some(add(of_calls(if some { TIMED_CALLS } else { CALLS_VARIANCE })));
                counted[1] = Some(add(of_calls(TIME_VARIANCE)));
                counted[2] = Some(add(of_calls(TOTAL_VARIANCE)));
            }
            if matches!(snapshot.holds, Holds::Bytecodes | Holds::Allocations | Holds::Samples) {
                let estimated =
                    ValueKind::Other { name: TARGET_TIME.to_owned(), unit: Unit::Nanoseconds };
                let costs = self.status.costs;
                counted[0] = Some(add(if costs { estimated } else { ValueKind::Bytecodes }));
            }
            if matches!(snapshot.holds, Holds::Allocations | Holds::Sites) {
                counted[1] = Some(add(ValueKind::AllocatedObjects));
                counted[2] = Some(add(ValueKind::AllocatedBytes));
            }
            AllSeries { calls, times, counted }
        })
    }

    /// Where what is known of a node is: the page, and the place in it.
    fn place(&mut self, node: u32, more_than_calls: bool) -> (usize, usize) {
        let (page, place) = (node as usize / layout::PAGE, node as usize % layout::PAGE);
        fn has<T: Clone + Default>(pages: &mut Vec<Vec<T>>, page: usize) {
            if pages.len() <= page {
                pages.resize_with(page + 1, Vec::new);
            }
            if pages[page].is_empty() {
                pages[page].resize(layout::PAGE / NODE_SPACE, T::default());
            }
        }
        has(&mut self.pages, page);
        if more_than_calls {
            has(&mut self.figures, page);
        }
        (page, place / NODE_SPACE)
    }

    fn thread(&mut self, tree: &Tree, profile: &mut Profile) -> ThreadId {
        self.of_trees.entry(tree.at).or_insert_with(|| thread_name(tree).to_owned());
        let owner = match (tree.of_virtual_threads, tree.shared) {
            (true, _) => Owner::VirtualThreads,
            (_, true) => Owner::EndedThreads,
            _ => Owner::Thread { tree: tree.at },
        };
        *self.threads.entry(owner).or_insert_with(|| add_thread(profile, tree))
    }

    fn frame(&mut self, method: i32, rest: &str, profile: &mut Profile) -> Result<FrameId> {
        if method == layout::REST {
            return Ok(profile.special(rest));
        }
        if let Some(origin) = layout::origin(method) {
            return Ok(profile.special(&self.origin(origin)));
        }
        if let Some(frame) = self.frames.get(&method) {
            return Ok(*frame);
        }
        let id = u32::try_from(method).unwrap_or(0);
        if self.names.get(id).is_none() {
            self.names = self.arena.names()?;
        }
        let frame = add_frame(profile, self.names.get(id), &self.origins, method);
        self.frames.insert(method, frame);
        Ok(frame)
    }
}
