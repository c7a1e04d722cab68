//! Our functions in the place of those that make and delete global references: the JVM's table of
//! JNI functions, which all threads use, is exchanged (`SetJNIFunctionTable`).
//!
//! Other agents do the same. Each calls what it found, so who comes later is called first. When a
//! session ends our functions are taken out, unless somebody has put others over them: then they
//! stay and pass through, for good, and the next session finds them there. What they call is never
//! changed while they may be called. This library is never unloaded.
//!
//! With `-Xcheck:jni` the table has the checking functions, which ours call in turn.

use super::shared::{self, Made};
use crate::gate;
use crate::jvm::{Failure, Jni, Jvmti, call, check};
use crate::kernel;
use crate::stacks::native::Place;
use jvmti_bindings::sys::jni::{JNIEnv, JNINativeInterface_, jobject};
use std::arch::asm;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

type New = unsafe extern "system" fn(*mut JNIEnv, jobject) -> jobject;
type Delete = unsafe extern "system" fn(*mut JNIEnv, jobject);

/// What ours call: the functions that were in the table. Zero before the first session.
static NEW_GLOBAL: AtomicU64 = AtomicU64::new(0);
static DELETE_GLOBAL: AtomicU64 = AtomicU64::new(0);
static NEW_WEAK: AtomicU64 = AtomicU64::new(0);
static DELETE_WEAK: AtomicU64 = AtomicU64::new(0);

/// Whether anybody wants to know.
static ON: AtomicBool = AtomicBool::new(false);

/// Ours could not be taken out: somebody else calls them.
static LEFT: AtomicBool = AtomicBool::new(false);

/// A thread that looks whether ours are called, and whether they were.
static PROBING: AtomicU32 = AtomicU32::new(0);
static PROBED: AtomicBool = AtomicBool::new(false);

/// A copy of the JVM's table, of whatever length it has there.
struct Table(*mut JNINativeInterface_);

impl Table {
    fn of(jvmti: Jvmti) -> Result<Self, Failure> {
        let mut table = ptr::null_mut();
        call!(jvmti, GetJNIFunctionTable, &raw mut table)?;
        match table.is_null() {
            true => Err(Failure::not_available("GetJNIFunctionTable")),
            false => Ok(Table(table)),
        }
    }

    /// The four functions: as numbers, so that they can be compared.
    fn functions(&self) -> [u64; 4] {
        // SAFETY: the copy that the JVM has made for us.
        let table = unsafe { &*self.0 };
        [
            table.NewGlobalRef as usize as u64,
            table.DeleteGlobalRef as usize as u64,
            table.NewWeakGlobalRef as usize as u64,
            table.DeleteWeakGlobalRef as usize as u64,
        ]
    }

    /// Puts functions of these types in the place of the four.
    fn exchange(&mut self, functions: [u64; 4]) {
        let [new_global, delete_global, new_weak, delete_weak] = functions;
        // SAFETY: our copy of the table; each number is the address of a function of that type,
        // from a table of this JVM or from below.
        unsafe {
            (*self.0).NewGlobalRef = transmute::<u64, New>(new_global);
            (*self.0).DeleteGlobalRef = transmute::<u64, Delete>(delete_global);
            (*self.0).NewWeakGlobalRef = transmute::<u64, New>(new_weak);
            (*self.0).DeleteWeakGlobalRef = transmute::<u64, Delete>(delete_weak);
        }
    }

    fn set(&self, jvmti: Jvmti) -> Result<(), Failure> {
        call!(jvmti, SetJNIFunctionTable, self.0.cast_const())
    }

    fn free(self, jvmti: Jvmti) {
        jvmti.deallocate(self.0.cast());
    }
}

fn ours() -> [u64; 4] {
    [
        new_global as New as usize as u64,
        delete_global as Delete as usize as u64,
        new_weak as New as usize as u64,
        delete_weak as Delete as usize as u64,
    ]
}

fn originals() -> [&'static AtomicU64; 4] {
    [&NEW_GLOBAL, &DELETE_GLOBAL, &NEW_WEAK, &DELETE_WEAK]
}

