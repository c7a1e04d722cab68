//! What woven methods call in the probe runtime, for each kind of method.

use super::bytecodes::BytecodeProbes;
use super::inject::Part;
use super::sites::SiteProbes;
use super::trace;
use tare_protocol::ExactPlan;
use tare_weaver::{Arg, Call, FrameProbe, MethodInfo, ProbeSet, Probes, RegionProbe};

/// Probes of methods where the subgraph may begin and of the others, timed or only counted, and
/// of counted methods that call nothing.
pub struct AllProbes {
    root: Probes,
    inner: Probes,
    root_timed: Probes,
    inner_timed: Probes,
    root_leaf: Probes,
    inner_leaf: Probes,
    region: Probes,
    bytecodes: Option<BytecodeProbes>,
    sites: Option<SiteProbes>,
    /// In a trace: where the subgraph may begin, and elsewhere.
    trace: Option<(Probes, Probes)>,
}

/// How the calls of a method are recorded.
#[derive(Clone, Copy)]
pub enum Kind {
    Timed,
    Counted,
    CountedLeaf,
    /// With the bytecodes that they execute; only in sessions that count those.
    Bytecodes,
    BytecodesLeaf,
}

impl Kind {
    /// How a method is recorded; `is_leaf` says whether it calls nothing.
    pub fn of(
        plan: &ExactPlan,
        timed: bool,
        info: &MethodInfo<'_>,
        is_leaf: impl Fn() -> bool,
    ) -> Self {
        match (timed, plan.blocks()) {
            (true, _) => Kind::Timed,
            (false, None) if is_leaf() => Kind::CountedLeaf,
            (false, None) => Kind::Counted,
            (false, Some(_)) if !plan.allocations() && info.has_no_loops() && is_leaf() => {
                Kind::BytecodesLeaf
            }
            (false, Some(_)) => Kind::Bytecodes,
        }
    }
}

pub(super) const UNFIT: &str = "the probes do not fit their runtime";

/// Which calls are timed.
#[derive(Clone, Copy)]
enum Times {
    None,
    Some,
    All,
    /// In calls of roots that are followed.
    Followed,
}

/// What woven methods call.
fn probes(times: Times, region: Option<&RegionProbe>) -> Result<(Probes, Probes), &'static str> {
    let (part, suffix) = match times {
        Times::None => (Part::Probe, ""),
        Times::Some => (Part::Some, "Some"),
        Times::All => (Part::Probe, "Timed"),
        Times::Followed => (Part::Followed, "Followed"),
    };
    let owner = part.name();
    let set = |enter: &str| {
        let call = |name: &str, descriptor: &str, arguments: &[Arg]| {
            Call::new(&owner, &format!("{name}{suffix}"), descriptor, arguments)
        };
        let exit = call("exit", "(J)V", &[Arg::Token]);
        Probes::new(ProbeSet {
            frames: vec![FrameProbe {
                enter: call(enter, "(I)J", &[Arg::MethodId]),
                exit: exit.clone(),
                exit_throw: Some(exit),
                caught: Some(call("caught", "(JI)V", &[Arg::Token, Arg::MethodId])),
            }],
            region: region.cloned(),
            ..ProbeSet::default()
        })
        .map_err(|_| UNFIT)
    };
    Ok((set("enterRoot")?, set("enter")?))
}

fn leaf_probes(name: &str, region: Option<&RegionProbe>) -> Result<Probes, &'static str> {
    let entry = Call::new(&Part::Probe.name(), name, "(I)V", &[Arg::MethodId]);
    let region = region.cloned();
    Probes::new(ProbeSet { entry: Some(entry), region, ..ProbeSet::default() }).map_err(|_| UNFIT)
}

fn region_probe() -> RegionProbe {
    let owner = Part::Regions.name();
    RegionProbe {
        start: Call::new(&owner, "regionStart", "(JI)J", &[Arg::Token, Arg::Site]),
        stop: Call::new(&owner, "regionStop", "(J)V", &[Arg::Token]),
    }
}

impl AllProbes {
    /// With regions every method can have some, whatever else it has.
    pub fn new(plan: &ExactPlan) -> Result<Self, &'static str> {
        let probe = region_probe();
        let with = (!plan.regions().is_empty()).then_some(&probe);
        let (root, inner) = probes(Times::None, with)?;
        let times = match () {
            () if plan.some_times().is_some() => Times::Some,
            () if plan.follow().is_some() => Times::Followed,
            () if plan.is_timed() => Times::All,
            () => Times::None,
        };
        let (root_timed, inner_timed) = probes(times, with)?;
        let (root_leaf, inner_leaf) = (leaf_probes("leafRoot", with)?, leaf_probes("leaf", with)?);
        let bytecodes = plan.blocks().map(|blocks| BytecodeProbes::new(blocks, plan));
        let bytecodes = bytecodes.transpose()?;
        let sites = plan.has_sites().then(|| SiteProbes::new(plan)).transpose()?;
        let trace = plan.is_trace().then(|| trace::probes(Vec::new())).transpose()?;
        let region = Probes::new(ProbeSet { region: Some(probe), ..ProbeSet::default() });
        let region = region.map_err(|_| UNFIT)?;
        Ok(AllProbes {
            root,
            inner,
            root_timed,
            inner_timed,
            root_leaf,
            inner_leaf,
            region,
            bytecodes,
            sites,
            trace,
        })
    }

    /// For methods that have a region and nothing else.
    pub fn region(&self) -> &Probes {
        &self.region
    }

    pub fn choose(&self, begins: bool, kind: Kind, info: &MethodInfo<'_>) -> &Probes {
        if let Some((root, inner)) = &self.trace {
            return if begins { root } else { inner };
        }
        let sites = self.sites.as_ref().and_then(|sites| sites.choose(begins, kind, info));
        if let Some(sites) = sites {
            return sites;
        }
        let leaf = matches!(kind, Kind::BytecodesLeaf);
        if let (Kind::Bytecodes | Kind::BytecodesLeaf, Some(probes)) = (kind, &self.bytecodes) {
            return probes.choose(begins, leaf, info);
        }
        match (begins, kind) {
            (true, Kind::Counted | Kind::Bytecodes) => &self.root,
            (false, Kind::Counted | Kind::Bytecodes) => &self.inner,
            (true, Kind::Timed) => &self.root_timed,
            (false, Kind::Timed) => &self.inner_timed,
            (true, Kind::CountedLeaf | Kind::BytecodesLeaf) => &self.root_leaf,
            (false, Kind::CountedLeaf | Kind::BytecodesLeaf) => &self.inner_leaf,
        }
    }
}
