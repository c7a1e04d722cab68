//! What an exact recording will cost, from samples of the same program taken before.
//!
//! Samples say how much of the processor's time is spent in the methods that will be woven, not how
//! often they are called. So this is a bound: what it would cost if those methods called as often
//! as the dearest real programs do.

use anyhow::{Result, bail};
use std::collections::HashMap;
use std::path::Path;
use tare_profile::{ContextId, MethodKind, Profile, ValueKind};
use tare_protocol::ExactPlan;
use tare_session::is_woven;

/// A compiler, which calls more often than most programs, makes a call in so many nanoseconds.
const CALL_EVERY_NS: f64 = 4.0;
/// What a call costs in warm probes, counted and timed; the end of a recording tells the real
/// figure.
const COUNTED_NS: f64 = 1.5;
const TIMED_NS: f64 = 20.0;

/// A sentence for the user.
pub fn sentence(profile: &Profile, path: &Path, plan: &ExactPlan) -> Result<String> {
    let Some(share) = share(profile, |class| is_woven(class, &plan.include, &plan.exclude)) else {
        bail!("{} has no samples of processor time to predict from", path.display());
    };
    let times = |cost: f64| 1.0 + share * cost / CALL_EVERY_NS;
    let most = times(if !plan.is_timed() { COUNTED_NS } else { TIMED_NS });
    let hint = if !plan.is_timed() {
        String::new()
    } else {
        format!(" (with --count {:.1} times)", times(COUNTED_NS))
    };
    Ok(format!(
        "of the time sampled in {}, {:.0} % was in methods that will be woven: the program will take up \
         to {most:.1} times as long{hint}, if they call as often as a compiler's do",
        path.display(),
        share * 100.0,
    ))
}

/// The share of samples whose innermost Java method is of a class that `woven` accepts.
fn share(profile: &Profile, woven: impl Fn(&str) -> bool) -> Option<f64> {
    let of_kind = |kind| {
        let mut series = profile.all_series().map(|(_, series)| series);
        series.find(|series| series.info().kind == kind && series.info().name != "exact")
    };
    let series = of_kind(ValueKind::CpuTime).or_else(|| of_kind(ValueKind::Samples))?;
    let mut known: HashMap<ContextId, bool> = HashMap::new();
    let (mut all, mut inside) = (0.0, 0.0);
    for row in series.rows() {
        let is_inside = *known.entry(row.context).or_insert_with(|| {
            let methods = profile.contexts.frames(row.context).map(|f| profile.method_of(f));
            let mut java = methods.filter(|method| method.kind == MethodKind::Java);
            java.next().is_some_and(|method| woven(profile.strings.get(method.class)))
        });
        all += row.value as f64;
        inside += if is_inside { row.value as f64 } else { 0.0 };
    }
    (all > 0.0).then(|| inside / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Frame, Method, Row, SeriesInfo, ThreadId};
    use tare_protocol::Pattern;

    #[test]
    fn the_innermost_java_method_decides() {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("cpu", ValueKind::CpuTime));
        let mut frame = |class: &str| {
            let class = profile.strings.intern(class);
            let method = Method { kind: MethodKind::Java, class, ..Method::default() };
            let method = profile.methods.intern(method);
            profile.frames.intern(Frame::of(method))
        };
        let (ours, jdk) = (frame("com.acme.Orders"), frame("java.util.HashMap"));
        let lambda = frame("com.acme.Orders$$Lambda");
        let native = profile.special("[native]");
        for (stack, value) in [
            (vec![ours], 40),
            (vec![ours, lambda], 10),
            (vec![ours, jdk], 25),
            (vec![ours, native], 25),
        ] {
            let context = profile.contexts.stack(stack);
            profile.series_mut(series).push(Row::new(context, ThreadId::UNKNOWN, value));
        }
        let patterns = |text: &str| vec![text.parse::<Pattern>().unwrap()];
        let of = |include: &[Pattern], exclude: &[Pattern]| {
            share(&profile, |class| is_woven(class, include, exclude)).unwrap()
        };
        assert_eq!(of(&[], &[]), 0.65);
        assert_eq!(of(&patterns("com.acme.**"), &[]), 0.65);
        assert_eq!(of(&patterns("java.**"), &[]), 0.25);
        assert_eq!(of(&[], &patterns("com.**")), 0.0);
        assert_eq!(share(&Profile::new(), |_| true), None);
    }
}
