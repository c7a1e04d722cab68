//! Our code in the place of the JDK's native methods that put a thread to sleep, `Unsafe.park` and
//! what `Thread.sleep` calls, and of the one that starts a thread. Nothing is retransformed for that,
//! so no compiled code is lost.
//!
//! The JVM itself is asked to exchange them (`RegisterNatives`): it throws the compiled wrapper of
//! the old one away. It prints a warning when that is not asked for by one of its own classes; so a
//! class of the probe runtime asks. What was there before is read from HotSpot's own structure, and
//! called by ours, for good: once they are in, they stay, and pass through what nobody wants to
//! know. Who parks may be inside at any time, and this library is never unloaded.

use super::{Token, starts};
use crate::exact::own_memory::read;
use crate::gate;
use crate::jvm::classes::OwnClass;
use crate::jvm::{Jni, Jvmti};
use crate::vm_tables::Tables;
use jvmti_bindings::sys::jni::{
    JNIEnv, JNINativeMethod, jboolean, jclass, jlong, jmethodID, jobject,
};
use std::ffi::{CStr, CString, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use tare_classfile::access;

type Park = unsafe extern "system" fn(*mut JNIEnv, jobject, jboolean, jlong);
type Sleep = unsafe extern "system" fn(*mut JNIEnv, jclass, jlong);
type Start = unsafe extern "system" fn(*mut JNIEnv, jobject);

/// What was in the place of ours, never changed once it is known; zero before.
static PARK: AtomicU64 = AtomicU64::new(0);
static SLEEP: AtomicU64 = AtomicU64::new(0);
static START: AtomicU64 = AtomicU64::new(0);

/// Whether anybody wants to know.
static ON: AtomicBool = AtomicBool::new(false);

/// The methods that look at what the running thread is about to wait for.
#[derive(Clone, Copy)]
struct Lookers {
    class: OwnClass,
    parks: jmethodID,
    sleeps: jmethodID,
}

// SAFETY: ids of methods may be used on any thread, for as long as their class is there; that one
// is never unloaded.
unsafe impl Send for Lookers {}
// SAFETY: as above.
unsafe impl Sync for Lookers {}

static LOOKERS: OnceLock<Lookers> = OnceLock::new();

/// The native methods that are replaced; of those of a class, the first that there is.
const UNSAFE: (&CStr, &[&str], &str) = (c"jdk/internal/misc/Unsafe", &["park"], "(ZJ)V");
const THREAD: (&CStr, &[&str], &str) =
    (c"java/lang/Thread", &["sleepNanos0", "sleep0", "sleep"], "(J)V");
const STARTED: (&CStr, &[&str], &str) = (c"java/lang/Thread", &["start0"], "()V");

/// A native method: where HotSpot keeps the address of its code, and its name.
struct Native {
    class: jclass,
    at: u64,
    name: CString,
}

/// Puts our code in, if it is not there, and has it tell of whoever parks. What this JVM lacks, if
/// that cannot be done; then everything is as it was.
pub fn begin(jvmti: Jvmti, jni: Jni, class: OwnClass) -> Result<(), &'static str> {
    if LOOKERS.get().is_none() {
        let method = |name| jni.static_method(class, name, c"()J");
        let missing = "methods of the probe runtime";
        let parks = method(c"parks").ok_or(missing)?;
        let sleeps = method(c"sleeps").ok_or(missing)?;
        let _ = LOOKERS.set(Lookers { class, parks, sleeps });
    }
    let done = jni.frame(|| {
        let park = find(jvmti, jni, UNSAFE).ok_or("the native method Unsafe.park")?;
        let sleep = find(jvmti, jni, THREAD).ok_or("the native method of Thread.sleep")?;
        // Who starts threads is told beside it: without that method the rest is told.
        let start = find(jvmti, jni, STARTED);
        let is_in = is_code(&park, &PARK, self::park as Park as usize as u64)
            && is_code(&sleep, &SLEEP, self::sleep as Sleep as usize as u64)
            && start
                .as_ref()
                .is_none_or(|start| is_code(start, &START, self::start as Start as usize as u64));
        if is_in {
            return Ok(());
        }
        for (native, known) in [(&park, &PARK), (&sleep, &SLEEP)] {
            let before = code(native).ok_or("the code of Unsafe.park and Thread.sleep")?;
            let _ = known.compare_exchange(0, before, AcqRel, Relaxed);
        }
        if let Some(before) = start.as_ref().and_then(code) {
            let _ = START.compare_exchange(0, before, AcqRel, Relaxed);
        }
        if !jni.call_static(class, c"bind") {
            return Err("a way to replace Unsafe.park");
        }
        Ok(())
    });
    done.unwrap_or(Err("memory for references"))?;
    ON.store(true, Release);
    Ok(())
}

/// From now on ours only pass through.
pub fn end() {
    ON.store(false, Release);
}

