//! What was allocated and what of it lives: by class and by the place that allocates.
//!
//! An allocation's stack ends in a frame of the object's class. Its *site* is that class and the
//! first line outside of the JDK: that is what somebody can change. Everything here is read from
//! the series and events that FORMAT.md lists; how it looks is left to others.

mod growth;
mod make;
mod origin;
mod short;

pub use growth::Growth as LiveGrowth;
pub(crate) use origin::Origin;
pub use origin::SiteName;
pub use short::cut_to_sites;

use crate::filter::{AnalysisError, Filter};
use crate::select::Selection;
use growth::{POINTS, Sweeps};
use make::Maker;
use origin::UNKNOWN_CLASS;
use std::collections::HashMap;
use tare_profile::{Profile, SeriesId, TimeAxis, ValueKind};

/// What one line of the lists stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SiteBy {
    /// A class, and the first line outside of the JDK on the way to it.
    #[default]
    Site,
    /// The line that allocates, whatever it allocates.
    Line,
    Class,
    /// The method that allocates.
    Method,
    /// The first method outside of the JDK.
    Place,
}

/// Bytes and objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Amount {
    pub bytes: i64,
    pub objects: i64,
}

/// In collections that objects have survived, of those that live at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ages {
    pub median: u64,
    pub oldest: u64,
}

/// One line of the lists.
#[derive(Clone, PartialEq, Debug)]
pub struct Site {
    pub name: SiteName,
    pub allocated: Amount,
    /// Samples of allocation.
    pub samples: u64,
    /// Half the width of the interval in which the share of the allocated bytes is, as a share of
    /// the whole; `None` if nobody knows.
    pub error: Option<f64>,
    pub live: Amount,
    /// Samples of what lives.
    pub live_samples: u64,
    pub live_error: Option<f64>,
    /// Of the allocated bytes those of classes whose objects were followed.
    pub followed: i64,
    /// What was seen to survive a collection, dead by now or not.
    pub survived: i64,
    pub ages: Option<Ages>,
    pub growth: Option<LiveGrowth>,
}

impl Site {
    /// The share of the allocated bytes that survived a collection; `None` if nobody knows.
    pub fn survival(&self) -> Option<f64> {
        match self.followed {
            0 if self.allocated.bytes > 0 => None,
            ..=0 => Some(0.0),
            // Both are estimates, of which one may be larger by chance.
            bytes => Some((self.survived as f64 / bytes as f64).clamp(0.0, 1.0)),
        }
    }
}

/// What a recording tells of memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Memory {
    /// Every allocation was counted.
    pub exact: bool,
    /// Bytes from one sample to the next.
    pub interval: Option<u64>,
    /// The same at the end, if it was changed meanwhile.
    pub last_interval: Option<u64>,
    pub samples: u64,
    pub allocated: Amount,
    /// Whether it was followed what lives.
    pub tracked: bool,
    /// Patterns of the classes whose objects were followed; none means all.
    pub followed: Vec<String>,
    pub live: Amount,
    pub collections: Option<u64>,
    /// What was allocated so lately that no collection has told whether it lives.
    pub unproven: Amount,
    /// Nanoseconds that this is of.
    pub duration: u64,
    /// How all that lives grew.
    pub growth: Option<LiveGrowth>,
    /// The most allocated first.
    pub sites: Vec<Site>,
    pub(crate) parts: Vec<Part>,
    sweeps: Sweeps,
}

/// What is known of one context.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Part {
    pub origin: Origin,
    /// Whether it is of a class whose objects were followed.
    followed: bool,
    pub allocated: Amount,
    pub samples: u64,
    /// Of the estimate of the allocated bytes.
    variance: f64,
    pub live: Amount,
    live_samples: i64,
    live_variance: f64,
    survived: i64,
    ages: Vec<(u64, f64)>,
    /// By point of time, how much more lives.
    steps: Vec<i64>,
    /// Allocated bytes by the size of one object, as far as it can be told from samples.
    pub sizes: Vec<(u64, i64)>,
}

impl Part {
    fn new(origin: Origin, followed: bool) -> Self {
        let (allocated, live) = (Amount::default(), Amount::default());
        let (ages, steps, sizes) = (Vec::new(), Vec::new(), Vec::new());
        Part {
            origin,
            followed,
            allocated,
            samples: 0,
            variance: 0.0,
            live,
            live_samples: 0,
            live_variance: 0.0,
            survived: 0,
            ages,
            steps,
            sizes,
        }
    }

