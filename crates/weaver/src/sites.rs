//! Allocation sites: which instructions make objects, of which classes, and what is called there.

use crate::plan::{MethodInfo, Site, SiteKind};
use crate::probes::{Call, Probes};
use crate::tables::line_rows;
use tare_classfile::mutf8::decode_lossy;
use tare_classfile::opcode::{bits, bits_of, op};
use tare_classfile::{ClassFile, Code, Constant, Insn, Insns};
use tare_java_names::TypePattern;

/// Allocations. An object is reported at its `new`, where its exact class is known and before a
/// constructor can fail; it cannot be passed there, because it is not initialised yet. Everything
/// else is passed.
#[derive(Clone, Debug, Default)]
pub struct AllocationProbe {
    /// After `new`; takes [`Arg::Site`](crate::Arg::Site).
    pub object: Option<Call>,
    /// After `newarray`, `anewarray` and `multianewarray`; may take
    /// [`Arg::Object`](crate::Arg::Object).
    pub array: Option<Call>,
    /// After `clone()` of an array, and after `Object.clone()`; may take the object, and as
    /// [`Arg::Class`](crate::Arg::Class) the array's class by its declaration, or the class that
    /// clones itself.
    pub clone: Option<Call>,
    /// After the `invokedynamic` of a lambda or method reference that captures something: each
    /// makes an object. May take the object.
    pub capture: Option<Call>,
    /// After the `invokedynamic` that joins strings; may take the new one.
    pub concat: Option<Call>,
    /// After calls of methods that make what they return.
    pub makers: Vec<Maker>,
    /// Whether a site has an id for each class of which it may make objects, in the order of
    /// [`SiteInfo::makes`]; else it has one id.
    pub by_class: bool,
    /// Hands objects of some classes over.
    pub watch: Option<WatchProbe>,
}

/// Objects of chosen classes, handed over once they are whole. All of these take
/// [`Arg::Object`](crate::Arg::Object). What is called there besides has been called before.
#[derive(Clone, Debug)]
pub struct WatchProbe {
    pub classes: Vec<TypePattern>,
    /// After the constructor of an object, if the code has a copy of it on the stack then.
    pub object: Call,
    /// After an array was made; may take [`Arg::Levels`](crate::Arg::Levels).
    pub array: Call,
    /// After a clone was made; may take the class.
    pub clone: Call,
    /// After the object of a lambda or a joined string was made.
    pub one: Call,
}

impl WatchProbe {
    /// Which of the classes that a site may make objects of are watched, as bits. What reflection
    /// makes could be of any class.
    fn levels(&self, makes: &[Makes]) -> u32 {
        let fits = |makes: &Makes| {
            let is = |pattern: &TypePattern| pattern.fits_descriptor(&makes.class);
            makes.how != How::Reflected && self.classes.iter().any(is)
        };
        let bits = makes.iter().take(32).enumerate();
        bits.fold(0, |all, (at, makes)| all | u32::from(fits(makes)) << at)
    }
}

/// A method that makes what it returns.
#[derive(Clone, Debug)]
pub struct Maker {
    /// Internal name of the owner that call sites name, method name and descriptor.
    pub owner: &'static str,
    pub name: &'static str,
    pub descriptor: &'static str,
    /// May take [`Arg::Object`](crate::Arg::Object).
    pub call: Call,
    /// The same, where the object is watched.
    pub watch: Option<Call>,
    pub makes: Vec<Makes>,
}

/// What a site makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Makes {
    /// The class as a descriptor: `[B`, `Lcom/acme/Order;`.
    pub class: String,
    pub how: How,
}

/// How sure the class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// It is this one.
    Exactly,
    /// A subclass of it, which only the object tells.
    Subclass,
    /// It or a subclass, chosen by reflection.
    Reflected,
}

impl Makes {
    pub fn new(class: impl Into<String>, how: How) -> Self {
        Self { class: class.into(), how }
    }
}

/// A site, and what a person is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteInfo {
    pub site: Site,
    /// Source line; 0 when the class does not tell.
    pub line: u16,
    /// For each of its ids.
    pub makes: Vec<Makes>,
}