/// Called by the probe runtime: asks the JVM to exchange the code.
pub fn replace(jni: Jni) {
    let Some(jvmti) = super::jvmti() else { return };
    let put = |native: &Native, signature: &CStr, ours: *mut c_void| {
        let method = JNINativeMethod {
            name: native.name.as_ptr(),
            signature: signature.as_ptr(),
            fnPtr: ours,
        };
        // SAFETY: a class of the JDK with a native method of that name and signature, and code that
        // takes what that signature says.
        unsafe { ((**jni.0).RegisterNatives)(jni.0, native.class, &raw const method, 1) };
        jni.failed();
    };
    if let Some(park) = find(jvmti, jni, UNSAFE) {
        put(&park, c"(ZJ)V", self::park as Park as *mut c_void);
    }
    if let Some(sleep) = find(jvmti, jni, THREAD) {
        put(&sleep, c"(J)V", self::sleep as Sleep as *mut c_void);
    }
    // Only where it is known what ours is to call.
    let start = find(jvmti, jni, STARTED).filter(|_| START.load(Acquire) != 0);
    if let Some(start) = start {
        put(&start, c"()V", self::start as Start as *mut c_void);
    }
}

/// Makes a local reference, which the caller's frame holds.
fn find(
    jvmti: Jvmti,
    jni: Jni,
    (class, names, descriptor): (&CStr, &[&str], &str),
) -> Option<Native> {
    let class = jni.found(class)?;
    let methods = jvmti.methods(class)?;
    let found = names.iter().find_map(|name| {
        let method = methods.iter().find(|method| {
            method.name == name.as_bytes()
                && method.descriptor == descriptor.as_bytes()
                && method.access_flags & access::NATIVE != 0
        })?;
        Some((method.id, CString::new(*name).ok()?))
    });
    let (id, name) = found?;
    // An id points to where the method's address is, and the code's address lies behind the method.
    let method = u64::from_ne_bytes(read(id as u64)?);
    let size = Tables::read(jvmti.inside_libjvm()).ok()?.size("Method").ok()?;
    Some(Native { class, at: method.checked_add(size)?, name })
}

/// The address of a method's native code, if that is what it is.
fn code(native: &Native) -> Option<u64> {
    let code = u64::from_ne_bytes(read(native.at)?);
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    is_in_code(&maps, code).then_some(code)
}

/// Whether an address is in a mapping of code, by what the kernel says of this process.
fn is_in_code(maps: &str, address: u64) -> bool {
    maps.lines().any(|line| {
        let mut parts = line.split_ascii_whitespace();
        let (range, rights) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let mut ends = range.split('-').map(|end| u64::from_str_radix(end, 16).unwrap_or(0));
        let (start, end) = (ends.next().unwrap_or(0), ends.next().unwrap_or(0));
        rights.contains('x') && (start..end).contains(&address)
    })
}

/// Whether our code is in a method's place, and what was there before is known.
fn is_code(native: &Native, known: &AtomicU64, ours: u64) -> bool {
    known.load(Acquire) != 0 && code(native) == Some(ours)
}

/// What the thread is about to wait for is looked at in Java, inside the JVM's native method: it may
/// run Java as any may. Zero if nobody wants to know.
fn begun(env: *mut JNIEnv, which: impl FnOnce(&Lookers) -> jmethodID) -> i64 {
    if !ON.load(Relaxed) {
        return 0;
    }
    gate::enter(0, || {
        let Some(lookers) = LOOKERS.get() else { return 0 };
        // SAFETY: the calling thread's environment, and a static method of that class without
        // parameters, which returns a long.
        let token = unsafe {
            let (class, method) = (lookers.class.class(), which(lookers));
            ((**env).CallStaticLongMethodA)(env, class, method, ptr::null())
        };
        if Jni(env).failed() { 0 } else { token }
    })
}

/// Calls no JNI: an exception may be pending.
fn over(token: i64) {
    if token != 0 {
        gate::enter((), || super::end(Token::from_raw(token)));
    }
}

extern "system" fn park(env: *mut JNIEnv, this: jobject, absolute: jboolean, time: jlong) {
    let token = begun(env, |lookers| lookers.parks);
    // SAFETY: the code that the JVM had for this very method, which is put in before ours is.
    unsafe { transmute::<u64, Park>(PARK.load(Acquire))(env, this, absolute, time) };
    over(token);
}

extern "system" fn sleep(env: *mut JNIEnv, class: jclass, time: jlong) {
    let token = begun(env, |lookers| lookers.sleeps);
    // SAFETY: as above.
    unsafe { transmute::<u64, Sleep>(SLEEP.load(Acquire))(env, class, time) };
    over(token);
}

extern "system" fn start(env: *mut JNIEnv, thread: jobject) {
    let wanted = ON.load(Relaxed);
    let begun = wanted.then(|| gate::enter(None, || starts::begin(Jni(env), thread))).flatten();
    // SAFETY: as above.
    unsafe { transmute::<u64, Start>(START.load(Acquire))(env, thread) };
    // An exception is pending if the system had no thread for it.
    if let Some(begun) = begun.filter(|_| !Jni(env).is_throwing()) {
        gate::enter((), || starts::end(Jni(env), &begun));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_where_the_kernel_says_so() {
        let maps = "1000-2000 r-xp 0 0:0 1 /lib/libjvm.so\n3000-4000 rw-p 0 0:0 1 /lib/libjvm.so\n";
        let known =
            [(0xfff, false), (0x1000, true), (0x1fff, true), (0x2000, false), (0x3000, false)];
        for (address, code) in known {
            assert_eq!(is_in_code(maps, address), code, "{address:x}");
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(is_in_code(&maps, park as Park as usize as u64));
        assert!(!is_in_code(&maps, (&raw const PARK) as u64));
    }
}