    fn followed_bytes(&self) -> i64 {
        if self.followed { self.allocated.bytes } else { 0 }
    }
}

/// The series that this is made of.
struct Chosen {
    allocated: [Option<SeriesId>; 2],
    live: [Option<SeriesId>; 2],
}

impl Chosen {
    /// The series of the engine that made `metric`, if that counts memory, or else of any.
    fn of(profile: &Profile, metric: Option<SeriesId>) -> Option<Self> {
        let exact = |name: &str| name == "exact";
        let wanted = metric.map(|id| profile.series(id).info());
        let wanted = wanted.filter(|info| is_memory(&info.kind)).map(|info| exact(&info.name));
        let find = |kind: ValueKind| {
            let all = profile.all_series().filter(|(_, s)| s.info().kind == kind);
            all.min_by_key(|(id, series)| {
                let other = wanted.is_some_and(|wanted| wanted != exact(&series.info().name));
                (other, series.is_empty(), *id)
            })
            .map(|(id, _)| id)
        };
        let chosen = Chosen {
            allocated: [ValueKind::AllocatedBytes, ValueKind::AllocatedObjects].map(find),
            live: [ValueKind::LiveBytes, ValueKind::LiveObjects].map(find),
        };
        chosen.allocated[0].or(chosen.live[0]).map(|_| chosen)
    }
}

/// Whether a kind of value counts bytes or objects of the heap.
pub fn is_memory(kind: &ValueKind) -> bool {
    use ValueKind::{AllocatedBytes, AllocatedObjects, LiveBytes, LiveObjects};
    matches!(kind, AllocatedBytes | AllocatedObjects | LiveBytes | LiveObjects)
}

/// Whether the rows of a kind of value are changes of something that lasts, so that a moment has
/// all that came before it.
pub fn is_level(kind: &ValueKind) -> bool {
    matches!(kind, ValueKind::LiveBytes | ValueKind::LiveObjects)
}

impl Memory {
    /// What a filter lets through; `None` if the profile has nothing of the kind. `metric` decides
    /// between sampled and counted figures if there are both.
    pub fn of(
        profile: &Profile,
        metric: Option<SeriesId>,
        filter: &Filter,
        by: SiteBy,
    ) -> Result<Option<Memory>, AnalysisError> {
        let Some(chosen) = Chosen::of(profile, metric) else { return Ok(None) };
        let filter = filter.restriction();
        let series = chosen.allocated.iter().chain(&chosen.live).flatten();
        let untimed = |id: &SeriesId| profile.series(*id).info().time == TimeAxis::None;
        // Of a part of the run nothing is known.
        if filter.time.is_some() && series.into_iter().any(untimed) {
            return Ok(None);
        }
        let selection = Selection::new(profile, &filter)?;
        let mut maker = Maker::new(profile, &filter, &selection);
        maker.allocated(&chosen)?;
        maker.live(&chosen)?;
        maker.events();
        Ok(Some(maker.finish(&chosen, by)))
    }

    /// Whether it is known of what classes objects are.
    pub fn has_classes(&self) -> bool {
        self.parts.iter().any(|part| part.origin.class != UNKNOWN_CLASS)
    }

    /// Bytes and objects that are allocated in a second; `None` if nobody knows how long it took.
    pub fn rate(&self) -> Option<(f64, f64)> {
        let seconds = self.duration as f64 / 1e9;
        let of = |value: i64| value as f64 / seconds;
        (self.duration > 0).then(|| (of(self.allocated.bytes), of(self.allocated.objects)))
    }

    /// Whether much of what was allocated is not known to be alive or dead. Between two collections
    /// there is always something young.
    pub fn has_much_unproven(&self) -> bool {
        let bytes = self.unproven.bytes;
        let followed = self.parts.iter().map(Part::followed_bytes);
        let followed = followed.fold(0_i64, i64::saturating_add);
        let much = bytes > self.live.bytes / 10 && bytes > followed / 20;
        self.tracked && bytes > 0 && much
    }

    /// Whether all that lives grew by so much that it is worth a word.
    pub fn grows(&self) -> Option<LiveGrowth> {
        let minutes = self.duration as f64 / 60e9;
        let worth =
            |growth: &LiveGrowth| growth.per_minute * minutes >= self.live.bytes as f64 / 5.0;
        self.growth.filter(worth).filter(|growth| growth.per_minute > 0.0)
    }

