//! The part of a profile that a filter lets through: values per context.

use crate::filter::{AnalysisError, Filter};
use crate::memory::is_level;
use crate::unstable;
use std::ops::Range;
use tare_java_names::Pattern;
use tare_profile::{ContextId, Event, Profile, Row, SeriesId, TimeAxis};

/// Which contexts pass, and where in them the tree begins.
pub(crate) struct Selection {
    /// Whether the context is at or below one of the roots that were asked for. Empty: all are.
    below_root: Vec<bool>,
    /// Whether it passes through one of the packages that were asked for. Empty: all do.
    in_package: Vec<bool>,
    threads: Option<Vec<bool>>,
    /// Whether it passes through what differs from run to run. Empty: that does not matter.
    unstable: Vec<bool>,
}

impl Selection {
    pub(crate) fn new(profile: &Profile, filter: &Filter) -> Result<Self, AnalysisError> {
        Ok(Selection {
            below_root: below(profile, &filter.roots)?,
            in_package: below(profile, &filter.packages)?,
            threads: filter.thread_rows(profile)?,
            unstable: if filter.stable { unstable::contexts(profile) } else { Vec::new() },
        })
    }

    /// Whether the tree begins somewhere below the profile's root.
    pub(crate) fn has_roots(&self) -> bool {
        !self.below_root.is_empty()
    }

    pub(crate) fn is_below_root(&self, context: ContextId) -> bool {
        self.below_root.get(context.index()).copied().unwrap_or(true)
    }

    /// Whether a context's own values count.
    pub(crate) fn has(&self, context: ContextId) -> bool {
        let packaged = self.in_package.get(context.index()).copied().unwrap_or(true);
        let unstable = self.unstable.get(context.index()).copied().unwrap_or(false);
        packaged && !unstable && self.is_below_root(context)
    }

    /// Whether an event is among what was asked for.
    pub(crate) fn has_event(&self, event: &Event, filter: &Filter) -> bool {
        let in_time = filter.time.as_ref().is_none_or(|time| {
            event.time < time.end && event.time.saturating_add(event.duration) >= time.start
        });
        let in_thread = self.threads.as_ref().is_none_or(|threads| threads[event.thread.index()]);
        in_time && in_thread && self.has(event.context)
    }

    /// The rows of a series that the filter lets through.
    pub(crate) fn rows<'a>(
        &'a self,
        profile: &'a Profile,
        series: SeriesId,
        filter: &'a Filter,
    ) -> Result<impl Iterator<Item = Row> + 'a, AnalysisError> {
        let series = profile.series(series);
        let info = series.info();
        if filter.time.is_some() && info.time == TimeAxis::None {
            let series = format!("{} {}", info.name, info.kind.name());
            return Err(AnalysisError::NoTimes { series });
        }
        // What lives at a moment is all that came and went until then.
        let level = is_level(&info.kind);
        let in_time = move |row: &Row| {
            let within =
                |time: &Range<u64>| row.time < time.end && (level || row.time >= time.start);
            filter.time.as_ref().is_none_or(within)
        };
        let in_thread =
            |row: &Row| self.threads.as_ref().is_none_or(|threads| threads[row.thread.index()]);
        Ok(series.rows().filter(move |row| in_time(row) && in_thread(row) && self.has(row.context)))
    }

    /// The sum of the rows that pass, by what the contexts are taken for, of which there are
    /// `count`.
    pub(crate) fn add_up(
        &self,
        profile: &Profile,
        series: SeriesId,
        filter: &Filter,
        sums: &mut Vec<i64>,
        count: usize,
        place: impl Fn(ContextId) -> usize,
    ) -> Result<(), AnalysisError> {
        sums.clear();
        sums.resize(count, 0);
        for row in self.rows(profile, series, filter)? {
            let sum = &mut sums[place(row.context)];
            *sum = sum.saturating_add(row.value);
        }
        Ok(())
    }
}

/// Which contexts have a frame that one of the patterns means, in themselves or above. Empty if
/// there are no patterns.
fn below(profile: &Profile, patterns: &[Pattern]) -> Result<Vec<bool>, AnalysisError> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let wanted: Vec<bool> = profile
        .methods
        .iter()
        .map(|(id, _)| {
            let name = profile.method_name(id);
            patterns.iter().any(|pattern| pattern.is_found_in(&name))
        })
        .collect();
    if !wanted.contains(&true) {
        let texts: Vec<&str> = patterns.iter().map(Pattern::text).collect();
        return Err(AnalysisError::NoMatch { wanted: texts.join(", ") });
    }
    let mut below = vec![false; profile.contexts.len()];
    for (id, parent, frame) in profile.contexts.iter() {
        let method = profile.frames.get(frame).method;
        below[id.index()] = below[parent.index()] || wanted[method.index()];
    }
    Ok(below)
}
