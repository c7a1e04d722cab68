//! One class woven: which of its methods get which probes, and what is noted of it.

use super::names_file::NoRoom;
use super::natives::NativeProbes;
use super::probes::Kind;
use super::redefined::digest;
use super::subgraph::Chosen;
use super::{IMPLICIT, REGISTRY, Recording, dotted, intrinsics, locked, nanos_of, recorder, rules};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tare_classfile::access;
use tare_weaver::{MethodInfo, MethodPlan, Options, Outcome, Weaver};

impl Recording {
    /// The woven bytes of a class, or nothing when it stays as it is. What the JVM gave us may be
    /// older than what the class is now.
    pub(super) fn weave(
        &self,
        name: &str,
        loader: u32,
        given: &[u8],
        current: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        let began = Instant::now();
        let bytes = current.unwrap_or(given);
        if self.is_event_of_bytes(bytes) {
            if self.wants_class(name) {
                self.refuse(&dotted(name), recorder::REASON);
            }
            return None;
        }
        let is_watched = self.is_watched(name, loader);
        let mut regions = self.regions.of_class(name, bytes);
        let chosen = match &self.subgraph {
            Some(subgraph) => {
                let chosen = subgraph.class_file(name, loader, bytes).unwrap_or_else(|methods| {
                    self.count_nameless(name, methods, NoRoom::Search);
                    None
                });
                let chosen = chosen.filter(|_| self.wants_class(name));
                if chosen.is_none() && !is_watched && regions.is_empty() {
                    return None;
                }
                Some(chosen.unwrap_or_default())
            }
            None if !self.wants_class(name) => Some(Chosen::new()),
            None => self.plan.skip_trivial.then(|| self.all_but_trivial(name, bytes)).flatten(),
        };
        let mut weaver = locked(&self.weavers)
            .pop()
            .unwrap_or_else(|| Weaver::new(Options { allow_huge: self.plan.allow_huge }));
        let natives = self.native_probes(name, loader, bytes);
        let mut methods = Vec::new();
        let mut sites = Vec::new();
        let mut watched = 0;
        let outcome = weaver.weave(bytes, |info| {
            if loader == 0 && intrinsics::is_never_run(name, info.name, info.descriptor) {
                self.refuse_method(name, bytes, info.index, intrinsics::REASON);
                return None;
            }
            if let Some(watch) = is_watched.then(|| self.watch(name, info)).flatten() {
                watched += 1;
                return Some(MethodPlan::new(0, watch));
            }
            let of_method = regions.get_mut(info.index).map(std::mem::take).unwrap_or_default();
            let mut plan =
                match self.plan_method((name, loader), info, chosen.as_ref(), natives.as_ref()) {
                    Some(plan) => {
                        methods.push((info.index, plan.id));
                        plan
                    }
                    None if of_method.is_empty() => return None,
                    None => MethodPlan::new(0, self.probes.region()),
                };
            plan.regions = of_method;
            if self.plan.has_sites()
                && let Some(of_method) = self.sites(name, loader, info, plan.probes)
            {
                plan.first_site = of_method.first;
                sites.push(of_method);
            }
            Some(plan)
        });
        locked(&self.weavers).push(weaver);
        let woven = match outcome {
            Ok(Outcome::Woven { bytes: woven, report }) => {
                let named = self
                    .log_names(name, loader, bytes, &methods)
                    .and_then(|()| self.log_sites(name, loader, bytes, &sites));
                match named {
                    Ok(()) => {
                        self.note(name, bytes, &report, chosen.as_ref());
                        let methods_woven = (report.woven() as u64).saturating_sub(watched);
                        self.count(name, loader, given, methods_woven);
                        self.note_candidates(name, loader, bytes, &report);
                        Some(woven)
                    }
                    Err(why) => {
                        self.refuse_nameless(name, loader, methods.len(), why);
                        self.note_left_out(chosen.as_ref(), &why.to_string());
                        None
                    }
                }
            }
            Ok(Outcome::Unchanged(report)) => {
                self.note(name, bytes, &report, chosen.as_ref());
                None
            }
            Err(e) => {
                self.refuse(&dotted(name), &e.to_string());
                None
            }
        };
        self.weaving_ns.fetch_add(nanos_of(began.elapsed()), Relaxed);
        woven
    }

    /// Counts a class as woven, once however often it passes through the hook.
    fn count(&self, name: &str, loader: u32, bytes: &[u8], methods: u64) {
        let mut registry = locked(&REGISTRY);
        let Some(registry) = registry.as_mut() else { return };
        match registry.weave(loader, name, self.memory.session, methods, || digest(bytes)) {
            Some(before) => {
                self.methods.fetch_sub(before, Relaxed);
            }
            None => {
                self.classes.fetch_add(1, Relaxed);
            }
        }
        self.methods.fetch_add(methods, Relaxed);
    }

    fn plan_method<'p>(
        &'p self,
        (class, loader): (&str, u32),
        info: &MethodInfo<'_>,
        chosen: Option<&Chosen>,
        natives: Option<&'p NativeProbes>,
    ) -> Option<MethodPlan<'p>> {
        if self.plan.is_regions_only()
            || info.code_len == 0
            || info.access_flags & (access::ABSTRACT | access::NATIVE) != 0
        {
            return None;
        }
        let fits = |list: &[_]| rules::fits_any(list, class, info.name, info.descriptor);
        let is_root = match chosen {
            Some(chosen) => (*chosen.get(info.index)?)?.1,
            None => fits(self.plan.root_methods()),
        };
        // A class may be here only for its roots, or for a region.
        if !is_root && chosen.is_none() && !rules::is_included(&self.plan, class) {
            return None;
        }
        let mut id = locked(&REGISTRY).as_mut()?.id(loader, class, info.name, info.descriptor);
        let begins = self.plan.roots().is_none() || is_root;
        let mut timed = !fits(self.plan.count_only()) && self.is_worth_a_clock(info, is_root);
        if timed && locked(&self.demoted).contains(&id) {
            timed = false;
            let (name, descriptor) = (info.name, info.descriptor);
            id = locked(&REGISTRY).as_mut()?.demoted_id(loader, class, name, descriptor);
        }
        // The JVM runs constructors of its exceptions, which may be woven too.
        let is_leaf = || info.calls_nothing() && !self.wants_class(IMPLICIT);
        let kind = Kind::of(&self.plan, timed, info, is_leaf);
        let probes = natives.map(|natives| natives.choose(begins));
        Some(MethodPlan::new(id, probes.unwrap_or_else(|| self.probes.choose(begins, kind, info))))
    }
}
