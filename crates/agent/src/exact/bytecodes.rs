//! The probes of sessions that count executed bytecodes.
//!
//! Woven code adds up the lengths of its blocks in a local; the probes take the sum to the tree
//! when a method ends, and now and then in a loop, so that whoever looks finds it there.

use super::inject::{Part, Runtime};
use super::probes::UNFIT;
use super::sites;
use crate::jvm::{Jni, Jvmti};
use crate::vm_tables::Tables;
use std::sync::Arc;
use tare_arena::layout::Holds;
use tare_classfile::kinds::Kind;
use tare_protocol::{BlockAnalysis, Counted, ExactPlan, Figures, Measure};
use tare_weaver::{
    AllocationProbe, Arg, Blocks, Call, CountProbe, FrameProbe, MethodInfo, ProbeSet, Probes,
};

/// What the nodes of a session hold.
pub fn holds(plan: &ExactPlan) -> Holds {
    match &plan.measure {
        Measure::Trace(_) => Holds::Trace,
        Measure::Samples(_) => Holds::Samples,
        Measure::Regions(_) => Holds::Times,
        Measure::Trees(trees) => match &trees.figures {
            Figures::Counts { .. } => Holds::Nothing,
            Figures::Times { some: Some(_), .. } => Holds::SomeTimes,
            Figures::Times { .. } if plan.follow().is_some() => Holds::Followed,
            Figures::Times { .. } => Holds::Times,
            Figures::Bytecodes { .. } if plan.allocations() => Holds::Allocations,
            Figures::Bytecodes { .. } => Holds::Bytecodes,
            Figures::Sites { .. } => Holds::Sites,
        },
    }
}

/// A loop takes its count to the tree once it is larger than this: seldom enough to cost nothing,
/// often enough for somebody who looks at a method that never ends.
const FLUSH: u32 = 4096;

/// What a bytecode counts for, by opcode.
type Costs = Arc<[u32; 256]>;

/// The costs of a plan that has some, one for each kind of bytecode.
fn costs(plan: &ExactPlan) -> Option<Costs> {
    let Some(Counted::Costs(costs)) = plan.counted() else { return None };
    let of = |opcode: usize| {
        let kind = Kind::of(opcode as u8) as usize;
        costs.get(kind).copied().unwrap_or(0)
    };
    Some(Arc::new(std::array::from_fn(of)))
}

/// When a loop tells its count: as often, about, if bytecodes count for more than one each.
fn threshold(costs: Option<&Costs>) -> u32 {
    costs.map_or(FLUSH, |_| FLUSH << 6)
}

/// Probes of methods where the subgraph may begin and of the others, and of those that call
/// nothing and have no loop; and of methods in old class files, if allocations are counted.
pub struct BytecodeProbes {
    root: Probes,
    inner: Probes,
    root_leaf: Probes,
    inner_leaf: Probes,
    root_old: Probes,
    inner_old: Probes,
}

impl BytecodeProbes {
    pub fn new(analysis: BlockAnalysis, plan: &ExactPlan) -> Result<Self, &'static str> {
        let blocks = match analysis {
            BlockAnalysis::Default => Blocks::Default,
            BlockAnalysis::Precise => Blocks::Precise,
        };
        if let Measure::Samples(_) = plan.measure {
            return Self::sampled(&blocks);
        }
        let allocations = plan.allocations();
        let costs = costs(plan);
        let costs = costs.as_ref();
        let owner = if plan.agent_jar().is_some() { Part::Agents } else { Part::Bytecodes };
        let frame =
            |enter, old| frame(owner, enter, &blocks, costs, allocations.then(|| allocation(old)));
        Ok(BytecodeProbes {
            root: frame("enterRoot", false)?,
            inner: frame("enter", false)?,
            root_leaf: leaf(owner, true, &blocks, costs)?,
            inner_leaf: leaf(owner, false, &blocks, costs)?,
            root_old: frame("enterRoot", true)?,
            inner_old: frame("enter", true)?,
        })
    }

    /// Probes that keep a stack and take samples of it. There are no roots then, and no
    /// allocations.
    fn sampled(blocks: &Blocks) -> Result<Self, &'static str> {
        let counted = |name| call(Part::Sampling, name, "(JI)V", &[Arg::Token, Arg::Count]);
        let frame = || {
            let set = ProbeSet {
                frames: vec![FrameProbe {
                    enter: call(Part::Sampling, "enter", "(I)J", &[Arg::MethodId]),
                    exit: counted("exit"),
                    exit_throw: Some(counted("exit")),
                    caught: Some(call(
                        Part::Sampling,
                        "caught",
                        "(JI)V",
                        &[Arg::Token, Arg::MethodId],
                    )),
                }],
                count: Some(CountProbe {
                    blocks: blocks.clone(),
                    costs: None,
                    flush: counted("flush"),
                    threshold: FLUSH,
                }),
                ..ProbeSet::default()
            };
            Probes::new(set).map_err(|_| UNFIT)
        };
        let leaf = || told_at_the_end(Part::Sampling, "leaf", blocks, None);
        Ok(BytecodeProbes {
            root: frame()?,
            inner: frame()?,
            root_leaf: leaf()?,
            inner_leaf: leaf()?,
            root_old: frame()?,
            inner_old: frame()?,
        })
    }

    pub fn choose(&self, begins: bool, leaf: bool, info: &MethodInfo<'_>) -> &Probes {
        match (begins, leaf, sites::is_old(info)) {
            (true, false, false) => &self.root,
            (false, false, false) => &self.inner,
            (true, true, _) => &self.root_leaf,
            (false, true, _) => &self.inner_leaf,
            (true, false, true) => &self.root_old,
            (false, false, true) => &self.inner_old,
        }
    }
}

