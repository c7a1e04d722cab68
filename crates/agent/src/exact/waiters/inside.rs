//! Threads that wait inside the JVM for one that is held up: for the end of a static initialiser
//! that it runs, or for a class that it brings.
//!
//! The JVM tells nobody of such a wait, but it can be seen: the thread counts as running, uses no
//! processor, and is neither in Java code nor in a native function. A thread that was held up looks
//! for such threads, and at what they stand: an instruction that needs a class which it holds, or a
//! native function (reflection), of which only the JVM knows the class. Virtual threads keep their
//! carriers while they wait so, and are found by them.
//!
//! A thread that came while the other one was held up already did not wait all the time; what it
//! had used of a processor before tells how much of it.

use super::current_tree;
use crate::exact::clock;
use crate::exact::inject::{self, Part};
use crate::exact::{Recording, locked};
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::{jclass, jmethodID, jthread};
use std::collections::HashMap;
use std::sync::Mutex;
use tare_classfile::ConstantPool;
use tare_classfile::insn::insn_at;
use tare_classfile::opcode::op;

/// Of more, some keep the wait in their times, and are counted: so many are asked whether they
/// park, wait for a lock or sleep, …
const MOST_ASKED: usize = 2000;

/// … and so many of the others are looked at.
const MOST_THREADS: usize = 200;

const INITIALISER: &[u8] = b"<clinit>";

/// Whether methods that were on the stacks of threads that were held up are initialisers.
#[derive(Default)]
pub struct Known(Mutex<HashMap<usize, bool>>);

/// What a thread keeps others from, that is about to be held up.
pub struct Holds {
    own: Option<u64>,
    /// What it brings by the JVM's own loader, which has no lock. (A class that is linked has one.)
    class: Option<Vec<u8>>,
    initialisers: Vec<jmethodID>,
    began_ns: u64,
    /// What threads had used of a processor by then, by their trees.
    used: HashMap<u64, u64>,
}

/// Where a thread waits.
enum Place {
    /// At an instruction of this method that needs a class of this name.
    Needs(jmethodID, Vec<u8>),
    /// In a native function, or where a call site is linked: only the JVM knows the class.
    Unknown,
}

impl Recording {
    /// Before the calling thread is held up as it brings a class: whom that may concern.
    pub(super) fn holds(&self, jni: Jni, class: &str, by_the_jvm: bool) -> Option<Holds> {
        let own = current_tree(jni);
        if self.memory.trees() <= u32::from(own.is_some()) {
            return None;
        }
        // Other loaders have locks, of which the JVM tells.
        let class = by_the_jvm.then(|| class.as_bytes().to_vec());
        let mut initialisers = Vec::new();
        for (method, _) in self.jvmti.own_stack().ok()? {
            if self.initialises(jni, method) {
                initialisers.push(method);
            }
        }
        if class.is_none() && initialisers.is_empty() {
            return None;
        }
        // Both looks, this one and the one at the end, or none.
        let threads = self.waiters.budget.threads();
        if !self.waiters.budget.take(2 * threads.min(MOST_ASKED)) {
            self.memory.note_waits(0, threads);
            return None;
        }
        let began_ns = clock::nanos();
        let mut used = HashMap::new();
        self.each_thread(jni, own, |_, carrier, tree| {
            used.extend(self.jvmti.processor_time(carrier).map(|used| (tree, used)));
        });
        Some(Holds { own, class, initialisers, began_ns, used })
    }

    /// The calling thread was held up from `began` until now: so were those who wait for it inside
    /// the JVM.
    pub(super) fn held_inside(&self, jni: Jni, holds: &Holds, began: u64) {
        let mut held = Vec::new();
        let mut doubted = 0;
        let mut only_one = None;
        let unseen = self.each_thread(jni, holds.own, |thread, carrier, tree| {
            let Some((place, used)) = self.waits_inside(jni, thread, carrier) else { return };
            let concerned = match &place {
                Place::Needs(method, class) => {
                    holds.class.as_ref() == Some(class) || self.is_held(jni, *method, class, holds)
                }
                Place::Unknown => {
                    let only =
                        *only_one.get_or_insert_with(|| self.only_one_initialises(jni, holds));
                    doubted += usize::from(!only);
                    only
                }
            };
            if concerned {
                let before = holds.used.get(&tree).copied().unwrap_or(used);
                held.push((tree, used.saturating_sub(before)));
            }
        });
        self.memory.note_waits(doubted, unseen);
        // They go on waiting until this thread does, so that the look at them is in it, too.
        let took = u128::from(self.memory.unpaused().saturating_sub(began));
        let took_ns = clock::nanos().saturating_sub(holds.began_ns).max(1);
        for (tree, ran_ns) in held {
            let waited_ns = took_ns.saturating_sub(ran_ns);
            let waited = took * u128::from(waited_ns) / u128::from(took_ns);
            self.memory.adjust(tree, waited as u64);
        }
    }