/// Puts our functions in, if they are not called already. For the control thread.
pub fn begin(jvmti: Jvmti, jni: Jni) -> Result<(), Failure> {
    if !(LEFT.load(Relaxed) && are_called(jni)) {
        let mut table = Table::of(jvmti)?;
        let found = table.functions();
        if found.iter().zip(ours()).all(|(found, ours)| *found != ours) {
            // Nobody calls ours now, so nobody is surprised.
            for (original, found) in originals().into_iter().zip(found) {
                original.store(found, SeqCst);
            }
            table.exchange(ours());
            let set = table.set(jvmti);
            table.free(jvmti);
            set?;
            LEFT.store(false, Relaxed);
        } else {
            table.free(jvmti);
        }
    }
    ON.store(true, SeqCst);
    Ok(())
}

/// Takes our functions out. False if others have put theirs over them: then ours pass through.
pub fn end(jvmti: Jvmti) -> bool {
    ON.store(false, SeqCst);
    let Ok(mut table) = Table::of(jvmti) else { return false };
    let mut is_out = false;
    if table.functions() == ours() {
        table.exchange(originals().map(|original| original.load(SeqCst)));
        is_out = table.set(jvmti).is_ok();
    }
    table.free(jvmti);
    LEFT.store(!is_out, Relaxed);
    is_out
}

/// Whether a call on this thread passes through our functions.
fn are_called(jni: Jni) -> bool {
    PROBED.store(false, SeqCst);
    PROBING.store(kernel::gettid(), SeqCst);
    let group = jni.frame(|| {
        let class = jni.found(c"java/lang/Object")?;
        let global = jni.global(class)?;
        jni.delete_global(global);
        Some(())
    });
    PROBING.store(0, SeqCst);
    group.flatten().is_some() && PROBED.load(SeqCst)
}

fn note_probe() {
    let probing = PROBING.load(Relaxed);
    if probing != 0 && probing == kernel::gettid() {
        PROBED.store(true, SeqCst);
    }
}

/// Where the calling function is.
#[inline(always)]
fn here() -> Place {
    let mut place = Place::default();
    // SAFETY: reads registers and nothing else.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "lea {pc}, [rip]",
            "mov {sp}, rsp",
            "mov {fp}, rbp",
            pc = out(reg) place.pc,
            sp = out(reg) place.sp,
            fp = out(reg) place.fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "adr {pc}, .",
            "mov {sp}, sp",
            "mov {fp}, x29",
            pc = out(reg) place.pc,
            sp = out(reg) place.sp,
            fp = out(reg) place.fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    place
}

fn made(env: *mut JNIEnv, made: Made) {
    if !made.reference.is_null() && ON.load(Relaxed) {
        gate::enter((), || shared::with_session(|shared| shared.made(Jni(env), &made)));
    }
}

/// Before it is gone: its number may be another's the moment after.
fn deleted(reference: jobject) {
    if !reference.is_null() && ON.load(Relaxed) {
        gate::enter((), || shared::with_session(|shared| shared.deleted(reference as u64)));
    }
}

extern "system" fn new_global(env: *mut JNIEnv, object: jobject) -> jobject {
    let place = here();
    // SAFETY: what the JVM's table had for this very function, which is there before ours is.
    let reference = unsafe { transmute::<u64, New>(NEW_GLOBAL.load(Relaxed))(env, object) };
    note_probe();
    made(env, Made { reference, weak: false, place });
    reference
}

extern "system" fn delete_global(env: *mut JNIEnv, reference: jobject) {
    deleted(reference);
    // SAFETY: as above.
    unsafe { transmute::<u64, Delete>(DELETE_GLOBAL.load(Relaxed))(env, reference) };
}

extern "system" fn new_weak(env: *mut JNIEnv, object: jobject) -> jobject {
    let place = here();
    // SAFETY: as above.
    let reference = unsafe { transmute::<u64, New>(NEW_WEAK.load(Relaxed))(env, object) };
    made(env, Made { reference, weak: true, place });
    reference
}

extern "system" fn delete_weak(env: *mut JNIEnv, reference: jobject) {
    deleted(reference);
    // SAFETY: as above.
    unsafe { transmute::<u64, Delete>(DELETE_WEAK.load(Relaxed))(env, reference) };
}
