//! Which exact context a sampled stack belongs to, and what a method is in both recordings. How
//! much work samples stand for is the business of the rest of `join`.

use super::{PROBES, Sampled};
use std::collections::HashMap;
use tare_java_names::stable;
use tare_profile::{ContextId, FrameId, MethodId, MethodKind, Profile, SeriesId, StringId};

/// Finds the exact context of a sampled stack. Methods that several loaders have by the same name
/// are one here where the samples are of another run.
pub struct Places {
    by_loader: bool,
    woven: HashMap<Identity, u32>,
    /// The callee's context by caller and method; of several, the first, which stands for all of
    /// them.
    children: HashMap<(ContextId, u32), ContextId>,
    /// Which context stands for one, by its index.
    stands_for: Vec<ContextId>,
}

impl Places {
    pub fn new(profile: &Profile, calls: SeriesId, by_loader: bool) -> Self {
        let mut counted = vec![false; profile.contexts.len()];
        profile.series(calls).rows().for_each(|row| counted[row.context.index()] = true);
        let mut woven = HashMap::new();
        let mut children = HashMap::new();
        let mut stands_for = vec![ContextId::ROOT; profile.contexts.len()];
        for (context, parent, frame) in profile.contexts.iter() {
            stands_for[context.index()] = context;
            if !counted[context.index()] {
                continue;
            }
            let next = woven.len() as u32;
            let identity = identity(profile, profile.frames.get(frame).method, by_loader);
            let method = *woven.entry(identity).or_insert(next);
            let caller = stands_for[parent.index()];
            stands_for[context.index()] = *children.entry((caller, method)).or_insert(context);
        }
        Places { by_loader, woven, children, stands_for }
    }

    /// Nanoseconds of samples by the exact context that they belong to. Those in the probes of
    /// marks are nobody's.
    pub fn place(&self, other: &Profile, sampled: &Sampled) -> HashMap<ContextId, f64> {
        let number = |id| self.woven.get(&identity(other, id, self.by_loader)).copied();
        let numbers: Vec<Option<u32>> = other.methods.iter().map(|(id, _)| number(id)).collect();
        let ours = |f: &FrameId| {
            let method = other.methods.get(other.frames.get(*f).method);
            other.strings.get(method.class).starts_with(PROBES)
        };
        let mut known: HashMap<ContextId, Option<ContextId>> = HashMap::new();
        let mut placed = HashMap::new();
        for row in other.series(sampled.series).rows() {
            let place = *known.entry(row.context).or_insert_with(|| {
                let frames: Vec<FrameId> = other.contexts.frames(row.context).collect();
                if frames.iter().any(ours) {
                    return None;
                }
                let woven = frames.iter().rev();
                let woven = woven.filter_map(|f| numbers[other.frames.get(*f).method.index()]);
                self.deepest(&woven.collect::<Vec<u32>>())
            });
            if let Some(place) = place {
                *placed.entry(place).or_insert(0.0) += row.value as f64 * sampled.share;
            }
        }
        placed
    }

    /// Sums by context, where one stands for others all of theirs.
    pub fn own(&self, values: &HashMap<ContextId, f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.stands_for.len()];
        for (context, value) in values {
            sums[self.stands_for[context.index()].index()] += value;
        }
        sums
    }

    /// The same with all that each calls.
    pub fn whole(&self, profile: &Profile, values: &HashMap<ContextId, f64>) -> Vec<f64> {
        let mut sums = self.own(values);
        for (context, caller) in self.callees_first(profile) {
            sums[caller.index()] += sums[context.index()];
        }
        sums
    }

    /// Contexts that stand for themselves, and their callers.
    pub fn callees_first(&self, profile: &Profile) -> impl Iterator<Item = (ContextId, ContextId)> {
        let all = profile.contexts.iter().rev();
        let first = all.filter(|(context, ..)| self.stands_for[context.index()] == *context);
        first.map(|(context, parent, _)| (context, self.stands_for[parent.index()]))
    }

    /// Samples that belong to several contexts, by the calls of each.
    pub fn split(
        &self,
        placed: &HashMap<ContextId, f64>,
        calls: &HashMap<ContextId, f64>,
    ) -> HashMap<ContextId, f64> {
        let mut together = HashMap::new();
        for (context, count) in calls {
            *together.entry(self.stands_for[context.index()]).or_insert(0.0) += count;
        }
        let share = |(context, count): (&ContextId, &f64)| {
            let place = self.stands_for[context.index()];
            let part =
                placed.get(&place)? * count / together.get(&place).filter(|all| **all > 0.0)?;
            Some((*context, part))
        };
        calls.iter().filter_map(share).collect()
    }

    /// The context of a stack of woven methods. What is above the first root is not in the tree;
    /// what was never counted in this context belongs to the last caller that was.
    fn deepest(&self, stack: &[u32]) -> Option<ContextId> {
        (0..stack.len()).find_map(|start| {
            let mut at = ContextId::ROOT;
            for method in &stack[start..] {
                match self.children.get(&(at, *method)) {
                    Some(child) => at = *child,
                    None => break,
                }
            }
            (at != ContextId::ROOT).then_some(at)
        })
    }
}

