//! Which methods of a class are woven when that is less than all, and what becomes of them.

use super::Engine;
use super::subgraph::Chosen;
use tare_callgraph::is_trivial;
use tare_classfile::{ClassFile, Code};
use tare_weaver::{MethodOutcome, Report};

impl Engine {
    /// Counts the methods that were refused, and tells the subgraph what was woven.
    pub(super) fn note(&self, name: &str, bytes: &[u8], report: &Report, chosen: Option<&Chosen>) {
        let (mut woven, mut refused) = (Vec::new(), Vec::new());
        for method in &report.methods {
            let of = chosen.and_then(|chosen| (*chosen.get(method.index)?)?.0);
            if let MethodOutcome::Refused(refusal) = &method.outcome {
                self.refuse_method(name, bytes, method.index, &refusal.to_string());
                refused.extend(of.map(|of| (of, refusal.to_string())));
            } else if let MethodOutcome::Woven { .. } = &method.outcome {
                woven.extend(of.map(|of| (of, method.id)));
            }
        }
        if let Some(subgraph) = &self.subgraph {
            subgraph.woven(&woven, &refused);
        }
    }

    /// Without a subgraph: every method that is more than a field's.
    pub(super) fn all_but_trivial(&self, name: &str, bytes: &[u8]) -> Option<Chosen> {
        let class = ClassFile::parse(bytes).ok()?;
        let pool = &class.pool;
        let wanted = class.methods.iter().map(|member| {
            let method = pool.utf8(member.name_index).ok()?;
            let code = Code::parse(&member.attributes.find(pool, "Code")?).ok()?;
            let text = std::str::from_utf8(method).ok()?;
            let root = self.plan.roots.iter().any(|p| p.fits_method(name, text));
            let wanted = root || !is_trivial(pool, method, code.code);
            wanted.then_some((None, root))
        });
        Some(wanted.collect())
    }
}
