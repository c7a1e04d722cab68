//! The heap walk inside which the copy is made: it notes the roots, and where it stops to copy.
//!
//! A walk runs in a pause, on the VM thread, and calls us for each reference, roots first. Nothing
//! but roots is ever followed: of all objects only one of ours is, so that its first reference tells
//! the end of the roots.
//!
//! | JDK | the copy is made | why |
//! |---|---|---|
//! | 18 and later | after the last root | roots are found where the owners of all locks live |
//! | 17 | before the first root that is not on a stack | stopping later makes the JVM restore marks all over the heap; the copy finds the other roots by itself, which takes no locks |
//!
//! The copy comes back to the walk once, if the program has virtual threads: it puts those into the
//! object of ours, an array, and lets the JVM's code look into it and at their stacks.
//!
//! An object's address lies beside the place for its tag. Where, is found out once for a JVM by
//! looking for objects of ours, and never assumed ([`calibrate`]).

use super::child::{self, Errand};
use super::permission::INSTEAD;
use super::serve::{Asked, Server};
use crate::engines::{EngineError, Jvm};
use crate::gate;
use crate::jvm::Jvmti;
use crate::jvm::heap_walk::Known;
use crate::kernel;
use jvmti_bindings::sys::jni::{jint, jlong};
use jvmti_bindings::sys::jvmti::{
    JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT, JVMTI_HEAP_REFERENCE_CLASS,
    JVMTI_HEAP_REFERENCE_JNI_GLOBAL, JVMTI_HEAP_REFERENCE_JNI_LOCAL,
    JVMTI_HEAP_REFERENCE_STACK_LOCAL, JVMTI_VISIT_ABORT, JVMTI_VISIT_OBJECTS, jvmtiCapabilities,
    jvmtiHeapReferenceInfo, jvmtiHeapReferenceKind,
};
use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tare_protocol::heap::wire::{MOST_STACKS, RawRoot};

/// The most roots that are kept: threads with deep stacks have a million.
const MOST_ROOTS: usize = 4 << 20;

/// How far from the tag an object's address is looked for, in words.
const WINDOW: i64 = 8;

/// Where an object's address is, in words from its tag; `NOT_YET` until it is found.
static OFFSET: AtomicI64 = AtomicI64::new(NOT_YET);
const NOT_YET: i64 = i64::MAX;

/// Memory for roots, taken before the pause. Its pages are backed as they are used.
pub struct Roots {
    at: *mut RawRoot,
    pub count: usize,
    pub dropped: u64,
}

impl Roots {
    pub fn new() -> io::Result<Self> {
        let at = kernel::reserve(MOST_ROOTS * size_of::<RawRoot>())?.cast();
        Ok(Roots { at, count: 0, dropped: 0 })
    }

    pub fn address(&self) -> u64 {
        self.at as u64
    }

    fn note(&mut self, root: RawRoot) {
        if self.count == MOST_ROOTS {
            self.dropped += 1;
            return;
        }
        // SAFETY: inside the memory from above, which has room for so many.
        unsafe { self.at.add(self.count).write(root) };
        self.count += 1;
    }

    pub fn all(&self) -> &[RawRoot] {
        // SAFETY: so many were written.
        unsafe { std::slice::from_raw_parts(self.at, self.count) }
    }
}

impl Drop for Roots {
    fn drop(&mut self) {
        // SAFETY: the mapping from above, used no more.
        unsafe { libc::munmap(self.at.cast(), MOST_ROOTS * size_of::<RawRoot>()) };
    }
}

/// What came of a walk.
pub struct Copied {
    pub pid: libc::pid_t,
    /// From the first request for a pause to the end of the last one.
    pub pause_ns: u64,
    pub fork_ns: u64,
}

/// Walks the heap and makes a copy meanwhile.
pub fn copy(jvm: Jvm, major: u32, errand: Errand, roots: Roots) -> Result<Copied, EngineError> {
    let jvmti = Environment::new(jvm)?;
    let known = Objects::new(jvm, major)?;
    // Finding out where addresses are is a pause, too; the first time only.
    let began = kernel::monotonic();
    let offset = calibrate(jvmti.0, &known)?;
    let mut walk = Walk {
        offset,
        known: known.all[0],
        before_globals: major < 18,
        errand,
        roots,
        server: None,
        in_copy: false,
        stacks: None,
        outcome: None,
    };
    // SAFETY: the callback's data is a `Walk`, which lives until the call returns.
    unsafe { jvmti.0.follow_references(reference, (&raw mut walk).cast())? };
    match walk.outcome {
        Some(Ok(copied)) => Ok(Copied { pause_ns: kernel::monotonic() - began, ..copied }),
        Some(Err(errno)) => {
            let e = io::Error::from_raw_os_error(errno);
            Err(EngineError::Refused(format!(
                "the system refuses a copy of the JVM ({e}): limits of processes or memory are \
                 reached, or a filter of system calls (seccomp) forbids it; {INSTEAD}"
            )))
        }
        None => Err(EngineError::Refused(
            "the JVM's heap walk ended before its roots were known".to_owned(),
        )),
    }
}

