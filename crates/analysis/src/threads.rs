//! Values per thread, and what each thread mostly did.

use crate::filter::{AnalysisError, Filter};
use crate::hash::{PairMap, pair};
use crate::labels::{Label, label_frames};
use crate::select::Selection;
use tare_profile::{Profile, SeriesId, ThreadId};

#[derive(Clone, PartialEq, Debug)]
pub struct ThreadShare {
    pub thread: ThreadId,
    pub value: i64,
    /// The label with the largest own value in this thread, and that value.
    pub top: Option<(Label, i64)>,
}

/// All threads that have a value, the largest first.
pub fn by_thread(
    profile: &Profile,
    metric: SeriesId,
    filter: &Filter,
) -> Result<Vec<ThreadShare>, AnalysisError> {
    const NO_LABEL: u32 = 0;
    let selection = Selection::new(profile, filter)?;
    let labelling = label_frames(profile, filter);
    // The label of the innermost frame that is not hidden.
    let mut label_of = vec![NO_LABEL; profile.contexts.len()];
    for (id, parent, frame) in profile.contexts.iter() {
        let own = labelling.of_frame[frame.index()];
        label_of[id.index()] = own.unwrap_or(label_of[parent.index()]);
    }
    let mut values: PairMap<i64> = PairMap::default();
    for row in selection.rows(profile, metric, filter)? {
        let value =
            values.entry(pair(row.thread.raw(), label_of[row.context.index()])).or_default();
        *value = value.saturating_add(row.value);
    }
    let mut parts: Vec<(ThreadId, u32, i64)> = values
        .into_iter()
        .map(|(key, value)| (ThreadId::new((key >> 32) as u32), key as u32, value))
        .collect();
    parts.sort_by_key(|(thread, label, value)| (*thread, -i128::from(*value), *label));
    let mut threads: Vec<ThreadShare> = parts
        .chunk_by(|a, b| a.0 == b.0)
        .map(|parts| {
            let value = parts.iter().fold(0_i64, |sum, part| sum.saturating_add(part.2));
            let top = parts.iter().find(|part| part.1 != NO_LABEL);
            let top = top.map(|part| (labelling.labels[part.1 as usize].clone(), part.2));
            ThreadShare { thread: parts[0].0, value, top }
        })
        .collect();
    threads.sort_by_key(|share| (-i128::from(share.value), share.thread));
    Ok(threads)
}