    /// Threads inside the subgraph that count as running, each with the one whose processor time is
    /// its own. How many threads were left out because there are too many.
    fn each_thread(
        &self,
        jni: Jni,
        own: Option<u64>,
        mut body: impl FnMut(jthread, jthread, u64),
    ) -> usize {
        let budget = &self.waiters.budget;
        let left_out = budget.pay(2 * budget.threads(), || {
            jni.frame_of(2 * MOST_ASKED, || {
                let threads = self.jvmti.threads().unwrap_or_default();
                budget.note_threads(threads.len());
                let mut left_out = threads.len().saturating_sub(MOST_ASKED);
                let by_carrier = threads.into_iter().take(MOST_ASKED).map(|carrier| {
                    let carried = jni.is_carrier(carrier).then(|| self.jvmti.carried(carrier));
                    (carried.flatten().unwrap_or(carrier), carrier)
                });
                let running = by_carrier.filter(|&(thread, _)| self.jvmti.is_runnable(thread));
                for (number, (thread, carrier)) in running.enumerate() {
                    if number >= MOST_THREADS {
                        left_out += 1;
                        continue;
                    }
                    let tree = tree_of(jni, thread).filter(|&tree| Some(tree) != own);
                    if let Some(tree) = tree {
                        body(thread, carrier, tree);
                    }
                }
                left_out
            })
        });
        left_out.unwrap_or(0)
    }

    /// Where a thread waits inside the JVM, if it does, and what it has used of a processor.
    fn waits_inside(&self, jni: Jni, thread: jthread, carrier: jthread) -> Option<(Place, u64)> {
        if self.jvmti.is_in_native(thread) {
            return None;
        }
        let used = self.jvmti.processor_time(carrier)?;
        let (method, at) = self.jvmti.top_frame(thread)?;
        // In Java code it would have had to run, to be asked where it is.
        if self.jvmti.processor_time(carrier)? != used {
            return None;
        }
        let place =
            if at < 0 { Place::Unknown } else { jni.frame(|| self.place(method, at)).flatten()? };
        Some((place, used))
    }

    /// Whether a class that a method needs comes after one that is held up: is initialised after
    /// it, or not even loaded before it.
    fn is_held(&self, jni: Jni, method: jmethodID, class: &[u8], holds: &Holds) -> bool {
        let held = jni.frame(|| {
            let Some(needed) = self.loaded(jni, method, class) else {
                return holds.class.is_some();
            };
            let initialised = holds.initialisers.iter().filter_map(|&m| self.jvmti.class_of(m));
            !self.jvmti.is_initialised(needed)
                && initialised.into_iter().any(|class| jni.is_subclass(needed, class))
        });
        held == Some(true)
    }

    /// A class as it is known where a method is.
    fn loaded(&self, jni: Jni, method: jmethodID, class: &[u8]) -> Option<jclass> {
        let loader = self.jvmti.class_loader(self.jvmti.class_of(method)?).ok()?;
        let known = self.jvmti.classes_of(loader)?;
        let mut found = None;
        for each in known {
            if found.is_none() && self.jvmti.class_name(each).as_deref() == Some(class) {
                found = Some(each);
            } else {
                jni.delete_local(each);
            }
        }
        found
    }

    /// Whether no thread runs an initialiser but the calling one and those who wait in the JVM.
    fn only_one_initialises(&self, jni: Jni, holds: &Holds) -> bool {
        let budget = &self.waiters.budget;
        if !budget.take(budget.threads().min(MOST_ASKED)) {
            return false; // It is doubted, and counted as such.
        }
        let mut others = 0;
        self.each_thread(jni, holds.own, |thread, carrier, _| {
            let stack = self.jvmti.stack(thread).unwrap_or_default();
            let initialises = stack.iter().any(|&(method, _)| self.initialises(jni, method));
            if initialises && self.waits_inside(jni, thread, carrier).is_none() {
                others += 1;
            }
        });
        others == 0
    }

    /// What the instruction at this place needs: brought, linked, perhaps initialised.
    fn place(&self, method: jmethodID, at: i64) -> Option<Place> {
        let code = self.jvmti.code(method)?;
        let instruction = insn_at(&code, usize::try_from(at).ok()?).ok()?;
        let index = instruction.constant()?;
        let pool = self.jvmti.constant_pool(self.jvmti.class_of(method)?)?;
        let pool = ConstantPool::from_bytes(&pool).ok()?;
        let name = match instruction.opcode {
            op::NEW | op::ANEWARRAY | op::MULTIANEWARRAY | op::CHECKCAST | op::INSTANCEOF => {
                pool.class_name(index)
            }
            op::LDC | op::LDC_W => pool.class_name(index),
            op::INVOKEDYNAMIC => return Some(Place::Unknown),
            _ => pool.member(index).map(|member| member.owner),
        };
        let name = name.ok()?;
        let element = name.strip_suffix(b";").and_then(|array| array.split(|&b| b == b'L').nth(1));
        Some(Place::Needs(method, element.unwrap_or(name).to_vec()))
    }

    fn initialises(&self, jni: Jni, method: jmethodID) -> bool {
        let known = locked(&self.waiters.known.0).get(&(method as usize)).copied();
        known.unwrap_or_else(|| {
            let name = jni.frame(|| self.jvmti.method_of(method)).flatten().map(|(_, m)| m.name);
            let initialises = name.as_deref() == Some(INITIALISER);
            locked(&self.waiters.known.0).insert(method as usize, initialises);
            initialises
        })
    }
}

/// The tree of a thread that is inside the subgraph.
fn tree_of(jni: Jni, thread: jthread) -> Option<u64> {
    let tree =
        jni.get_static_long_of_thread(inject::runtime(jni).ok()?[Part::Probe], c"treeOf", thread)?;
    (tree != 0).then_some(tree.cast_unsigned())
}
