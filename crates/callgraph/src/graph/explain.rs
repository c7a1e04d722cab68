//! Why a method is reachable, told to people.

use super::{ClassId, Graph, Loader, MethodId, Side, Why};
use std::collections::HashSet;

/// What `tare explain` shows of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub class: String,
    pub loader: Loader,
    pub method: String,
    pub descriptor: String,
    pub side: Side,
    pub woven: bool,
    pub left_out: Option<String>,
    /// From the method itself back to where it all began; empty when it is not reachable.
    pub chain: Vec<Step>,
}

/// One step of a chain: a method, and how it was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub method: String,
    pub how: String,
}

impl Graph {
    /// What is known of each method that fits.
    pub fn explain(&self, fits: impl Fn(&str, &str, &str) -> bool) -> Vec<Explanation> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut all = Vec::new();
        for (index, m) in self.methods.iter().enumerate() {
            let class = self.class(m.class);
            let (name, descriptor) = self.names.parts(m.selector);
            let (class_name, name) = (text(self.names.text(class.name)), text(name));
            let descriptor = text(descriptor);
            if class.known && fits(&class_name, &name, &descriptor) {
                all.push(Explanation {
                    class: class_name,
                    loader: class.loader,
                    method: name,
                    descriptor,
                    side: class.side,
                    woven: m.woven,
                    left_out: m.left_out.as_deref().map(str::to_owned),
                    chain: self.chain(MethodId(index as u32)),
                });
            }
        }
        all
    }

    fn chain(&self, method: MethodId) -> Vec<Step> {
        let class_name = |id: ClassId| {
            String::from_utf8_lossy(self.names.text(self.class(id).name)).replace('/', ".")
        };
        let mut chain = Vec::new();
        let mut at = Some(method);
        let mut seen = HashSet::new();
        while let Some(id) = at.filter(|id| seen.insert(*id)) {
            let m = &self.methods[id.0 as usize];
            let Some(why) = m.why else { break };
            let name = String::from_utf8_lossy(self.names.parts(m.selector).0);
            let (how, next) = match why {
                Why::Root => ("a root".to_owned(), None),
                Why::Call(caller) => ("called by".to_owned(), Some(caller)),
                Why::Callback(c) => {
                    (format!("overrides a method of {}, which may call it", class_name(c)), None)
                }
                Why::Handle(c) => (format!("a method handle of {} names it", class_name(c)), None),
                Why::Named(c) => (format!("{}, which is not woven, names it", class_name(c)), None),
                Why::Initialiser => ("a static initialiser that has not run yet".to_owned(), None),
                Why::Unsure => ("its supertypes were not loaded when it was".to_owned(), None),
                Why::Again => {
                    ("reachable in a class of that name from another loader".to_owned(), None)
                }
                Why::Revealed => ("seen to be called by reflection or a handle".to_owned(), None),
            };
            chain.push(Step { method: format!("{}.{name}", class_name(m.class)), how });
            at = next;
        }
        chain
    }
}
