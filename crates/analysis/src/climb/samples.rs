//! What samples tell of methods: what each takes by itself, with what it calls, and by whom it is
//! called.

use super::{MethodKey, Names};
use crate::idle::{STATES, Wait, Waits};
use std::collections::{HashMap, HashSet};
use tare_java_names::is_probe_runtime;
use tare_profile::{ContextId, MethodId, MethodKind, Profile};

/// With fewer samples of a method nothing is said of its callers.
pub const FEWEST: u64 = 20;

/// States in which a thread does something, or wants to.
const ACTIVE: [&str; 3] = ["running", "runnable", "blocked"];

/// Values are those of the samples: nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    pub total: u64,
    pub count: u64,
    methods: HashMap<MethodKey, OfMethod>,
    /// What was looked up already.
    keys: HashMap<MethodId, MethodKey>,
    stacks: HashMap<ContextId, Vec<MethodKey>>,
}

#[derive(Clone, Debug, Default)]
struct OfMethod {
    own: u64,
    within: u64,
    count: u64,
    /// Who called it; nobody where a thread began with it.
    callers: HashMap<Option<MethodKey>, u64>,
}

impl Samples {
    /// A method of a profile.
    pub fn method(&mut self, profile: &Profile, names: &mut Names, id: MethodId) -> MethodKey {
        *self.keys.entry(id).or_insert_with(|| {
            let method = profile.methods.get(id);
            let text = |id| profile.strings.get(id);
            let (class, name) = (text(method.class), text(method.name));
            names.key(&format!("{class}.{name}{}", text(method.descriptor)))
        })
    }

    /// The Java methods of a stack, the innermost first; without the hooks' own.
    fn stack(
        &mut self,
        profile: &Profile,
        names: &mut Names,
        context: ContextId,
    ) -> Vec<MethodKey> {
        if let Some(known) = self.stacks.get(&context) {
            return known.clone();
        }
        let mut stack = Vec::new();
        for frame in profile.contexts.frames(context) {
            let id = profile.frames.get(frame).method;
            let method = profile.methods.get(id);
            if method.kind == MethodKind::Java
                && !is_probe_runtime(profile.strings.get(method.class))
            {
                stack.push(self.method(profile, names, id));
            }
        }
        self.stacks.insert(context, stack.clone());
        stack
    }

    /// Takes the samples of a profile: by the processor's clock all of them, by the wall clock those
    /// of threads that do something or wait for what is not just work to come.
    pub(super) fn add(&mut self, profile: &Profile, names: &mut Names) {
        let mut waits = Waits::new(profile);
        for (_, series) in profile.all_series() {
            let name = series.info().name.as_str();
            let is_cpu = name == "cpu";
            let is_waiting = STATES.contains(&name);
            if !is_cpu && !is_waiting && !ACTIVE.contains(&name) {
                continue;
            }
            // Rows of a recording that is read are sums of several samples.
            let period = series.info().period.max(1);
            for row in series.rows() {
                let is_idle = is_waiting && waits.of(profile, row.context) != Wait::Other;
                if is_idle {
                    continue;
                }
                let stack = self.stack(profile, names, row.context);
                let value = row.value.max(0).unsigned_abs();
                self.sample(&stack, value, (value / period).max(1));
            }
        }
    }

    fn sample(&mut self, stack: &[MethodKey], value: u64, count: u64) {
        self.total += value;
        self.count += count;
        let Some(innermost) = stack.first() else { return };
        self.methods.entry(*innermost).or_default().own += value;
        let mut seen = HashSet::new();
        for (at, method) in stack.iter().enumerate() {
            // Of a recursion the outermost call counts.
            let is_outermost = !stack[at + 1..].contains(method);
            if !is_outermost || !seen.insert(*method) {
                continue;
            }
            let of = self.methods.entry(*method).or_default();
            of.within += value;
            of.count += count;
            *of.callers.entry(stack.get(at + 1).copied()).or_default() += value;
        }
    }

    /// Methods by what they take themselves, the most first.
    pub fn hot(&self) -> Vec<(MethodKey, u64)> {
        let mut hot: Vec<_> = self.methods.iter().map(|(key, of)| (*key, of.own)).collect();
        hot.retain(|(_, own)| *own > 0);
        hot.sort_by_key(|(key, own)| (std::cmp::Reverse(*own), *key));
        hot
    }

    pub fn own(&self, method: MethodKey) -> u64 {
        self.methods.get(&method).map_or(0, |of| of.own)
    }

    /// With what it calls.
    pub fn within(&self, method: MethodKey) -> u64 {
        self.methods.get(&method).map_or(0, |of| of.within)
    }

    pub fn count_within(&self, method: MethodKey) -> u64 {
        self.methods.get(&method).map_or(0, |of| of.count)
    }

    pub fn share(&self, value: u64) -> f64 {
        if self.total == 0 { 0.0 } else { value as f64 / self.total as f64 }
    }

    /// Who calls a method, by what is spent in it then, the most first.
    pub fn callers(&self, method: MethodKey) -> Vec<(Option<MethodKey>, u64)> {
        let of = self.methods.get(&method);
        let mut callers: Vec<_> =
            of.into_iter().flat_map(|of| of.callers.iter().map(|(key, n)| (*key, *n))).collect();
        callers.sort_by_key(|(key, value)| (std::cmp::Reverse(*value), *key));
        callers
    }

    /// What was seen is forgotten, but for names: the load may have changed.
    pub fn begin_again(&mut self) {
        self.total = 0;
        self.count = 0;
        self.methods.clear();
    }
}
