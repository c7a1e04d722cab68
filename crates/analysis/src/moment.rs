//! What happened in a short time: what ran, what was allocated, what was waited for, each from its
//! own values, the largest first.

use crate::aside::{Asides, set_aside};
use crate::filter::{AnalysisError, Filter};
use crate::hot::hot_list;
use crate::locks::Locks;
use crate::memory::{Memory, SiteBy, SiteName};
use crate::threads::{ThreadShare, by_thread};
use crate::tree::Tree;
use std::ops::Range;
use tare_profile::{Profile, Series, SeriesId, TimeAxis, ValueKind};

/// Samples of processor time, or of threads that ran by the wall clock.
#[derive(Clone, Debug)]
pub struct Ran {
    pub metric: SeriesId,
    pub total: i64,
    /// Methods by their own value.
    pub methods: Vec<(String, i64)>,
    pub threads: Vec<ThreadShare>,
}

/// What a short time tells; `None` for what was not recorded.
#[derive(Clone, Debug)]
pub struct Moment {
    pub ran: Option<Ran>,
    pub allocated: Option<Memory>,
    pub waited: Option<Locks>,
}

impl Moment {
    /// Of a profile with its times, not more than `most` methods.
    pub fn of(profile: &Profile, time: &Range<u64>, most: usize) -> Result<Self, AnalysisError> {
        let filter = Filter { time: Some(time.clone()), ..Filter::default() };
        let has_bytes = |series: &Series| series.info().kind == ValueKind::AllocatedBytes;
        let bytes = timed(profile).find(|(_, series)| has_bytes(series)).map(|(id, _)| id);
        let allocated = match bytes {
            Some(_) => Memory::of(profile, bytes, &filter, SiteBy::Site)?,
            None => None,
        };
        Ok(Moment {
            ran: ran(profile, &filter, most)?,
            allocated,
            waited: Locks::of(profile, &filter)?,
        })
    }
}

fn timed(profile: &Profile) -> impl Iterator<Item = (SeriesId, &Series)> {
    profile.all_series().filter(|(_, series)| series.info().time != TimeAxis::None)
}

/// The values that tell what threads ran.
pub(crate) fn running(profile: &Profile) -> Option<SeriesId> {
    let ranked = timed(profile).filter_map(|(id, series)| Some((rank(series)?, id)));
    ranked.min().map(|(_, id)| id)
}

/// Whether values tell what threads ran.
pub(crate) fn is_of_running(series: &Series) -> bool {
    rank(series).is_some()
}

fn rank(series: &Series) -> Option<u8> {
    match (&series.info().kind, series.info().name.as_str()) {
        (ValueKind::CpuTime, _) => Some(0),
        (ValueKind::WallTime, "running") => Some(1),
        (ValueKind::Samples, _) => Some(2),
        (ValueKind::WallTime, "wall") => Some(3),
        _ => None,
    }
}

fn ran(profile: &Profile, filter: &Filter, most: usize) -> Result<Option<Ran>, AnalysisError> {
    let Some(metric) = running(profile) else { return Ok(None) };
    let aside = set_aside(profile, metric, Asides { native: true, idle: true });
    let profile = aside.as_ref().map_or(profile, |aside| &aside.profile);
    let tree = Tree::build(profile, &[metric], filter)?;
    let hot = hot_list(&tree);
    let own = hot.iter().filter(|hot| hot.own[0] > 0).take(most);
    let methods = own.map(|hot| (tree.label(hot.label).text.clone(), hot.own[0])).collect();
    let threads = by_thread(profile, metric, filter)?;
    Ok(Some(Ran { metric, total: tree.sum(0), methods, threads }))
}

/// `byte[] in Orders.render:42 by Arrays.copyOf`.
#[must_use]
pub fn site_in_words(name: &SiteName) -> String {
    let by = name.by.as_deref().map_or_else(String::new, |by| format!(" by {by}"));
    match (&name.class, &name.place) {
        (Some(class), Some(place)) => format!("{class} in {place}{by}"),
        (Some(only), None) | (None, Some(only)) => only.clone(),
        (None, None) => "[no stack]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Frame, Method, Row, SeriesInfo, ThreadId};

    #[test]
    fn only_what_ran_then_is_told() {
        let mut profile = Profile::new();
        let mut context = |name: &str| {
            let (class, name) = (profile.strings.intern("A"), profile.strings.intern(name));
            let method = profile.methods.intern(Method { class, name, ..Method::default() });
            let frame = profile.frames.intern(Frame::of(method));
            profile.contexts.stack([frame])
        };
        let (early, late) = (context("early"), context("late"));
        let info =
            SeriesInfo { time: TimeAxis::Exact, ..SeriesInfo::new("cpu", ValueKind::CpuTime) };
        let cpu = profile.add_series(info);
        for (context, time, value) in [(early, 10, 70), (late, 20, 5), (late, 30, 6)] {
            let row = Row { time, ..Row::new(context, ThreadId::UNKNOWN, value) };
            profile.series_mut(cpu).push(row);
        }
        let moment = Moment::of(&profile, &(15..40), 5).expect("a moment");
        let ran = moment.ran.expect("what ran");
        assert_eq!((ran.total, ran.methods), (11, vec![("A.late".to_owned(), 11)]));
        assert!(moment.allocated.is_none() && moment.waited.is_none());
    }
}
