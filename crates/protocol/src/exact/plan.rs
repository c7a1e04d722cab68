//! What an exact recording is asked to do: what is woven, and what is measured of it.
//!
//! What cannot be measured together cannot be written down. How a plan travels is
//! `plan_message`'s job.

use crate::{MethodPattern, Pattern, Region, TypePattern};
use std::fmt;
use std::str::FromStr;

/// Which of the methods that may be woven are, when roots are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// What a method calls is woven when it first runs.
    #[default]
    Lazy,
    /// All that can be reached is woven, as far as it is loaded, and what is loaded later.
    Eager,
    /// Everything; the roots only decide what is counted.
    All,
}

impl Scheme {
    pub const ALL: [Scheme; 3] = [Scheme::Lazy, Scheme::Eager, Scheme::All];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Lazy => "lazy",
            Scheme::Eager => "eager",
            Scheme::All => "all",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Scheme::ALL.into_iter().find(|scheme| scheme.name() == text);
        found.ok_or_else(|| format!("{text:?} is none of lazy, eager, all"))
    }
}

/// How executed bytecodes are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockAnalysis {
    /// A block that an exception leaves half way is counted as a whole.
    #[default]
    Default,
    /// Whatever can throw ends a block: exact under exceptions, too.
    Precise,
}

impl BlockAnalysis {
    pub const ALL: [BlockAnalysis; 2] = [BlockAnalysis::Default, BlockAnalysis::Precise];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BlockAnalysis::Default => "default",
            BlockAnalysis::Precise => "precise",
        }
    }
}

impl fmt::Display for BlockAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BlockAnalysis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = BlockAnalysis::ALL.into_iter().find(|blocks| blocks.name() == text);
        found.ok_or_else(|| format!("{text:?} is none of default, precise"))
    }
}

/// What costs of bytecodes are counted in, in picoseconds.
pub const COST_PS: u64 = 10;

/// Which methods are woven, and what is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactPlan {
    /// Classes; none means every class that is not the JDK's.
    pub include: Vec<Pattern>,
    /// Classes besides, whatever `include` says; `exclude` does not touch them.
    pub also: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
    /// Leave methods as they are that are empty or only hand out or store a field.
    pub skip_trivial: bool,
    /// Weave methods that pass 8,000 bytes by it, which HotSpot does not compile.
    pub allow_huge: bool,
    /// How long the program may stand still while classes are loaded again, as far as that can be
    /// chosen; zero means no limit.
    pub max_pause_ns: u64,
    /// Bytes that what is measured may take.
    pub memory: u64,
    pub measure: Measure,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Every call, in calling-context trees.
    Trees(TreePlan),
    /// A stack whenever a thread has executed so many bytecodes.
    Samples(BytecodeSamples),
    /// Every entry and exit, in rings.
    Trace(TracePlan),
    /// Passages of regions, and nothing else.
    Regions(Vec<Region>),
}

impl Default for Measure {
    fn default() -> Self {
        Measure::Trees(TreePlan::default())
    }
}

/// What trees hold, and how large they grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreePlan {
    pub figures: Figures,
    /// None means that every woven method may begin a tree.
    pub roots: Option<TreeRoots>,
    /// Contexts deeper than this are summed up in their ancestor's rest; zero means no limit.
    pub depth: u32,
}

/// What is known of each context beside its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figures {
    /// Nothing.
    Counts {
        /// A method that is called while it is under way counts in its outer context.
        fold: bool,
        /// Methods and lines whose every passage is timed.
        regions: Vec<Region>,
    },
    /// The time it took.
    Times {
        /// Time that threads spent on a processor, instead of time that passed.
        cpu_time: bool,
        /// Time the first calls of each context, and then some that are drawn.
        some: Option<SomeTimes>,
        /// Time even methods that are over sooner than a clock can be read, which are else counted.
        all: bool,
        /// Methods that are counted but not timed.
        count_only: Vec<MethodPattern>,
        /// Methods and lines whose every passage is timed.
        regions: Vec<Region>,
    },
    /// The bytecodes that it executed.
    Bytecodes { blocks: BlockAnalysis, fold: bool, counted: Counted },
    /// What it allocated, at each site and of each class.
    Sites {
        fold: bool,
        /// Objects of these classes are handed over, for [`crate::AllocPlan::woven`].
        watch: Vec<TypePattern>,
    },
}

