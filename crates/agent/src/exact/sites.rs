//! Allocations by their sites: what is called there, and what sites are called.
//!
//! What woven code makes itself is counted where it does: instructions, clones, captured lambdas,
//! joined strings. What the JDK makes for it is counted at the call where that is sure, unless the
//! JDK's own code is woven, which then counts it.

use super::inject::Part;
use super::names_file::NoRoom;
use super::naming::source_file;
use super::probes::{Kind, UNFIT};
use super::registry::Sites;
use super::rules::is_included;
use super::{REGISTRY, Recording, locked};
use std::hash::{DefaultHasher, Hash, Hasher};
use tare_arena::MethodName;
use tare_classfile::ClassFile;
use tare_protocol::ExactPlan;
use tare_weaver::{
    AllocationProbe, Arg, Call, FrameProbe, How, Maker, Makes, MethodInfo, ProbeSet, Probes,
    SiteInfo, WatchProbe,
};

/// Class files from this version on can name a class as a constant.
const NAMES_CLASSES: u16 = 49;

/// Whether a method's class file cannot name classes.
pub fn is_old(info: &MethodInfo<'_>) -> bool {
    info.major() < NAMES_CLASSES
}

/// Classes whose code only stands in for a call of reflection, where the object is counted.
const STAND_INS: &[u8] = b"jdk/internal/reflect/Generated";

/// Classes of the JDK that make a string of others. The string is counted where they are joined:
/// later JDKs make it in a hidden class, which is never woven.
const JOIN_STRINGS: &[u8] = b"java/lang/StringConcatHelper";

/// Owner and parameter of each method that boxes. Bytes and booleans are never boxed anew.
const BOXES: [(&str, &str); 6] = [
    ("java/lang/Integer", "(I)Ljava/lang/Integer;"),
    ("java/lang/Long", "(J)Ljava/lang/Long;"),
    ("java/lang/Double", "(D)Ljava/lang/Double;"),
    ("java/lang/Float", "(F)Ljava/lang/Float;"),
    ("java/lang/Character", "(C)Ljava/lang/Character;"),
    ("java/lang/Short", "(S)Ljava/lang/Short;"),
];

/// Methods that make an object of a class that they are given.
const BY_CLASS: [(&str, &str, &str); 3] = [
    ("java/lang/reflect/Constructor", "newInstance", "([Ljava/lang/Object;)Ljava/lang/Object;"),
    ("java/lang/Class", "newInstance", "()Ljava/lang/Object;"),
    ("sun/misc/Unsafe", "allocateInstance", "(Ljava/lang/Class;)Ljava/lang/Object;"),
];

/// Methods that make arrays of a class that they are given.
const ARRAYS_BY_CLASS: [&str; 2] =
    ["(Ljava/lang/Class;I)Ljava/lang/Object;", "(Ljava/lang/Class;[I)Ljava/lang/Object;"];

/// How the JDK makes the bytes of strings, by a class that is never woven.
const UNINITIALISED: (&str, &str, &str) = (
    "jdk/internal/misc/Unsafe",
    "allocateUninitializedArray",
    "(Ljava/lang/Class;I)Ljava/lang/Object;",
);

/// Probes of methods where the subgraph may begin and of the others, and of those in old class
/// files.
pub struct SiteProbes {
    root: Probes,
    inner: Probes,
    root_old: Probes,
    inner_old: Probes,
    /// Of classes that join strings.
    root_joins: Probes,
    inner_joins: Probes,
}