    /// Sites with something alive, the most first.
    pub fn staying(&self) -> Vec<&Site> {
        let mut sites: Vec<&Site> = self.sites.iter().filter(|s| s.live.bytes > 0).collect();
        sites.sort_by_key(|site| std::cmp::Reverse(site.live.bytes));
        sites
    }

    /// The same parts, summed up in another way.
    pub(crate) fn grouped(&self, by: SiteBy) -> Vec<Site> {
        let mut groups: HashMap<SiteName, Vec<&Part>> = HashMap::new();
        for part in &self.parts {
            groups.entry(part.origin.name(by)).or_default().push(part);
        }
        let all = [self.variances(|part| part.variance), self.variances(|p| p.live_variance)];
        let named = |(mut name, parts): (SiteName, Vec<&Part>)| {
            if by == SiteBy::Site {
                name.by = most_by(&parts);
            }
            self.site(name, &parts, all)
        };
        let mut sites: Vec<Site> = groups.into_iter().map(named).collect();
        sites.sort_by(|a, b| {
            let by = |site: &Site| (site.allocated.bytes, site.live.bytes);
            by(b).cmp(&by(a)).then_with(|| a.name.cmp(&b.name))
        });
        sites
    }

    fn variances(&self, of: impl Fn(&Part) -> f64) -> f64 {
        self.parts.iter().map(of).sum()
    }

    fn site(&self, name: SiteName, parts: &[&Part], all: [f64; 2]) -> Site {
        let sum = |of: &dyn Fn(&Part) -> i64| {
            parts.iter().fold(0_i64, |sum, part| sum.saturating_add(of(part)))
        };
        let allocated =
            Amount { bytes: sum(&|p| p.allocated.bytes), objects: sum(&|p| p.allocated.objects) };
        let live = Amount { bytes: sum(&|p| p.live.bytes), objects: sum(&|p| p.live.objects) };
        let variance = |of: &dyn Fn(&Part) -> f64| parts.iter().map(|part| of(part)).sum::<f64>();
        let known = self.exact || self.interval.is_some();
        let error = |value: i64, whole: i64, own: f64, all: f64| {
            let share = if whole > 0 { value as f64 / whole as f64 } else { 0.0 };
            let rest = (all - own).max(0.0);
            let square = (1.0 - share).powi(2) * own + share.powi(2) * rest;
            (known && whole > 0).then(|| 1.96 * square.max(0.0).sqrt() / whole as f64)
        };
        let mut steps = vec![0_i64; POINTS];
        for part in parts {
            steps.iter_mut().zip(&part.steps).for_each(|(sum, step)| *sum += step);
        }
        Site {
            name,
            allocated,
            samples: parts.iter().map(|part| part.samples).sum(),
            error: error(
                allocated.bytes,
                self.allocated.bytes,
                variance(&|part| part.variance),
                all[0],
            ),
            live,
            live_samples: sum(&|part| part.live_samples).max(0).unsigned_abs(),
            live_error: error(
                live.bytes,
                self.live.bytes,
                variance(&|part| part.live_variance),
                all[1],
            ),
            followed: sum(&Part::followed_bytes),
            survived: sum(&|part| part.survived),
            ages: ages(parts.iter().flat_map(|part| part.ages.iter().copied())),
            growth: self.sweeps.growth(&steps),
        }
    }
}

/// The method that allocates the most for one place, if it is not the place itself.
fn most_by(parts: &[&Part]) -> Option<String> {
    let mut sums: HashMap<Option<String>, i64> = HashMap::new();
    for part in parts {
        let sum = sums.entry(part.origin.by()).or_default();
        *sum = sum.saturating_add(part.allocated.bytes).saturating_add(part.live.bytes);
    }
    let most = sums.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)));
    most.and_then(|(by, _)| by)
}

/// The median, by objects, and the oldest.
fn ages(ages: impl Iterator<Item = (u64, f64)>) -> Option<Ages> {
    let mut ages: Vec<(u64, f64)> = ages.collect();
    ages.sort_by_key(|(age, _)| *age);
    let half = ages.iter().map(|(_, objects)| objects).sum::<f64>() / 2.0;
    let mut before = 0.0;
    let median = ages.iter().find(|(_, objects)| {
        before += objects;
        before >= half
    });
    Some(Ages { median: median?.0, oldest: ages.last()?.0 })
}
