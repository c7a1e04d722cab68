//! The probes of sessions that count executed bytecodes.
//!
//! Woven code adds up the lengths of its blocks in a local; the probes take the sum to the tree when
//! a method ends, and now and then in a loop, so that whoever looks finds it there.

use super::inject;
use super::probes::UNFIT;
use tare_arena::layout::Holds;
use tare_protocol::{BlockAnalysis, ExactPlan};
use tare_weaver::{Arg, Blocks, Call, CountProbe, FrameProbe, ProbeSet, Probes};

/// What the nodes of a session hold.
pub fn holds(plan: &ExactPlan) -> Holds {
    match (plan.timed, plan.bytecodes, plan.allocations) {
        (true, ..) => Holds::Times,
        (false, Some(_), false) => Holds::Bytecodes,
        (false, Some(_), true) => Holds::Allocations,
        (false, None, _) => Holds::Nothing,
    }
}

/// A loop takes its count to the tree once it is larger than this: seldom enough to cost nothing,
/// often enough for somebody who looks at a method that never ends.
const FLUSH: u32 = 4096;

/// Probes of methods where the subgraph may begin and of the others, and of those that call
/// nothing and have no loop.
pub struct BytecodeProbes {
    root: Probes,
    inner: Probes,
    root_leaf: Probes,
    inner_leaf: Probes,
}

impl BytecodeProbes {
    pub fn new(analysis: BlockAnalysis) -> Result<Self, &'static str> {
        let blocks = match analysis {
            BlockAnalysis::Default => Blocks::Default,
            BlockAnalysis::Precise => Blocks::Precise,
        };
        Ok(BytecodeProbes {
            root: frame("enterRoot", blocks.clone())?,
            inner: frame("enter", blocks.clone())?,
            root_leaf: leaf("leafRootCounted", blocks.clone())?,
            inner_leaf: leaf("leafCounted", blocks)?,
        })
    }

    pub fn choose(&self, begins: bool, leaf: bool) -> &Probes {
        match (begins, leaf) {
            (true, false) => &self.root,
            (false, false) => &self.inner,
            (true, true) => &self.root_leaf,
            (false, true) => &self.inner_leaf,
        }
    }
}

fn frame(enter: &str, blocks: Blocks) -> Result<Probes, &'static str> {
    let owner = inject::runtime_name();
    let call = |name: &str, descriptor: &str, arguments: &[Arg]| {
        Call::new(&owner, name, descriptor, arguments)
    };
    let counted = |name| call(name, "(JI)V", &[Arg::Token, Arg::Count]);
    Probes::new(ProbeSet {
        frames: vec![FrameProbe {
            enter: call(enter, "(I)J", &[Arg::MethodId]),
            exit: counted("exitCounted"),
            exit_throw: Some(counted("exitThrowCounted")),
            caught: Some(call("caught", "(JI)V", &[Arg::Token, Arg::MethodId])),
        }],
        count: Some(CountProbe { blocks, flush: counted("flushCounted"), threshold: FLUSH }),
        ..ProbeSet::default()
    })
    .map_err(|_| UNFIT)
}

/// All is told at the end, which is the one place where such a method tells its count.
fn leaf(name: &str, blocks: Blocks) -> Result<Probes, &'static str> {
    let flush = Call::new(&inject::runtime_name(), name, "(II)V", &[Arg::MethodId, Arg::Count]);
    let count = Some(CountProbe { blocks, flush, threshold: 0 });
    Probes::new(ProbeSet { count, ..ProbeSet::default() }).map_err(|_| UNFIT)
}
