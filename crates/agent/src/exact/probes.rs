//! What woven methods call in the probe runtime, for each kind of method.

use super::inject;
use tare_weaver::{Arg, Call, FrameProbe, ProbeSet, Probes, RegionProbe};

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
}

/// How the calls of a method are recorded.
#[derive(Clone, Copy)]
pub enum Kind {
    Timed,
    Counted,
    CountedLeaf,
}

const UNFIT: &str = "the probes do not fit their runtime";

/// What woven methods call.
fn probes(timed: bool, region: Option<&RegionProbe>) -> Result<(Probes, Probes), &'static str> {
    let owner = inject::runtime_name();
    let suffix = if timed { "Timed" } else { "" };
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
    let entry = Call::new(&inject::runtime_name(), name, "(I)V", &[Arg::MethodId]);
    let region = region.cloned();
    Probes::new(ProbeSet { entry: Some(entry), region, ..ProbeSet::default() }).map_err(|_| UNFIT)
}

fn region_probe() -> RegionProbe {
    let owner = inject::runtime_name();
    RegionProbe {
        start: Call::new(&owner, "regionStart", "(JI)J", &[Arg::Token, Arg::Site]),
        stop: Call::new(&owner, "regionStop", "(J)V", &[Arg::Token]),
    }
}

impl AllProbes {
    /// With regions every method can have some, whatever else it has.
    pub fn new(timed: bool, regions: bool) -> Result<Self, &'static str> {
        let probe = region_probe();
        let with = regions.then_some(&probe);
        let (root, inner) = probes(false, with)?;
        let (root_timed, inner_timed) = probes(timed, with)?;
        let (root_leaf, inner_leaf) = (leaf_probes("leafRoot", with)?, leaf_probes("leaf", with)?);
        let region = Probes::new(ProbeSet { region: Some(probe), ..ProbeSet::default() });
        let region = region.map_err(|_| UNFIT)?;
        Ok(AllProbes { root, inner, root_timed, inner_timed, root_leaf, inner_leaf, region })
    }

    /// For methods that have a region and nothing else.
    pub fn region(&self) -> &Probes {
        &self.region
    }

    pub fn choose(&self, begins: bool, kind: Kind) -> &Probes {
        match (begins, kind) {
            (true, Kind::Counted) => &self.root,
            (false, Kind::Counted) => &self.inner,
            (true, Kind::Timed) => &self.root_timed,
            (false, Kind::Timed) => &self.inner_timed,
            (true, Kind::CountedLeaf) => &self.root_leaf,
            (false, Kind::CountedLeaf) => &self.inner_leaf,
        }
    }
}