fn call(part: Part, name: &str, descriptor: &str, arguments: &[Arg]) -> Call {
    Call::new(&part.name(), name, descriptor, arguments)
}

fn frame(
    owner: Part,
    enter: &str,
    blocks: &Blocks,
    costs: Option<&Costs>,
    allocation: Option<AllocationProbe>,
) -> Result<Probes, &'static str> {
    let counted = |name| call(owner, name, "(JI)V", &[Arg::Token, Arg::Count]);
    let flush = counted("flushCounted");
    Probes::new(ProbeSet {
        frames: vec![FrameProbe {
            enter: call(Part::Probe, enter, "(I)J", &[Arg::MethodId]),
            exit: counted("exitCounted"),
            exit_throw: Some(counted("exitThrowCounted")),
            caught: Some(call(Part::Probe, "caught", "(JI)V", &[Arg::Token, Arg::MethodId])),
        }],
        count: Some(CountProbe {
            blocks: blocks.clone(),
            costs: costs.cloned(),
            flush,
            threshold: threshold(costs),
        }),
        allocation,
        ..ProbeSet::default()
    })
    .map_err(|_| UNFIT)
}

fn allocation(old: bool) -> AllocationProbe {
    let object = match old {
        true => call(Part::Allocations, "newUnknown", "()V", &[]),
        false => call(Part::Allocations, "newObject", "(Ljava/lang/Class;)V", &[Arg::Class]),
    };
    let made = |name| call(Part::Allocations, name, "(Ljava/lang/Object;)V", &[Arg::Object]);
    AllocationProbe {
        object: Some(object),
        array: Some(made("newArray")),
        clone: Some(made("cloned")),
        ..AllocationProbe::default()
    }
}

/// The call is told at the entry, its bytecodes at the end: so no call has run that is not counted
/// because the stack has no room for a probe. Agents in Java hear of both together.
fn leaf(
    part: Part,
    root: bool,
    blocks: &Blocks,
    costs: Option<&Costs>,
) -> Result<Probes, &'static str> {
    let (begun, ended) = match (part, root) {
        (Part::Agents, true) => return told_at_the_end(part, "leafRootCounted", blocks, costs),
        (Part::Agents, false) => return told_at_the_end(part, "leafCounted", blocks, costs),
        (_, true) => ("leafRootBegun", "leafRootEnded"),
        (_, false) => ("leafBegun", "leafEnded"),
    };
    let entry = Some(call(part, begun, "(I)V", &[Arg::MethodId]));
    let count = Some(at_the_end(part, ended, blocks, costs));
    Probes::new(ProbeSet { entry, count, ..ProbeSet::default() }).map_err(|_| UNFIT)
}

fn told_at_the_end(
    part: Part,
    name: &str,
    blocks: &Blocks,
    costs: Option<&Costs>,
) -> Result<Probes, &'static str> {
    let count = Some(at_the_end(part, name, blocks, costs));
    Probes::new(ProbeSet { count, ..ProbeSet::default() }).map_err(|_| UNFIT)
}

/// The end is the one place where a method without loops tells its count.
fn at_the_end(part: Part, name: &str, blocks: &Blocks, costs: Option<&Costs>) -> CountProbe {
    let flush = call(part, name, "(II)V", &[Arg::MethodId, Arg::Count]);
    CountProbe { blocks: blocks.clone(), costs: costs.cloned(), flush, threshold: 0 }
}

/// Why there are objects without bytes.
pub const NO_SIZES: &str = "this JVM does not tell where it keeps the sizes of objects";

/// Tells the runtime where the JVM keeps the sizes of objects; false when that cannot be known, and
/// objects are counted without bytes.
pub fn tell_sizes(jvmti: Jvmti, jni: Jni, runtime: Runtime) -> bool {
    let runtime = runtime[Part::Allocations];
    let places = || {
        let tables = Tables::read(jvmti.inside_libjvm()).ok()?;
        // An int, in a table that is read by eight bytes.
        let klass = tables.static_value("java_lang_Class", "_klass_offset").ok()? as u32;
        let layout = tables.offset(&["Klass"], "_layout_helper").ok()?;
        let align = tables.int_flag("ObjectAlignmentInBytes").filter(|n| (8..=256).contains(n));
        let align = i64::from(align.unwrap_or(8));
        (klass > 0).then_some((i64::from(klass), layout.cast_signed(), align))
    };
    let Some((klass, layout, align)) = places() else { return false };
    let plausible = jni.call_static_long(runtime, c"align", align)
        && jni.call_static_longs(runtime, c"layout", klass, layout)
        && jni.get_static_long(runtime, c"smallest").is_some_and(|size| (8..=256).contains(&size));
    if !plausible {
        jni.call_static_longs(runtime, c"layout", 0, 0);
    }
    plausible
}
