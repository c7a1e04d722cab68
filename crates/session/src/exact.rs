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
mod seen;
mod source;
mod subgraph;
mod times;

pub use live::{live, run_info, vm};
pub use memory::{Arena, NameFile};
pub use naming::add_frame;

use naming::{add_thread, rest_name, thread_name};
use seen::{FIGURES, Figures, Seen, SeenNodes, Stamp};
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
    nodes: SeenNodes,
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

/// Invocations, those of timed sessions that have no time, and what else the session counts.
#[derive(Clone, Copy)]
struct AllSeries {
    calls: SeriesId,
    untimed: Option<SeriesId>,
    figures: [Option<(SeriesId, Figure)>; FIGURES],
}

/// What a node may have beside its calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// Ticks of its own.
    Net,
    /// Calls that made timed calls.
    Calling,
    Bytecodes,
    Objects,
    Bytes,
    /// How far a figure may be off, see [`Doubts::counted`].
    Doubt(usize),
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
            nodes: SeenNodes::default(),
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
        let all = self.series(snapshot, profile);
        let rest = rest_name(snapshot);
        let samples = snapshot.holds == Holds::Samples;
        let timed = all.untimed.is_some();
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
            let net = timed.then(|| net_ticks(snapshot, tree));
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
                let place = self.nodes.place(node.at);
                let (mut before, mut had) = self.nodes.get(place);
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
                    take_back(all, before, &had, time, snapshot, profile);
                    (before, had) = (Seen::default(), Figures::default());
                }
                contexts.push(context);
                let untimed = timed && node.method > 0 && !has_time(&node);
                let now = Seen {
                    context,
                    thread,
                    method: node.method,
                    stamp: Stamp::new(self.look, untimed),
                    count: node.count,
                };
                let counted = doubts.as_ref().map(|doubts| doubts.counted(at, &node));
                let has = all.figures.map(|figure| match figure.map(|(_, figure)| figure) {
                    None => 0,
                    Some(Figure::Net) => net.as_ref().map_or(0, |net| net[at].cast_unsigned()),
                    Some(Figure::Calling) => node.calling,
                    Some(Figure::Bytecodes) => self.bytecodes(&node),
                    Some(Figure::Objects) => node.objects,
                    Some(Figure::Bytes) => node.bytes,
                    Some(Figure::Doubt(number)) => counted.map_or(0, |counted| counted[number]),
                });
                if untimed && node.count > 0 {
                    *of_method(&mut self.untimed, node.method) += node.count;
                }
                let mut add = |series: SeriesId, more: i64| {
                    if more != 0 {
                        let row = Row::new(context, thread, more).at(time);
                        profile.series_mut(series).push(row);
                    }
                };
                // Less than before, if it was pruned and came back.
                add(all.calls, now.count.wrapping_sub(before.count).cast_signed());
                if let Some(series) = all.untimed {
                    add(series, now.untimed().wrapping_sub(before.untimed()).cast_signed());
                }
                for (at, (series, figure)) in all.each() {
                    add(series, figure.of(has[at].wrapping_sub(had[at]).cast_signed(), snapshot));
                }
                self.nodes.set(place, now, &has);
                self.totals.calls += node.count;
                self.totals.untimed += now.untimed();
                self.totals.some_timed.iter_mut().for_each(|timed| *timed += node.some_timed);
                self.totals.bytecodes += node.bytecodes;
                self.totals.objects += node.objects;
                self.totals.bytes += node.bytes;
                self.totals.contexts += usize::from(node.method != layout::REST);
            }
        }
        if pruned {
            self.nodes.gone(self.look, |seen, had| {
                take_back(all, seen, had, time, snapshot, profile);
            });
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
            let timed = some || followed || snapshot.holds == Holds::Times;
            let mut figures: Vec<(SeriesId, Figure)> = Vec::new();
            let mut untimed = None;
            if timed {
                figures.push((add(kind), Figure::Net));
                untimed = Some(add(of_calls(UNTIMED)));
                let calling = add(of_calls(CALLING));
                if !some {
                    figures.push((calling, Figure::Calling));
                }
            }
            if some || followed {
                let first = of_calls(if some { TIMED_CALLS } else { CALLS_VARIANCE });
                let doubts = [first, of_calls(TIME_VARIANCE), of_calls(TOTAL_VARIANCE)];
                figures.extend(doubts.map(&mut add).into_iter().zip((0..).map(Figure::Doubt)));
            }
            if matches!(snapshot.holds, Holds::Bytecodes | Holds::Allocations | Holds::Samples) {
                let estimated =
                    ValueKind::Other { name: TARGET_TIME.to_owned(), unit: Unit::Nanoseconds };
                let costs = self.status.costs;
                let series = add(if costs { estimated } else { ValueKind::Bytecodes });
                figures.push((series, Figure::Bytecodes));
            }
            if matches!(snapshot.holds, Holds::Allocations | Holds::Sites) {
                figures.push((add(ValueKind::AllocatedObjects), Figure::Objects));
                figures.push((add(ValueKind::AllocatedBytes), Figure::Bytes));
            }
            self.nodes = SeenNodes::new(snapshot.holds, figures.len());
            let mut all = AllSeries { calls, untimed, figures: [None; FIGURES] };
            all.figures.iter_mut().zip(figures).for_each(|(place, figure)| *place = Some(figure));
            all
        })
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

impl AllSeries {
    /// What is counted beside calls, with its place among a node's figures.
    fn each(&self) -> impl Iterator<Item = (usize, (SeriesId, Figure))> + '_ {
        self.figures.iter().flatten().copied().enumerate()
    }
}

impl Figure {
    /// A difference as it is recorded.
    fn of(self, difference: i64, snapshot: &Snapshot) -> i64 {
        if self == Figure::Net { nanos(snapshot, difference) } else { difference }
    }
}

/// Takes a node's figures out of its context again: they are now in the rest of another.
fn take_back(
    all: AllSeries,
    seen: Seen,
    had: &Figures,
    time: u64,
    snapshot: &Snapshot,
    profile: &mut Profile,
) {
    let mut take = |series: SeriesId, less: i64| {
        if less != 0 {
            let row = Row::new(seen.context, seen.thread, less).at(time);
            profile.series_mut(series).push(row);
        }
    };
    take(all.calls, i64::try_from(seen.count).map_or(i64::MIN, |count| -count));
    if let Some(series) = all.untimed {
        take(series, seen.untimed().wrapping_neg().cast_signed());
    }
    for (at, (series, figure)) in all.each() {
        take(series, figure.of(had[at].wrapping_neg().cast_signed(), snapshot));
    }
}
