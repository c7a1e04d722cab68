//! Where the JDK shows which method is called although no code names it: reflection and method
//! handles. In these few methods the search for callees has a probe that passes on what is called.
//! A handle is seen when it is made; one that was made before we came, when it is called below a
//! root.

use super::inject::Part;
use tare_classfile::descriptor::{MethodDescriptor, slots};
use tare_weaver::{Arg, Call, MethodInfo, ProbeSet, Probes};

/// Classes of the JDK with such methods.
pub const WATCHED: [&str; 3] = [
    "java/lang/reflect/Method",
    "java/lang/reflect/Constructor",
    "java/lang/invoke/DirectMethodHandle",
];

const MEMBER: &[u8] = b"Ljava/lang/invoke/MemberName;";

/// The local variables in which handles are made find their member.
const PLACES: u16 = 4;

/// Through one of these each call of a direct method handle gets to the member that it calls.
const INVOKES: [&[u8]; 3] =
    [b"internalMemberName", b"internalMemberNameEnsureInit", b"constructorMethod"];

/// The probes of those methods.
pub struct Watches {
    reflects: Probes,
    links: Vec<Probes>,
    invokes: Probes,
}

impl Watches {
    pub fn new() -> Result<Self, &'static str> {
        let owner = Part::Discovery.name();
        let probes = |name: &str, place: u16| {
            let arguments = [Arg::Parameter(place)];
            let call = Call::new(&owner, name, "(Ljava/lang/Object;)V", &arguments);
            Probes::new(ProbeSet { entry: Some(call), ..ProbeSet::default() })
                .map_err(|_| "the probes do not fit their runtime")
        };
        Ok(Watches {
            reflects: probes("reflects", 0)?,
            links: (0..PLACES).map(|place| probes("links", place)).collect::<Result<_, _>>()?,
            invokes: probes("invokes", 0)?,
        })
    }

    /// What a method of a watched class gets.
    pub fn of(&self, class: &str, info: &MethodInfo<'_>) -> Option<&Probes> {
        match (class, info.name) {
            (_, b"invoke") if class == WATCHED[0] => Some(&self.reflects),
            // Every way to make an object by reflection ends here.
            (_, b"newInstanceWithCaller") if class == WATCHED[1] => Some(&self.reflects),
            (_, name) if class == WATCHED[2] && INVOKES.contains(&name) => {
                let by_handle = info.descriptor == b"(Ljava/lang/Object;)Ljava/lang/Object;";
                by_handle.then_some(&self.invokes)
            }
            (_, b"make" | b"makeAllocator") if class == WATCHED[2] => {
                // The others of that name call the one that is told the kind of reference.
                let types = MethodDescriptor::parse(info.descriptor)?;
                if info.name == b"make" && types.parameters().next() != Some(b"B") {
                    return None;
                }
                let before = types.parameters().take_while(|ty| *ty != MEMBER);
                let place: usize = before.map(slots).sum();
                (place < types.parameter_slots()).then(|| self.links.get(place)).flatten()
            }
            _ => None,
        }
    }
}