impl Default for Figures {
    fn default() -> Self {
        Figures::Counts { fold: false, regions: Vec::new() }
    }
}

/// Which calls are timed, if not all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SomeTimes {
    /// One in so many, on average.
    pub one_in: u32,
    /// Of what is random in that.
    pub seed: u64,
}

/// What executed bytecodes are counted as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// One each.
    Number {
        /// Objects and bytes that are allocated, beside them.
        allocations: bool,
        /// The jar of an agent written in Java, as the JVM finds it.
        agent_jar: Option<String>,
    },
    /// What each costs, by its kind (`tare_classfile::kinds`), in [`COST_PS`].
    Costs(Vec<u32>),
}

/// Samples by executed bytecodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytecodeSamples {
    pub blocks: BlockAnalysis,
    /// Bytecodes between two samples of a thread.
    pub every: u32,
    /// Their distance is so on average only; the seed of what is random in it.
    pub random: Option<u64>,
    /// The jar of an agent written in Java, as the JVM finds it.
    pub agent_jar: Option<String>,
    pub fold: bool,
    /// As in [`TreePlan`].
    pub depth: u32,
}

/// The rings of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracePlan {
    /// Bytes of a thread's ring.
    pub ring: u64,
    /// Milliseconds, a second at most, that a thread waits for room in its ring before it drops
    /// events; zero means never.
    pub wait: u64,
    pub roots: Option<Roots>,
}

/// Methods where what is measured begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    pub(super) methods: Vec<MethodPattern>,
    pub(super) scheme: Scheme,
}

impl Roots {
    /// `None` without methods: there are no roots, then.
    #[must_use]
    pub fn of(methods: Vec<MethodPattern>, scheme: Scheme) -> Option<Self> {
        (!methods.is_empty()).then_some(Roots { methods, scheme })
    }

    #[must_use]
    pub fn methods(&self) -> &[MethodPattern] {
        &self.methods
    }

    /// How what they reach is found.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }
}

/// The roots of trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRoots {
    pub roots: Roots,
    /// Threads that are started below them are below them, too, and so are tasks.
    pub follow_threads: bool,
    /// Only some of their calls are followed; only where times are measured, of every call.
    pub follow: Option<Follow>,
}

/// Which calls of roots are followed, if not all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// One in so many, on average.
    pub one_in: u32,
    /// Of what is random in that.
    pub seed: u64,
    /// Of each root so many of the slowest are kept whole, and as many that are drawn.
    pub kept: u32,
}

