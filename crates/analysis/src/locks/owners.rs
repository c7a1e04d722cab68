//! Blocked time by who is to blame: stacks in which the owner's stands below the waiter's, with the
//! lock between them, as if the waiter had called what it waits for. Upside down they begin with
//! what the owners do, which would have to change.

use super::names::{keys, lock_name, thread_group};
use super::read::{self, OwnerStack};
use crate::filter::{AnalysisError, Filter};
use tare_profile::{
    ContextId, Frame, FrameId, Method, MethodKind, Profile, Row, SeriesId, SeriesInfo, ThreadId,
    TimeAxis, ValueKind,
};

/// What the series is called.
pub const OWNERS: &str = "owners";

/// In place of the stack of an owner that nobody knows.
const NOBODY: &str = "[owner not known]";

/// Adds the series; `None` if the recording has no waits for locks. Its threads are the waiters.
pub fn add_owners(profile: &mut Profile) -> Result<Option<SeriesId>, AnalysisError> {
    let waits = read::waits(profile, &Filter::default())?;
    if !waits.iter().any(read::Waited::is_contention) {
        return Ok(None);
    }
    let keys = keys(profile, &waits);
    let info = SeriesInfo::new(OWNERS, ValueKind::BlockedTime).with_time(TimeAxis::Exact);
    let series = profile.add_series(info);
    for (wait, key) in waits.iter().zip(keys).filter(|(wait, _)| wait.is_contention()) {
        let class = profile.strings.intern(&lock_name(profile, key));
        let kind = MethodKind::Class;
        let lock = profile.methods.intern(Method { kind, class, ..Method::default() });
        let lock = profile.frames.intern(Frame::of(lock));
        let mut frames: Vec<FrameId> = vec![lock];
        if wait.stack == OwnerStack::Unknown {
            let who = match wait.owner {
                ThreadId::UNKNOWN => NOBODY.to_owned(),
                owner => format!("[{}: stack not known]", thread_group(profile, owner)),
            };
            frames.push(profile.special(&who));
        } else {
            let owner: Vec<FrameId> = profile.contexts.frames(wait.owner_context).collect();
            frames.extend(owner.iter().rev());
        }
        let child = |at: ContextId, frame| profile.contexts.child(at, frame);
        let context = frames.into_iter().fold(wait.context, child);
        let value = i64::try_from(wait.duration).unwrap_or(i64::MAX);
        let row = Row::new(context, wait.thread, value).at(wait.time);
        profile.series_mut(series).push(row);
    }
    Ok(Some(series))
}