impl SiteProbes {
    pub fn new(plan: &ExactPlan) -> Result<Self, &'static str> {
        let joins =
            |enter| frame(enter, AllocationProbe { object: None, ..allocation(plan, false) });
        let frame = |enter, old| frame(enter, allocation(plan, old));
        Ok(SiteProbes {
            root: frame("enterRoot", false)?,
            inner: frame("enter", false)?,
            root_old: frame("enterRoot", true)?,
            inner_old: frame("enter", true)?,
            root_joins: joins("enterRoot")?,
            inner_joins: joins("enter")?,
        })
    }

    /// None for a method that makes nothing and calls nothing, and for one that only stands in.
    pub fn choose(&self, begins: bool, kind: Kind, info: &MethodInfo<'_>) -> Option<&Probes> {
        let probes = match (begins, is_old(info)) {
            (true, _) if info.class.starts_with(JOIN_STRINGS) => &self.root_joins,
            (false, _) if info.class.starts_with(JOIN_STRINGS) => &self.inner_joins,
            (true, false) => &self.root,
            (false, false) => &self.inner,
            (true, true) => &self.root_old,
            (false, true) => &self.inner_old,
        };
        let leaf = matches!(kind, Kind::CountedLeaf) && info.sites(probes).is_empty();
        (!leaf && !info.class.starts_with(STAND_INS)).then_some(probes)
    }
}

fn frame(enter: &str, allocation: AllocationProbe) -> Result<Probes, &'static str> {
    let owner = Part::Probe.name();
    let exit = Call::new(&owner, "exit", "(J)V", &[Arg::Token]);
    Probes::new(ProbeSet {
        frames: vec![FrameProbe {
            enter: Call::new(&owner, enter, "(I)J", &[Arg::MethodId]),
            exit: exit.clone(),
            exit_throw: Some(exit),
            caught: Some(Call::new(&owner, "caught", "(JI)V", &[Arg::Token, Arg::MethodId])),
        }],
        allocation: Some(allocation),
        ..ProbeSet::default()
    })
    .map_err(|_| UNFIT)
}

fn call(name: &str, descriptor: &str, arguments: &[Arg]) -> Call {
    Call::new(&Part::Sites.name(), name, descriptor, arguments)
}

fn made(name: &str) -> Call {
    call(name, "(Ljava/lang/Object;I)V", &[Arg::Object, Arg::Site])
}

fn allocation(plan: &ExactPlan, old: bool) -> AllocationProbe {
    let (object, clone) = match old {
        true => (call("newUnknown", "(I)V", &[Arg::Site]), made("clonedUnknown")),
        false => {
            let with_class = "(Ljava/lang/Object;Ljava/lang/Class;I)V";
            (
                call("newObject", "(Ljava/lang/Class;I)V", &[Arg::Class, Arg::Site]),
                call("cloned", with_class, &[Arg::Object, Arg::Class, Arg::Site]),
            )
        }
    };
    AllocationProbe {
        object: Some(object),
        array: Some(made("newArray")),
        clone: Some(clone),
        capture: Some(made("one")),
        concat: Some(made("one")),
        makers: makers(plan),
        by_class: true,
        watch: (!plan.watched().is_empty()).then(|| watch(plan, old)),
    }
}

/// What objects of the classes that are watched are handed to.
fn watch(plan: &ExactPlan, old: bool) -> WatchProbe {
    let call = |name: &str, descriptor: &str, arguments: &[Arg]| {
        Call::new(&Part::Watch.name(), name, descriptor, arguments)
    };
    let with_class = "(Ljava/lang/Object;Ljava/lang/Class;I)V";
    WatchProbe {
        classes: plan.watched().to_vec(),
        object: watched("one"),
        array: call("array", "(Ljava/lang/Object;II)V", &[Arg::Object, Arg::Site, Arg::Levels]),
        clone: match old {
            true => watched("clonedUnknown"),
            false => call("cloned", with_class, &[Arg::Object, Arg::Class, Arg::Site]),
        },
        one: watched("one"),
    }
}

fn watched(name: &str) -> Call {
    let descriptor = "(Ljava/lang/Object;I)V";
    Call::new(&Part::Watch.name(), name, descriptor, &[Arg::Object, Arg::Site])
}

