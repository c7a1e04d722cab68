//! Which methods of a class are woven when that is less than all, which of the JDK's have probes
//! for other reasons, and what becomes of them.

use super::inject::{Part, Runtime};
use super::subgraph::Chosen;
use super::{Recording, follow, locked, reveal, rules};
use crate::jvm::Jni;
use tare_arena::layout::own::TASKS;
use tare_callgraph::is_trivial;
use tare_classfile::{ClassFile, Code};
use tare_protocol::Refusal;
use tare_weaver::{MethodInfo, MethodOutcome, Probes, Report};

/// Why objects of the classes that are watched may not be.
const UNWATCHED: &str = "it is woven, but objects of --live that it makes are not watched: it has \
                         no reference of its own to one when the constructor returns";

impl Recording {
    /// Counts the methods that were refused, and tells the subgraph what was woven.
    pub(super) fn note(&self, name: &str, bytes: &[u8], report: &Report, chosen: Option<&Chosen>) {
        let (mut woven, mut refused) = (Vec::new(), Vec::new());
        for method in &report.methods {
            let of = chosen.and_then(|chosen| (*chosen.get(method.index)?)?.0);
            if let MethodOutcome::Refused(refusal) = &method.outcome {
                self.refuse_method(name, bytes, method.index, &refusal.to_string());
                refused.extend(of.map(|of| (of, refusal.to_string())));
            } else if let MethodOutcome::Woven { unwatched, .. } = &method.outcome {
                if *unwatched > 0 {
                    self.refuse_method(name, bytes, method.index, UNWATCHED);
                }
                woven.extend(of.map(|of| (of, method.id)));
            }
        }
        if let Some(subgraph) = &self.subgraph {
            subgraph.woven(&woven, &refused);
        }
    }

    /// Tells the subgraph that none of the chosen methods of a class was woven, so that nobody
    /// waits for them.
    pub(super) fn note_left_out(&self, chosen: Option<&Chosen>, reason: &str) {
        if let (Some(subgraph), Some(chosen)) = (&self.subgraph, chosen) {
            let methods = chosen.iter().filter_map(|method| (*method)?.0);
            let refused: Vec<_> = methods.map(|method| (method, reason.to_owned())).collect();
            subgraph.woven(&[], &refused);
        }
    }

    /// Whether a method's calls are timed; roots always are.
    pub(super) fn is_worth_a_clock(&self, info: &MethodInfo<'_>, is_root: bool) -> bool {
        self.plan.is_timed() && (self.plan.times_all() || is_root || !info.is_short())
    }

    /// Without a subgraph: every method that is more than a field's.
    pub(super) fn all_but_trivial(&self, name: &str, bytes: &[u8]) -> Option<Chosen> {
        let class = ClassFile::parse(bytes).ok()?;
        let pool = &class.pool;
        let included = rules::is_included(&self.plan, name);
        let wanted = class.methods.iter().map(|member| {
            let method = pool.utf8(member.name_index).ok()?;
            let code = Code::parse(&member.attributes.find(pool, "Code")?).ok()?;
            let descriptor = pool.utf8(member.descriptor_index).ok()?;
            let root = rules::fits_any(self.plan.root_methods(), name, method, descriptor);
            let wanted = root || (included && !is_trivial(pool, method, code.code));
            wanted.then_some((None, root))
        });
        Some(wanted.collect())
    }

    /// What was refused, regions of which there is no code among it.
    pub(super) fn refusals(&self) -> Vec<Refusal> {
        let mut all = locked(&self.refused).list();
        all.extend(self.regions.unseen());
        all.extend(self.nameless_refusals());
        let lost = if self.follow.is_some() { follow::lost() } else { 0 };
        if lost > 0 {
            all.push(Refusal {
                what: "threads and tasks begun below a root".to_owned(),
                count: lost,
                reason: "there was no room to note where they come from".to_owned(),
            });
        }
        all
    }

    /// Tells the probes where they note tasks on their way, or that nobody follows them; and where
    /// they note contexts for an agent, who ends only after the session.
    pub(super) fn listen_to_threads(&self, jni: Jni, runtime: Runtime, on: bool) {
        if on {
            self.load_agent(jni, runtime);
        }
        if self.follow.is_some() {
            let table = if on { follow::table().as_ptr() as i64 } else { 0 };
            jni.call_static_longs(runtime[Part::Tasks], c"following", table, TASKS as i64);
        }
    }

    /// Whether a class of the JDK has methods that show what is called, started or handed over.
    pub(super) fn is_watched(&self, name: &str, loader: u32) -> bool {
        loader == 0
            && ((self.subgraph.is_some() && reveal::WATCHED.contains(&name))
                || (self.follow.is_some() && follow::CLASSES.contains(&name)))
    }

    /// The probes that such a method gets for that.
    pub(super) fn watch(&self, class: &str, info: &MethodInfo<'_>) -> Option<&Probes> {
        self.watches
            .of(class, info)
            .filter(|_| self.subgraph.is_some())
            .or_else(|| self.follow.as_ref()?.of(class, info))
    }
}
