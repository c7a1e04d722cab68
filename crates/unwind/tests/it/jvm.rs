//! Real stacks of HotSpot: this process starts a JVM inside itself, lets it work, interrupts its
//! threads, and every stack must end at the thread's bottom or in a Java frame.
//!
//! A JVM cannot be ended and started again, so each runs in a process of its own, which is this
//! test again with a variable set.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tare_unwind::{
    Budget, Cursor, End, Generation, Modules, Published, Window, registers_of, walk,
};

/// JDKs and runtimes on this machine: where `cargo xtask test` says, or in the usual places.
pub fn homes() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> =
        std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect();
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    for directory in
        [Some("/usr/lib/jvm".into()), cache.map(|c| c.join("tare"))].into_iter().flatten()
    {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        homes.extend(entries.map(|e| e.path()));
    }
    let mut homes: Vec<PathBuf> = homes
        .into_iter()
        .filter(|home| home.join("lib/server/libjvm.so").exists())
        .filter_map(|home| home.canonicalize().ok())
        .collect();
    homes.sort();
    homes.dedup();
    if homes.is_empty() {
        eprintln!("SKIPPED: no JVM in JAVA_HOME, /usr/lib/jvm or the cache");
    }
    homes
}

const CHILD: &str = "TARE_UNWIND_TEST_JVM";

#[test]
fn stacks_of_hotspot_are_complete() {
    if let Some(home) = std::env::var_os(CHILD) {
        return child(Path::new(&home));
    }
    for home in homes() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "jvm::stacks_of_hotspot_are_complete", "--nocapture"])
            .env(CHILD, &home)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        eprintln!(
            "{}: {}",
            home.display(),
            text.lines().find(|l| l.contains("samples")).unwrap_or("")
        );
        assert!(output.status.success(), "{}\n{text}\n{errors}", home.display());
    }
}

