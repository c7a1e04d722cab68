//! Stacks of allocation cut down to their sites: the first line outside of the JDK, and the class.
//! Two recordings meet there even if their stacks differ, as those of two JDKs do.

use super::is_memory;
use tare_java_names::is_jdk;
use tare_profile::{ContextId, FrameId, MethodKind, Profile, Row, Series};

/// The profile with every stack that ends in a class cut to its site; `None` if there is none in
/// a series of memory. Series, threads and names keep their handles; events are left out.
pub fn cut_to_sites(profile: &Profile) -> Option<Profile> {
    let kind = |frame: FrameId| profile.method_of(frame).kind;
    let is_class = |context: ContextId| {
        profile.contexts.frame(context).is_some_and(|frame| kind(frame) == MethodKind::Class)
    };
    let memory = || profile.all_series().filter(|(_, series)| is_memory(&series.info().kind));
    if !memory().any(|(_, series)| series.rows().any(|row| is_class(row.context))) {
        return None;
    }
    let mut out = Profile::new();
    out.strings = profile.strings.clone();
    out.methods = profile.methods.clone();
    out.frames = profile.frames.clone();
    out.threads = profile.threads.clone();
    out.run = profile.run.clone();
    let mut moved: Vec<Option<ContextId>> = vec![None; profile.contexts.len()];
    for (_, series) in profile.all_series() {
        let mut cut = Series::new(series.info().clone());
        for row in series.rows() {
            let context = *moved[row.context.index()].get_or_insert_with(|| {
                let frames: Vec<FrameId> = profile.contexts.frames(row.context).collect();
                let kept = match frames.split_first() {
                    Some((class, stack)) if kind(*class) == MethodKind::Class => {
                        let java = || stack.iter().filter(|f| kind(**f) == MethodKind::Java);
                        let class_of =
                            |frame: FrameId| profile.strings.get(profile.method_of(frame).class);
                        let place = java().find(|frame| !is_jdk(class_of(**frame)));
                        let place = place.or_else(|| java().next());
                        place.into_iter().chain([class]).copied().collect()
                    }
                    _ => frames.into_iter().rev().collect::<Vec<_>>(),
                };
                out.contexts.stack(kept)
            });
            cut.push(Row { context, ..row });
        }
        out.add_made_series(cut);
    }
    Some(out)
}