/// Bootstrap methods of lambdas and method references, and of joined strings.
const LAMBDAS: &[u8] = b"java/lang/invoke/LambdaMetafactory";
const STRINGS: &[u8] = b"java/lang/invoke/StringConcatFactory";

impl MethodInfo<'_> {
    /// The sites that get one of these probes, with ids from zero.
    pub fn sites(&self, probes: &Probes) -> Vec<SiteInfo> {
        let mut found = Vec::new();
        find(self.code, self.file, probes, 0, &mut found);
        if found.is_empty() {
            return Vec::new();
        }
        let lines = self.lines();
        let makes = |site: &Site| makes(site, self.file, self.code, probes);
        let line = |site: &Site| {
            let before = lines.iter().filter(|line| u32::from(line.0) <= site.offset);
            before.max_by_key(|line| line.0).map_or(0, |line| line.1)
        };
        found
            .into_iter()
            .map(|site| SiteInfo { line: line(&site), makes: makes(&site), site })
            .collect()
    }

    /// Where each source line begins.
    fn lines(&self) -> Vec<(u16, u16)> {
        let pool = &self.file.pool;
        let code = || {
            let code = self.file.methods.get(self.index)?.attributes.find(pool, "Code")?;
            Code::parse(&code).ok()
        };
        let rows = code().and_then(|code| line_rows(&code.attributes, pool).ok());
        let rows = rows.unwrap_or_default().iter();
        rows.map(|&[a, b, c, d]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))).collect()
    }
}

/// All sites of a method that get a probe, in their order, with ids from `first` on.
pub(crate) fn find(
    code: &[u8],
    class: &ClassFile<'_>,
    probes: &Probes,
    first: u32,
    out: &mut Vec<Site>,
) {
    out.clear();
    let Some(set) = &probes.set.allocation else { return };
    let mut id = first;
    for insn in Insns::from(code, 0).flatten() {
        if bits_of(insn.opcode) & (bits::ALLOCATES | bits::INVOKE) == 0 {
            continue;
        }
        let Some((kind, operand)) = kind(&insn, class, probes) else { continue };
        let mut site = Site { id, kind, offset: insn.offset, operand, ids: 1, watched: 0 };
        if set.by_class {
            let makes = makes(&site, class, code, probes);
            site.ids = makes.len() as u32;
            site.watched = set.watch.as_ref().map_or(0, |watch| watch.levels(&makes));
        }
        id = id.wrapping_add(site.ids);
        out.push(site);
    }
}

/// What kind of site an instruction is, if it is one with a probe, and what it names.
fn kind(insn: &Insn<'_>, class: &ClassFile<'_>, probes: &Probes) -> Option<(SiteKind, u16)> {
    let found = |kind, operand| Some((kind, operand));
    let named = insn.constant();
    match insn.opcode {
        op::NEW => probes.object.and(found(SiteKind::Object, named?)),
        op::NEWARRAY => probes.array.and(found(SiteKind::Array, insn.number()? as u16)),
        op::ANEWARRAY | op::MULTIANEWARRAY => probes.array.and(found(SiteKind::Array, named?)),
        op::INVOKEDYNAMIC => match bootstrap(class, named?)? {
            LAMBDAS if captures(class, named?) => {
                probes.capture.and(found(SiteKind::Capture, named?))
            }
            STRINGS => probes.concat.and(found(SiteKind::Concat, named?)),
            _ => None,
        },
        _ => {
            if probes.clone.is_none() && probes.makers.is_empty() {
                return None;
            }
            let member = class.pool.member(named?).ok()?;
            let of_array = member.owner.starts_with(b"[");
            if member.name == b"clone"
                && member.descriptor == b"()Ljava/lang/Object;"
                && (of_array || member.owner == b"java/lang/Object")
            {
                let own = Some(class.this_class);
                let declared = if of_array { owner(class, named?) } else { own };
                return probes.clone.and(found(SiteKind::Clone, declared?));
            }
            let makers = &probes.set.allocation.as_ref()?.makers;
            let at = makers.iter().position(|maker| {
                maker.name.as_bytes() == member.name
                    && maker.owner.as_bytes() == member.owner
                    && maker.descriptor.as_bytes() == member.descriptor
            })?;
            found(SiteKind::Made(at as u16), named?)
        }
    }
}