/// A JVMTI environment of its own: rights that are given back must not be another session's.
struct Environment(Jvmti);

impl Environment {
    fn new(jvm: Jvm) -> Result<Self, EngineError> {
        let none = || EngineError::Refused("the JVM gives no further JVMTI environment".into());
        let environment = Environment(jvm.vm.jvmti().ok_or_else(none)?);
        let mut right = jvmtiCapabilities::default();
        right.set_can_tag_objects(true);
        environment.0.add_capabilities(&right)?;
        Ok(environment)
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        let _ = self.0.dispose();
    }
}

/// Two objects of ours.
struct Objects {
    jvm: Jvm,
    all: Vec<Known>,
}

impl Objects {
    fn new(jvm: Jvm, major: u32) -> Result<Self, EngineError> {
        let mut known = Objects { jvm, all: Vec::with_capacity(2) };
        // Of two sizes, which tell them apart as well. The first one holds threads later.
        for length in [if major < 21 { 8 } else { MOST_STACKS as jint }, 80] {
            let none = || EngineError::Refused("the JVM is out of memory".into());
            known.all.push(jvm.jni.known_object(length).ok_or_else(none)?);
        }
        Ok(known)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.all.drain(..).for_each(|known| self.jvm.jni.delete_known(known));
    }
}

/// Finds out where callbacks have the address of the object that they are about.
fn calibrate(jvmti: Jvmti, known: &Objects) -> Result<i64, EngineError> {
    let found = OFFSET.load(Relaxed);
    if found != NOT_YET {
        return Ok(found);
    }
    let mut search =
        Search { known: [known.all[0], known.all[1]], candidates: [0; 2], beside_size: !0 };
    // SAFETY: the callback's data is a `Search`, which lives until the call returns.
    unsafe { jvmti.follow_references(look, (&raw mut search).cast())? };
    // Copies of the address may lie around; the one that counts is followed by the object's size.
    let both = search.candidates[0] & search.candidates[1];
    let best = both & search.beside_size;
    let both = if best == 0 { both } else { best };
    if both.count_ones() != 1 {
        return Err(EngineError::Refused(
            "this JVM's heap walk does not tell where objects are; it is no version that tare \
             knows"
                .to_owned(),
        ));
    }
    let offset = i64::from(both.trailing_zeros()) - WINDOW;
    OFFSET.store(offset, Relaxed);
    Ok(offset)
}

struct Search {
    known: [Known; 2],
    /// For each of them a bit for each place at which its address was.
    candidates: [u32; 2],
    /// A bit for each place that was followed by the size of the object every time.
    beside_size: u32,
}

unsafe extern "system" fn look(
    kind: jvmtiHeapReferenceKind,
    _: *const jvmtiHeapReferenceInfo,
    _: jlong,
    _: jlong,
    size: jlong,
    tag: *mut jlong,
    _: *mut jlong,
    _: jint,
    data: *mut c_void,
) -> jint {
    gate::enter(JVMTI_VISIT_ABORT, || {
        if kind != JVMTI_HEAP_REFERENCE_JNI_GLOBAL {
            return 0;
        }
        // SAFETY: what `calibrate` passed; it waits for us.
        let search = unsafe { &mut *data.cast::<Search>() };
        for (known, candidates) in search.known.iter().zip(&mut search.candidates) {
            // SAFETY: the slot of a reference that lives; the words around the tag are part of the
            // VM thread's stack, which is deeper than that on both sides.
            let (places, sizes) = unsafe {
                let address = forwarded(known.slot().read()).cast_signed();
                let which = |value: jlong| {
                    let is_at = |at: &i64| tag.offset((at - WINDOW) as isize).read() == value;
                    (0..=2 * WINDOW).filter(is_at).fold(0_u32, |all, at| all | 1 << at)
                };
                (which(address), which(size))
            };
            if places != 0 && *candidates == 0 {
                *candidates = places;
                search.beside_size &= sizes >> 1;
            }
        }
        if search.candidates.iter().all(|places| *places != 0) { JVMTI_VISIT_ABORT } else { 0 }
    })
}

/// Where an object is now. A collector that moves objects while the program runs leaves the new
/// address in the first word, whose lowest bits are then set.
///
/// # Safety
/// The address of an object.
unsafe fn forwarded(object: u64) -> u64 {
    // SAFETY: see above.
    let first = unsafe { (object as *const u64).read() };
    if first & 3 == 3 && first & !3 != 0 { first & !3 } else { object }
}

struct Walk {
    offset: i64,
    known: Known,
    before_globals: bool,
    errand: Errand,
    roots: Roots,
    /// We are the copy.
    in_copy: bool,
    server: Option<Server>,
    /// Virtual threads that the JVM's code still has to look at, and how many are left out.
    stacks: Option<(u64, u64)>,
    /// In the JVM itself: the copy, or the error's number.
    outcome: Option<Result<Copied, i32>>,
}

