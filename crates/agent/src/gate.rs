//! The one gate through which the JVM enters our code.
//!
//! A panic must not cross into the JVM: unwinding through foreign frames is undefined behaviour.
//! Every exported function and every callback therefore runs inside [`enter`], which stops a
//! panic, counts it, says it once, and returns what the caller declared as the outcome.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static PANICS: AtomicU64 = AtomicU64::new(0);
static SAID: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// Runs `body`; when it panics, the JVM gets `otherwise` and goes on.
///
/// State behind a panic is left as it is: whatever `body` shares is either atomic or behind a
/// mutex whose poison we ignore after restoring its invariant, so asserting unwind safety is sound.
pub fn enter<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    // The hook belongs to our own copy of the standard library; other Rust code in the process
    // keeps its own.
    HOOK.call_once(|| {
        panic::set_hook(Box::new(|info| {
            if !SAID.swap(true, Ordering::Relaxed) {
                say(&format!("internal error, harmless to the program: {info}"));
            }
        }));
    });
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(_) => {
            PANICS.fetch_add(1, Ordering::Relaxed);
            otherwise
        }
    }
}

/// Panics stopped since the library was loaded.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// One line on the program's standard error. Only for what the user must know and cannot be told
/// through a front end.
pub fn say(what: &str) {
    let line = format!("tare: {what}\n");
    // SAFETY: the pointer and length describe `line`, which lives across the call. A write that
    // fails (a closed descriptor) has nobody to be reported to.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}