static MODULES: Published<Modules> = Published::new();
static ENDS: [AtomicUsize; End::ALL.len()] = [const { AtomicUsize::new(0) }; End::ALL.len()];
static FRAMES: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// Where walks left the modules, and where failed ones failed: the innermost address, the last
/// one, and why.
static LEFT: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];
static LEFT_COUNT: AtomicUsize = AtomicUsize::new(0);
static FAILED: [[AtomicU64; 3]; 64] = [const { [const { AtomicU64::new(0) }; 3] }; 64];
static FAILED_COUNT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the C library's errno of this thread.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel's context of this handler.
    let from = unsafe { registers_of(context) };
    if let Some(modules) = MODULES.read(from.sp as usize >> 12) {
        let mut out = [0; 256];
        let mut memory = Window::<64>::new(std::process::id() as i32);
        let walked = walk(&modules, from, &mut memory, &mut out);
        CALLS.fetch_add(memory.calls as usize, Ordering::Relaxed);
        // Samples of Java frames begin outside of every module and say nothing.
        if walked.frames > 0 {
            record(from, walked.end, walked.cursor);
            FRAMES.fetch_add(walked.frames, Ordering::Relaxed);
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn record(from: Cursor, end: End, cursor: Cursor) {
    let index = End::ALL.iter().position(|e| *e == end).unwrap_or(0);
    ENDS[index].fetch_add(1, Ordering::Relaxed);
    if end == End::Outside {
        let at = LEFT_COUNT.fetch_add(1, Ordering::Relaxed);
        LEFT[at % LEFT.len()].store(cursor.pc, Ordering::Relaxed);
    } else if end != End::Bottom {
        let at = FAILED_COUNT.fetch_add(1, Ordering::Relaxed);
        for (slot, value) in
            FAILED[at % FAILED.len()].iter().zip([from.pc, cursor.pc, index as u64])
        {
            slot.store(value, Ordering::Relaxed);
        }
    }
}

#[repr(C)]
struct VmOption {
    text: *mut c_char,
    extra: *mut c_void,
}

#[repr(C)]
struct VmArguments {
    version: c_int,
    count: c_int,
    options: *mut VmOption,
    ignore: u8,
}

type Env = *mut *const [*const c_void; 232];

/// A function of JNI's table.
macro_rules! jni {
    ($env:expr, $index:expr, fn($($t:ty),*) -> $r:ty, $($a:expr),*) => {
        std::mem::transmute::<*const c_void, unsafe extern "C" fn(Env, $($t),*) -> $r>((**$env)[$index])($env, $($a),*)
    };
}

/// Starts a JVM in this process and makes it load, compile, throw and collect.
fn child(home: &Path) {
    // HotSpot looks for its parts from where its library is.
    let library = home.join("lib/server/libjvm.so");
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the library of a JVM, and JNI's documented way to start one.
    let env: Env = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        assert!(!handle.is_null(), "{}", library.display());
        let create = libc::dlsym(handle, c"JNI_CreateJavaVM".as_ptr());
        let create: unsafe extern "C" fn(*mut *mut c_void, *mut Env, *mut VmArguments) -> c_int =
            std::mem::transmute(create);
        let texts = [c"-Xmx128m", c"-XX:+UseG1GC", c"-Xss1m", c"-Xcheck:jni"];
        let mut options = texts
            .map(|text| VmOption { text: text.as_ptr().cast_mut(), extra: std::ptr::null_mut() });
        let mut arguments = VmArguments {
            version: 0x0001_0008,
            count: options.len() as c_int,
            options: options.as_mut_ptr(),
            ignore: 0,
        };
        let (mut vm, mut env) = (std::ptr::null_mut(), std::ptr::null_mut());
        assert_eq!(create(&mut vm, &mut env, &mut arguments), 0);
        env
    };
    refresh();
    start_timer();
    // Patterns, formats, exceptions and collections: real work of the JDK's own classes.
    for round in 0_u32.. {
        let samples: usize = ENDS.iter().map(|e| e.load(Ordering::Relaxed)).sum();
        if samples > 600 || cpu_seconds() > 60 {
            break;
        }
        work(env, round);
        if Generation::now() != MODULES.read(0).unwrap().generation {
            refresh();
        }
    }
    stop_timer();
    judge();
    // The JVM's threads end with the process; the libtest harness prints before that.
}

fn refresh() {
    let before = MODULES.read(0);
    let pid = std::process::id() as i32;
    let modules = Modules::read(pid, before.as_deref(), Budget::default());
    drop(before);
    MODULES.replace(Some(Box::new(modules)));
}

/// One round of work through JNI: `String.format`, `Pattern.compile`, failing `Integer.parseInt`
/// and `System.gc`, by calling static methods with strings.
fn work(env: Env, round: u32) {
    const FIND_CLASS: usize = 6;
    const EXCEPTION_CLEAR: usize = 17;
    const EXCEPTION_CHECK: usize = 228;
    const PUSH_LOCAL_FRAME: usize = 19;
    const POP_LOCAL_FRAME: usize = 20;
    const GET_STATIC_METHOD_ID: usize = 113;
    const CALL_STATIC_OBJECT_METHOD: usize = 116;
    const CALL_STATIC_VOID_METHOD: usize = 143;
    const NEW_STRING_UTF: usize = 167;
    // SAFETY: JNI's functions by their numbers, with objects that this frame made, checked by the
    // JVM itself (-Xcheck:jni).
    unsafe {
        jni!(env, PUSH_LOCAL_FRAME, fn(c_int) -> c_int, 64);
        let text = CString::new(format!("(a|b)*{round}[x-z]+(?<n>q{{1,3}})")).unwrap();
        let calls = [
            (
                c"java/util/regex/Pattern",
                c"compile",
                c"(Ljava/lang/String;)Ljava/util/regex/Pattern;",
            ),
            (c"java/lang/Integer", c"valueOf", c"(Ljava/lang/String;)Ljava/lang/Integer;"),
            (c"java/lang/ModuleLayer", c"boot", c"()Ljava/lang/ModuleLayer;"),
            (c"java/lang/Thread", c"getAllStackTraces", c"()Ljava/util/Map;"),
            (c"java/lang/Class", c"forName", c"(Ljava/lang/String;)Ljava/lang/Class;"),
            (c"java/util/Locale", c"getAvailableLocales", c"()[Ljava/util/Locale;"),
        ];
        for (class, method, signature) in calls {
            let class = jni!(env, FIND_CLASS, fn(*const c_char) -> *mut c_void, class.as_ptr());
            assert!(!class.is_null());
            let id = jni!(
                env,
                GET_STATIC_METHOD_ID,
                fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void,
                class,
                method.as_ptr(),
                signature.as_ptr()
            );
            assert!(!id.is_null());
            let string = jni!(env, NEW_STRING_UTF, fn(*const c_char) -> *mut c_void, text.as_ptr());
            for _ in 0..20 {
                // A function of JNI with a variable number of arguments.
                let call: unsafe extern "C" fn(Env, *mut c_void, *mut c_void, ...) -> *mut c_void =
                    std::mem::transmute((**env)[CALL_STATIC_OBJECT_METHOD - 2]);
                let made = call(env, class, id, string);
                if jni!(env, EXCEPTION_CHECK, fn() -> u8,) != 0 {
                    jni!(env, EXCEPTION_CLEAR, fn() -> (),);
                } else if !made.is_null() {
                    jni!(env, 23, fn(*mut c_void) -> (), made);
                }
            }
        }
        if round.is_multiple_of(8) {
            let class = jni!(
                env,
                FIND_CLASS,
                fn(*const c_char) -> *mut c_void,
                c"java/lang/System".as_ptr()
            );
            let id = jni!(
                env,
                GET_STATIC_METHOD_ID,
                fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void,
                class,
                c"gc".as_ptr(),
                c"()V".as_ptr()
            );
            let call: unsafe extern "C" fn(Env, *mut c_void, *mut c_void, ...) =
                std::mem::transmute((**env)[CALL_STATIC_VOID_METHOD - 2]);
            call(env, class, id);
        }
        jni!(env, POP_LOCAL_FRAME, fn(*mut c_void) -> *mut c_void, std::ptr::null_mut());
    }
}

/// Failed walks may be this share of all: 1 in 200.
const FAILURES: usize = 200;

fn judge() {
    let count =
        |end: End| ENDS[End::ALL.iter().position(|e| *e == end).unwrap()].load(Ordering::Relaxed);
    let all: usize = End::ALL.iter().map(|e| count(*e)).sum();
    let parts: Vec<String> = End::ALL
        .iter()
        .filter(|e| count(**e) > 0)
        .map(|e| format!("{} {}", count(*e), e.name()))
        .collect();
    println!(
        "{all} samples, {} frames, {} reads: {}",
        FRAMES.load(Ordering::Relaxed),
        CALLS.load(Ordering::Relaxed),
        parts.join(", ")
    );
    assert!(all > 200, "too few samples to judge");
    assert!(count(End::Bottom) > 20, "threads of the JVM itself end at their bottom");
    let modules = MODULES.read(0).unwrap();
    let place = |address: u64| match modules.find(address) {
        Some(m) => format!("{}+{:#x}", String::from_utf8_lossy(&m.path), address - m.bias),
        None => format!("{address:#x}"),
    };
    let failed = FAILED_COUNT.load(Ordering::Relaxed);
    for f in FAILED.iter().take(failed.min(FAILED.len())) {
        let [from, last, end] = [0, 1, 2].map(|i| f[i].load(Ordering::Relaxed));
        println!("  {} at {}, from {}", End::ALL[end as usize].name(), place(last), place(from));
    }
    // Who left the modules must be in code that the JVM made: executable, and of no file.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let made: Vec<_> = maps.lines().filter_map(generated_code).collect();
    let left = LEFT_COUNT.load(Ordering::Relaxed).min(LEFT.len());
    let addresses: Vec<u64> = LEFT[..left].iter().map(|a| a.load(Ordering::Relaxed)).collect();
    let lost = addresses.iter().filter(|pc| !made.iter().any(|r| r.contains(*pc))).count();
    for pc in addresses.iter().filter(|pc| !made.iter().any(|r| r.contains(*pc))).take(20) {
        println!("  left the modules for {pc:#x}");
    }
    assert!((failed + lost) * FAILURES <= all, "{failed} failed, {lost} went astray, of {all}");
}

fn generated_code(line: &str) -> Option<std::ops::Range<u64>> {
    let mut words = line.split_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let executable = words.next()?.contains('x');
    let anonymous = words.nth(2) == Some("0");
    let number = |text| u64::from_str_radix(text, 16).ok();
    (executable && anonymous).then_some(number(from)?..number(to)?)
}

fn start_timer() {
    // SAFETY: a handler of the right type for SIGPROF, which HotSpot leaves alone, and a timer.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()), 0);
    }
    set_timer(1_000);
}

fn stop_timer() {
    set_timer(0);
}

fn set_timer(micros: i64) {
    let time = libc::timeval { tv_sec: 0, tv_usec: micros };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: a valid timer value; the old one is not wanted.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()) }, 0);
}

fn cpu_seconds() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec
}
