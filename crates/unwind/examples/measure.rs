//! What a walk costs by the way the stack is read, and what tables cost to make and to keep.
//!
//! `cargo run --release -p tare-unwind --example measure [LIBRARY…]`

use std::ffi::{CString, c_int, c_void};
use std::time::Instant;
use tare_unwind::{Bounds, Budget, Cursor, Memory, Modules, Published, Window, walk};

const ROUNDS: u32 = 5_000;

static MODULES: Published<Modules> = Published::new();

fn main() {
    for path in std::env::args().skip(1) {
        let path = CString::new(path).expect("a path without zeros");
        // SAFETY: the user names libraries that may be loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?} cannot be loaded");
    }
    let begin = Instant::now();
    let modules = Modules::read(std::process::id() as i32, None, Budget::default());
    println!("tables: {} KiB in {:?}", modules.bytes() / 1024, begin.elapsed());
    for module in modules.iter() {
        let path = String::from_utf8_lossy(&module.path);
        match &module.table {
            Ok(t) => {
                println!("  {path}: {} rows, {} rules, {} bytes", t.rows(), t.rules(), t.bytes())
            }
            Err(reason) => println!("  {path}: {}", reason.name()),
        }
    }
    MODULES.replace(Some(Box::new(modules)));
    deeper(20);
}

#[inline(never)]
fn deeper(depth: u32) -> u32 {
    if depth > 0 {
        return std::hint::black_box(deeper(depth - 1)) + 1;
    }
    // SAFETY: a handler of the right type, and a signal to this thread only, which waits for it:
    // the handler may do what the thread might do here itself.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = in_handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
        libc::raise(libc::SIGUSR1);
    }
    depth
}

extern "C" fn in_handler(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's context of this handler.
    let from = unsafe { tare_unwind::registers_of(context) };
    let modules = MODULES.read(0).expect("published before");
    let pid = std::process::id() as i32;
    // SAFETY: the main thread's stack from here up is mapped; walks end before it does.
    let plain = measure(&modules, from, || unsafe { Bounds::new(from.sp, u64::MAX) });
    println!("plain loads: {:.0} ns for {} frames", plain.nanos, plain.frames);
    for (name, other) in [
        ("1 word", measure(&modules, from, || Window::<1>::new(pid))),
        ("32 words", measure(&modules, from, || Window::<32>::new(pid))),
        ("64 words", measure(&modules, from, || Window::<64>::new(pid))),
        ("256 words", measure(&modules, from, || Window::<256>::new(pid))),
    ] {
        assert_eq!(other.frames, plain.frames);
        println!("process_vm_readv of {name}: {:.2} times that", other.nanos / plain.nanos);
    }
}

struct Cost {
    frames: usize,
    /// Per walk.
    nanos: f64,
}

fn measure<M: Memory>(modules: &Modules, from: Cursor, make: impl Fn() -> M) -> Cost {
    let mut out = [0; 128];
    let mut frames = 0;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        frames = walk(modules, from, &mut make(), &mut out).frames;
    }
    Cost { frames, nanos: begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS) }
}