unsafe extern "system" fn reference(
    kind: jvmtiHeapReferenceKind,
    info: *const jvmtiHeapReferenceInfo,
    _: jlong,
    _: jlong,
    _: jlong,
    tag: *mut jlong,
    referrer: *mut jlong,
    _: jint,
    data: *mut c_void,
) -> jint {
    gate::enter(JVMTI_VISIT_ABORT, || {
        // SAFETY: what `copy` passed; it waits for us, or we are its copy, where it waits for ever.
        let walk = unsafe { &mut *data.cast::<Walk>() };
        let over = !referrer.is_null();
        let due = over || walk.before_globals && kind == JVMTI_HEAP_REFERENCE_JNI_GLOBAL;
        if due && !walk.in_copy {
            let began = kernel::monotonic();
            let pid = child::fork(&walk.errand);
            if pid != 0 {
                let fork_ns = kernel::monotonic() - began;
                let failed = || io::Error::last_os_error().raw_os_error().unwrap_or(0);
                let copied = Copied { pid, pause_ns: 0, fork_ns };
                let copied = if pid < 0 { Err(failed()) } else { Ok(copied) };
                walk.outcome = Some(copied);
                return JVMTI_VISIT_ABORT;
            }
            walk.in_copy = true;
        }
        if over {
            return in_copy(walk, kind);
        }
        // SAFETY: the address lies there, as was found out; `info` is HotSpot's.
        unsafe { note(walk, kind, info, tag) }
    })
}

/// What the copy does when the roots are known, and whenever the walk comes to a reference again.
fn in_copy(walk: &mut Walk, kind: jvmtiHeapReferenceKind) -> jint {
    match (&mut walk.stacks, kind) {
        // Elements of the array: the threads.
        (Some(_), JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT) => return JVMTI_VISIT_OBJECTS,
        // Each thread tells its class once, after its stack.
        (Some((left, _)), JVMTI_HEAP_REFERENCE_CLASS) => *left = left.saturating_sub(1),
        (Some(_), _) => return 0,
        (None, _) => {}
    }
    if walk.stacks.is_some_and(|(left, _)| left > 0) {
        return 0;
    }
    let server = walk.server.get_or_insert_with(|| child::begin(&walk.errand, &walk.roots));
    if let Some((_, left_out)) = walk.stacks {
        child::ours(&walk.errand, true);
        if server.found(walk.roots.all(), walk.roots.dropped, left_out).is_none() {
            child::end();
        }
    }
    // SAFETY: the slot of a reference that lives.
    let array = unsafe { forwarded(walk.known.slot().read()) };
    loop {
        let Asked::Stacks { klass } = server.serve(walk.roots.all()) else { child::end() };
        if walk.stacks.is_some() {
            child::end();
        }
        let Some(all) = server.gather(klass, array) else { child::end() };
        let some = all.min(MOST_STACKS);
        walk.stacks = Some((some, all - some));
        if some > 0 {
            child::ours(&walk.errand, false);
            return 0;
        }
        if server.found(walk.roots.all(), walk.roots.dropped, 0).is_none() {
            child::end();
        }
    }
}

/// Notes a root; what the walk is to do with it.
///
/// # Safety
/// The arguments are those of a callback for a root.
unsafe fn note(
    walk: &mut Walk,
    kind: jvmtiHeapReferenceKind,
    info: *const jvmtiHeapReferenceInfo,
    tag: *mut jlong,
) -> jint {
    // SAFETY: as above; the slot is that of a reference that lives.
    let (object, known) = unsafe {
        let object = tag.offset(walk.offset as isize).read().cast_unsigned();
        (object, forwarded(walk.known.slot().read()))
    };
    if object == known {
        return JVMTI_VISIT_OBJECTS;
    }
    let mut root = RawRoot {
        object,
        kind_and_depth: u64::from(kind),
        location: u64::MAX,
        slot: u64::from(u32::MAX),
        ..RawRoot::default()
    };
    if !info.is_null() && kind == JVMTI_HEAP_REFERENCE_STACK_LOCAL {
        // SAFETY: for this kind HotSpot fills this part.
        let local = unsafe { (*info).stack_local };
        root.kind_and_depth |= u64::from(local.depth.cast_unsigned()) << 32;
        root.thread = local.thread_id.cast_unsigned();
        root.method = local.method as u64;
        root.location = local.location.cast_unsigned();
        root.slot = u64::from(local.slot.cast_unsigned());
    } else if !info.is_null() && kind == JVMTI_HEAP_REFERENCE_JNI_LOCAL {
        // SAFETY: as above.
        let local = unsafe { (*info).jni_local };
        root.kind_and_depth |= u64::from(local.depth.cast_unsigned()) << 32;
        root.thread = local.thread_id.cast_unsigned();
        root.method = local.method as u64;
    }
    walk.roots.note(root);
    0
}