impl ExactPlan {
    /// Whether woven methods read a clock for their context's figures or for regions.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        matches!(
            &self.measure,
            Measure::Trees(TreePlan { figures: Figures::Times { .. }, .. }) | Measure::Regions(_)
        )
    }

    /// Whether that is a thread's processor time, and not time that passes.
    #[must_use]
    pub fn is_cpu_time(&self) -> bool {
        let Measure::Trees(trees) = &self.measure else { return false };
        matches!(trees.figures, Figures::Times { cpu_time: true, .. })
    }

    /// Which calls are timed, if not all of them.
    #[must_use]
    pub fn some_times(&self) -> Option<SomeTimes> {
        let Measure::Trees(trees) = &self.measure else { return None };
        match trees.figures {
            Figures::Times { some, .. } => some,
            Figures::Counts { .. } | Figures::Bytecodes { .. } | Figures::Sites { .. } => None,
        }
    }

    /// Which calls of roots are followed, if not all of them.
    #[must_use]
    pub fn follow(&self) -> Option<Follow> {
        match &self.measure {
            Measure::Trees(TreePlan {
                figures: Figures::Times { some: None, .. },
                roots: Some(roots),
                ..
            }) => roots.follow,
            _ => None,
        }
    }

    /// Whether methods are timed that are over sooner than a clock can be read.
    #[must_use]
    pub fn times_all(&self) -> bool {
        let Measure::Trees(trees) = &self.measure else { return false };
        matches!(trees.figures, Figures::Times { all: true, .. })
    }

    /// Methods that are counted although the others are timed.
    #[must_use]
    pub fn count_only(&self) -> &[MethodPattern] {
        let Measure::Trees(trees) = &self.measure else { return &[] };
        match &trees.figures {
            Figures::Times { count_only, .. } => count_only,
            Figures::Counts { .. } | Figures::Bytecodes { .. } | Figures::Sites { .. } => &[],
        }
    }

    #[must_use]
    pub fn is_trace(&self) -> bool {
        matches!(self.measure, Measure::Trace(_))
    }

    #[must_use]
    pub fn is_regions_only(&self) -> bool {
        matches!(self.measure, Measure::Regions(_))
    }

    /// Whether recursive calls are counted in their outer context.
    #[must_use]
    pub fn folds(&self) -> bool {
        match &self.measure {
            Measure::Trees(trees) => matches!(
                trees.figures,
                Figures::Counts { fold: true, .. }
                    | Figures::Bytecodes { fold: true, .. }
                    | Figures::Sites { fold: true, .. }
            ),
            Measure::Samples(samples) => samples.fold,
            Measure::Trace(_) | Measure::Regions(_) => false,
        }
    }

    /// The depth beyond which contexts are summed up; zero means no limit.
    #[must_use]
    pub fn depth(&self) -> u32 {
        match &self.measure {
            Measure::Trees(trees) => trees.depth,
            Measure::Samples(samples) => samples.depth,
            Measure::Trace(_) | Measure::Regions(_) => 0,
        }
    }

    #[must_use]
    pub fn roots(&self) -> Option<&Roots> {
        match &self.measure {
            Measure::Trees(trees) => trees.roots.as_ref().map(|tree| &tree.roots),
            Measure::Trace(trace) => trace.roots.as_ref(),
            Measure::Samples(_) | Measure::Regions(_) => None,
        }
    }

    /// The methods that are roots; none means that every woven method may begin a tree.
    #[must_use]
    pub fn root_methods(&self) -> &[MethodPattern] {
        self.roots().map_or(&[], Roots::methods)
    }

    #[must_use]
    pub fn follows_threads(&self) -> bool {
        let Measure::Trees(trees) = &self.measure else { return false };
        trees.roots.as_ref().is_some_and(|tree| tree.follow_threads)
    }

    #[must_use]
    pub fn regions(&self) -> &[Region] {
        match &self.measure {
            Measure::Regions(regions) => regions,
            Measure::Trees(trees) => match &trees.figures {
                Figures::Counts { regions, .. } | Figures::Times { regions, .. } => regions,
                Figures::Bytecodes { .. } | Figures::Sites { .. } => &[],
            },
            Measure::Samples(_) | Measure::Trace(_) => &[],
        }
    }

    /// How executed bytecodes are counted, if they are.
    #[must_use]
    pub fn blocks(&self) -> Option<BlockAnalysis> {
        match &self.measure {
            Measure::Trees(TreePlan { figures: Figures::Bytecodes { blocks, .. }, .. })
            | Measure::Samples(BytecodeSamples { blocks, .. }) => Some(*blocks),
            _ => None,
        }
    }

    /// What executed bytecodes are counted as, where each call is.
    #[must_use]
    pub fn counted(&self) -> Option<&Counted> {
        let Measure::Trees(trees) = &self.measure else { return None };
        match &trees.figures {
            Figures::Bytecodes { counted, .. } => Some(counted),
            Figures::Counts { .. } | Figures::Times { .. } | Figures::Sites { .. } => None,
        }
    }

    /// Whether allocations are counted beside bytecodes.
    #[must_use]
    pub fn allocations(&self) -> bool {
        matches!(self.counted(), Some(Counted::Number { allocations: true, .. }))
    }

    /// Whether allocations are counted site by site.
    #[must_use]
    pub fn has_sites(&self) -> bool {
        let Measure::Trees(trees) = &self.measure else { return false };
        matches!(trees.figures, Figures::Sites { .. })
    }

    /// Classes whose objects are handed over when they are made.
    #[must_use]
    pub fn watched(&self) -> &[TypePattern] {
        match &self.measure {
            Measure::Trees(TreePlan { figures: Figures::Sites { watch, .. }, .. }) => watch,
            _ => &[],
        }
    }

    /// What bytecodes cost by their kinds; none means one each.
    #[must_use]
    pub fn costs(&self) -> &[u32] {
        match self.counted() {
            Some(Counted::Costs(costs)) => costs,
            _ => &[],
        }
    }

    #[must_use]
    pub fn agent_jar(&self) -> Option<&str> {
        match (&self.measure, self.counted()) {
            (Measure::Samples(samples), _) => samples.agent_jar.as_deref(),
            (_, Some(Counted::Number { agent_jar, .. })) => agent_jar.as_deref(),
            _ => None,
        }
    }
}