/// The `Class` entry that a `Methodref` names.
fn owner(class: &ClassFile<'_>, method: u16) -> Option<u16> {
    match class.pool.get(method).ok()? {
        Constant::Method { class, .. } | Constant::InterfaceMethod { class, .. } => Some(class),
        _ => None,
    }
}

/// Whether an `invokedynamic` is given anything.
fn captures(class: &ClassFile<'_>, dynamic: u16) -> bool {
    class.pool.dynamic(dynamic).is_ok_and(|(_, descriptor)| !descriptor.starts_with(b"()"))
}

/// The class of the method that makes the call of an `invokedynamic`.
fn bootstrap<'a>(class: &ClassFile<'a>, dynamic: u16) -> Option<&'a [u8]> {
    let Constant::InvokeDynamic { bootstrap, .. } = class.pool.get(dynamic).ok()? else {
        return None;
    };
    let methods = class.attributes.find(&class.pool, "BootstrapMethods")?;
    let mut reader = methods.reader();
    reader.u2().ok()?;
    for _ in 0..bootstrap {
        reader.u2().ok()?;
        let arguments = reader.u2().ok()?;
        reader.skip(2 * usize::from(arguments)).ok()?;
    }
    let handle = reader.u2().ok()?;
    let Constant::MethodHandle { reference, .. } = class.pool.get(handle).ok()? else {
        return None;
    };
    class.pool.member(reference).ok().map(|member| member.owner)
}

/// What a site makes: for each class that it may be.
fn makes(site: &Site, class: &ClassFile<'_>, code: &[u8], probes: &Probes) -> Vec<Makes> {
    let exactly = |class: String| Makes::new(class, How::Exactly);
    let named = || class.pool.class_name(site.operand).map(descriptor).unwrap_or_default();
    match site.kind {
        SiteKind::Object => vec![exactly(named())],
        SiteKind::Array => match code.get(site.offset as usize) {
            Some(&op::NEWARRAY) => vec![exactly(of_primitives(site.operand).to_owned())],
            Some(&op::MULTIANEWARRAY) => {
                let levels = code.get(site.offset as usize + 3).copied().unwrap_or(1);
                let whole = named();
                let level = |at: u8| whole.get(usize::from(at)..).unwrap_or_default().to_owned();
                (0..levels).map(|at| exactly(level(at))).collect()
            }
            _ => vec![exactly(format!("[{}", named()))],
        },
        SiteKind::Clone => {
            let class = named();
            let inherited = !class.starts_with('[') || class.contains(';');
            let other = inherited.then(|| Makes::new(class.clone(), How::Subclass));
            std::iter::once(exactly(class.clone())).chain(other).collect()
        }
        SiteKind::Capture => {
            let own = class.name().map(decode_lossy).unwrap_or_default();
            vec![exactly(format!("L{own}$$Lambda;"))]
        }
        SiteKind::Concat => vec![exactly("Ljava/lang/String;".to_owned())],
        SiteKind::Made(at) => {
            let maker =
                probes.set.allocation.as_ref().and_then(|set| set.makers.get(usize::from(at)));
            maker.map(|maker| maker.makes.clone()).unwrap_or_default()
        }
    }
}

/// The descriptor of a class by its name, which arrays have as their name.
fn descriptor(name: &[u8]) -> String {
    let name = decode_lossy(name);
    if name.starts_with('[') { name.into_owned() } else { format!("L{name};") }
}

/// The descriptor of an array by the operand of `newarray`.
fn of_primitives(code: u16) -> &'static str {
    match code {
        4 => "[Z",
        5 => "[C",
        6 => "[F",
        7 => "[D",
        9 => "[S",
        10 => "[I",
        11 => "[J",
        // Nothing else passes a verifier.
        _ => "[B",
    }
}