fn makers(plan: &ExactPlan) -> Vec<Maker> {
    let boxes = BOXES.into_iter().filter(|(owner, _)| !is_included(plan, owner));
    let boxes = boxes.map(|(owner, descriptor)| Maker {
        owner,
        name: "valueOf",
        descriptor,
        call: made("boxed"),
        watch: Some(watched("boxed")),
        makes: vec![Makes::new(format!("L{owner};"), How::Exactly)],
    });
    let objects = BY_CLASS.into_iter().map(|(owner, name, descriptor)| Maker {
        owner,
        name,
        descriptor,
        call: made("one"),
        watch: None,
        makes: vec![Makes::new("Ljava/lang/Object;", How::Reflected)],
    });
    let arrays = ARRAYS_BY_CLASS.into_iter().map(|descriptor| Maker {
        owner: "java/lang/reflect/Array",
        name: "newInstance",
        descriptor,
        call: made("reflected"),
        watch: None,
        makes: vec![
            Makes::new("[Ljava/lang/Object;", How::Exactly),
            Makes::new("Ljava/lang/Object;", How::Reflected),
        ],
    });
    let (owner, name, descriptor) = UNINITIALISED;
    let bytes = Maker {
        owner,
        name,
        descriptor,
        call: made("uninitialised"),
        watch: Some(watched("uninitialised")),
        makes: vec![
            Makes::new("[B", How::Exactly),
            Makes::new("Ljava/lang/Object;", How::Reflected),
        ],
    };
    boxes.chain(objects).chain(arrays).chain([bytes]).collect()
}

/// The sites of a method that is to be woven.
pub struct OfMethod {
    /// The first of their ids.
    pub first: u32,
    sites: Vec<SiteInfo>,
}

impl Recording {
    /// The sites of a method, with ids; none if it has none.
    pub(super) fn sites(
        &self,
        class: &str,
        loader: u32,
        info: &MethodInfo<'_>,
        probes: &Probes,
    ) -> Option<OfMethod> {
        let sites = info.sites(probes);
        let ids = sites.iter().map(|info| info.site.ids).sum();
        if ids == 0 {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        for SiteInfo { site, line, makes } in &sites {
            (site.offset, line, makes).hash(&mut hasher);
        }
        let sites_of = Sites { digest: hasher.finish(), ids };
        let method = (info.name, info.descriptor);
        let first = locked(&REGISTRY).as_mut()?.sites(loader, class, method, sites_of);
        Some(OfMethod { first, sites })
    }

    /// Logs what sites make, each once in a session.
    pub(super) fn log_sites(
        &self,
        class: &str,
        loader: u32,
        bytes: &[u8],
        woven: &[OfMethod],
    ) -> Result<(), NoRoom> {
        if woven.is_empty() {
            return Ok(());
        }
        let session = self.memory.session;
        let file = ClassFile::parse(bytes).map(|parsed| source_file(&parsed)).unwrap_or_default();
        for OfMethod { first, sites } in woven {
            let lacks =
                |registry: &super::Registry| registry.lacks_sites(loader, class, *first, session);
            if !locked(&REGISTRY).as_ref().is_some_and(lacks) {
                continue;
            }
            let ids = *first..;
            let makes = sites.iter().flat_map(|info| info.makes.iter().map(|m| (m, info.line)));
            for (id, (makes, line)) in ids.zip(makes) {
                let how = match makes.how {
                    How::Exactly => "",
                    How::Subclass => "or a subclass",
                    How::Reflected => "by reflection",
                };
                let site = MethodName {
                    id,
                    loader,
                    class: makes.class.clone(),
                    descriptor: how.to_owned(),
                    file: file.clone(),
                    line: line.into(),
                    ..MethodName::default()
                };
                self.log_site(&site)?;
            }
            if let Some(registry) = locked(&REGISTRY).as_mut() {
                registry.has_sites(loader, class, *first, session);
            }
        }
        Ok(())
    }
}
