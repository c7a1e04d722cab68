//! Threads that wait for a class whose static initialiser runs on a thread that is held up.
//!
//! The JVM tells nobody. A thread that is held up inside an initialiser looks for others that stand
//! at an instruction which needs that very class, and that have not run since it last looked: those
//! waited all the time. The first look only remembers them, so that of each such wait the weaving of
//! one class at most stays in the figures. Not seen are virtual threads, and threads that need the
//! class by way of a subclass or of reflection.

use super::current_tree;
use crate::exact::inject::{self, Part};
use crate::exact::{Engine, locked};
use crate::jvm::Jni;
use jvmti_bindings::sys::jni::{jmethodID, jthread};
use std::collections::HashMap;
use std::ops::Range;
use tare_classfile::ConstantPool;
use tare_classfile::insn::insn_at;
use tare_classfile::opcode::op;

/// Of more, some keep the wait in their times.
const MOST_THREADS: usize = 200;

/// Where threads stood at the last look of a thread that was held up, by their trees.
#[derive(Default)]
pub struct Seen {
    threads: HashMap<u64, Standing>,
    /// The class whose initialiser a method is, if it is one.
    methods: HashMap<usize, Option<Vec<u8>>>,
}

struct Standing {
    method: usize,
    at: i64,
    /// What it has used of a processor.
    cpu_ns: u64,
    looked: u64,
}

impl Engine {
    /// The calling thread was held up: keeps that time out of the figures of those who wait for a
    /// class that it initialises.
    pub(super) fn held_initialisers(&self, jni: Jni, held: &Range<u64>) {
        let Some(tree) = current_tree(jni) else { return };
        if !self.memory.has_other_trees() {
            return;
        }
        let classes = self.initialises(jni);
        if classes.is_empty() {
            locked(&self.waiters.initialisers).threads.clear();
            return;
        }
        jni.frame_of(MOST_THREADS, || {
            let threads = self.jvmti.threads().unwrap_or_default();
            for thread in threads.into_iter().take(MOST_THREADS) {
                let other = tree_of(jni, thread).filter(|&other| other != tree);
                if let Some(other) = other {
                    self.look_at(jni, thread, other, &classes, held);
                }
            }
        });
    }

    fn look_at(
        &self,
        jni: Jni,
        thread: jthread,
        tree: u64,
        classes: &[Vec<u8>],
        held: &Range<u64>,
    ) {
        let standing = self.stands_at(jni, thread, classes, held.end);
        let mut seen = locked(&self.waiters.initialisers);
        let before = seen.threads.remove(&tree);
        let Some(now) = standing else { return };
        if let Some(before) = before
            && (before.method, before.at, before.cpu_ns) == (now.method, now.at, now.cpu_ns)
        {
            self.memory.adjust(tree, held.end.saturating_sub(held.start.max(before.looked)));
        }
        seen.threads.insert(tree, now);
    }

    /// Where a thread stands, if that is where it needs one of these classes.
    fn stands_at(
        &self,
        jni: Jni,
        thread: jthread,
        classes: &[Vec<u8>],
        looked: u64,
    ) -> Option<Standing> {
        let (method, at) = self.jvmti.top_frame(thread)?;
        let cpu_ns = self.jvmti.processor_time(thread)?;
        let needs = jni.frame(|| self.needs(method, at)).flatten()?;
        let standing = Standing { method: method as usize, at, cpu_ns, looked };
        classes.contains(&needs).then_some(standing)
    }

    /// The class that has to be initialised before the instruction at this place can be executed.
    fn needs(&self, method: jmethodID, at: i64) -> Option<Vec<u8>> {
        let code = self.jvmti.code(method)?;
        let instruction = insn_at(&code, usize::try_from(at).ok()?).ok()?;
        let index = instruction.constant()?;
        let (class, _) = self.jvmti.method_of(method)?;
        let pool = self.jvmti.constant_pool(class)?;
        let pool = ConstantPool::from_bytes(&pool).ok()?;
        let name = match instruction.opcode {
            op::NEW => pool.class_name(index),
            op::GETSTATIC | op::PUTSTATIC | op::INVOKESTATIC => {
                pool.member(index).map(|member| member.owner)
            }
            _ => return None,
        };
        Some(name.ok()?.to_vec())
    }

    /// The classes that the calling thread is initialising.
    fn initialises(&self, jni: Jni) -> Vec<Vec<u8>> {
        let Ok(stack) = self.jvmti.own_stack() else { return Vec::new() };
        let mut classes = Vec::new();
        for method in stack {
            let known = locked(&self.waiters.initialisers).methods.get(&(method as usize)).cloned();
            let class = known.unwrap_or_else(|| {
                let class = jni.frame(|| self.initialiser_of(method)).flatten();
                let mut seen = locked(&self.waiters.initialisers);
                seen.methods.insert(method as usize, class.clone());
                class
            });
            classes.extend(class);
        }
        classes
    }

    fn initialiser_of(&self, method: jmethodID) -> Option<Vec<u8>> {
        let (class, method) = self.jvmti.method_of(method)?;
        (method.name == b"<clinit>").then(|| self.jvmti.class_name(class)).flatten()
    }
}

/// The tree of a thread that is inside the subgraph.
fn tree_of(jni: Jni, thread: jthread) -> Option<u64> {
    let tree =
        jni.get_static_long_of_thread(inject::runtime(jni).ok()?[Part::Probe], c"treeOf", thread)?;
    (tree != 0).then_some(tree.cast_unsigned())
}