/// Whether all Java methods of a profile are known with their class loaders.
pub fn have_loaders(profile: &Profile) -> bool {
    let mut java = profile.methods.iter().filter(|(_, method)| method.kind == MethodKind::Java);
    java.all(|(_, method)| method.loader != StringId::EMPTY)
}

/// What a method is in both recordings: class, name, descriptor and, where they can be compared,
/// class loader.
type Identity = [String; 4];

fn identity(profile: &Profile, id: MethodId, by_loader: bool) -> Identity {
    let method = profile.methods.get(id);
    // Natives and accounts may have the names of Java methods; they are not woven.
    let class = match method.kind {
        MethodKind::Java => profile.strings.get(method.class),
        _ => "[not Java]",
    };
    let text = |id| profile.strings.get(id).to_owned();
    let loader = if by_loader { text(method.loader) } else { String::new() };
    // Files of other tools have classes by the numbers of their run.
    [stable(class), text(method.name), text(method.descriptor), loader]
}

#[cfg(test)]
mod tests {
    use super::super::{JOINED, join};
    use super::*;
    use std::time::Duration;
    use tare_profile::facts::keys;
    use tare_profile::{Estimate, Frame, Method, Row, SeriesInfo, ThreadId, ValueKind};

    /// The joined time of a context, in milliseconds.
    fn joined_ms(profile: &Profile, context: ContextId) -> f64 {
        let mut all = profile.all_series().map(|(_, series)| series);
        let is_joined =
            |info: &SeriesInfo| info.name == JOINED && info.estimate == Estimate::Compensated;
        let series = all.find(|series| is_joined(series.info())).unwrap();
        let rows = series.rows().filter(|row| row.context == context);
        rows.map(|row| row.value as f64 / 1e6).sum()
    }

    /// A profile in which methods of a proxy of two loaders were called and, as `class`, sampled.
    fn proxies(class: &str) -> (Profile, [ContextId; 2]) {
        let mut profile = Profile::new();
        let calls = SeriesInfo::new("exact", ValueKind::Invocations);
        let calls = profile.add_series(calls);
        let cpu = SeriesInfo::new("cpu", ValueKind::CpuTime);
        let cpu = profile.add_series(cpu.with_period(1_000_000, ValueKind::CpuTime));
        let mut stack = |class: &str, loader: &str| {
            let [class, loader, name] =
                [class, loader, "call"].map(|text| profile.strings.intern(text));
            let method = Method { class, name, loader, ..Method::default() };
            let method = profile.methods.intern(method);
            let frame = profile.frames.intern(Frame::of(method));
            profile.contexts.stack([frame])
        };
        let contexts = ["app", "Plugins #4"].map(|loader| stack("jdk.proxy2.$Proxy", loader));
        let sampled = ["app", "Plugins #4"].map(|loader| stack(class, loader));
        for (context, count) in contexts.into_iter().zip([10, 30]) {
            profile.series_mut(calls).push(Row::new(context, ThreadId::UNKNOWN, count));
        }
        for (context, millis) in sampled.into_iter().zip([400, 100]) {
            let row = Row::new(context, ThreadId::UNKNOWN, millis * 1_000_000);
            profile.series_mut(cpu).push(row);
        }
        profile.run.duration = 20;
        profile.run.facts.set(keys::SAMPLED_BEFORE, &Duration::from_nanos(10));
        (profile, contexts)
    }

    #[test]
    fn samples_of_generated_classes_are_found_by_their_loaders() {
        for class in ["jdk.proxy2.$Proxy", "jdk.proxy2.$Proxy12"] {
            let (mut profile, contexts) = proxies(class);
            let joined = join(&mut profile, None).unwrap();
            assert_eq!((joined.samples, joined.scale), (500, 1.0));
            assert_eq!(contexts.map(|context| joined_ms(&profile, context)), [400.0, 100.0]);
        }
        // In another run loaders have other numbers, and calls tell the shares.
        let (mut profile, contexts) = proxies("jdk.proxy2.$Proxy");
        let (samples, _) = proxies("jdk.proxy2.$Proxy9");
        join(&mut profile, Some(&samples)).unwrap();
        assert_eq!(contexts.map(|context| joined_ms(&profile, context)), [125.0, 375.0]);
    }
}
