//! What this machine, this kernel and this user allow, apart from any JVM.

use super::Check;
use std::fs;
use std::io;
use std::path::Path;
use tare_session::library::{self, Library};
use tare_session::perf::{Counter, Event};

pub fn checks() -> Vec<Check> {
    let mut all = vec![platform(), agent(), user()];
    all.extend(ptrace());
    all.extend([perf_software(), perf_hardware(), cpu_timers(), clock(), tmp(), memory()]);
    all
}

fn platform() -> Check {
    let arch = std::env::consts::ARCH;
    let kernel = rustix::system::uname();
    let finding = format!("Linux {} on {arch}", kernel.release().to_string_lossy());
    if arch == "x86_64" {
        Check::works("platform", finding)
    } else {
        Check::limited("platform", format!("{finding}: builds, but is not tested there"))
    }
}

fn agent() -> Check {
    match library::locate() {
        Ok(library) => {
            let place = match library {
                Library::Carried(_) => "inside this program".to_owned(),
                Library::File(path) => path.display().to_string(),
            };
            Check::works("agent library", format!("{place} (build {})", tare_protocol::BUILD_ID))
        }
        Err(e) => Check::no("agent library", format!("{e:#}")),
    }
}

fn user() -> Check {
    let uid = rustix::process::geteuid();
    if uid.is_root() {
        Check::works("reach", "running as root: the JVMs of every user, containers included")
    } else {
        Check::limited("reach", format!("running as uid {}: this user's own JVMs", uid.as_raw()))
            .remedy("run as root (or with sudo) for the JVMs of others and in containers")
    }
}

/// Yama's setting restricts debuggers; what we read in /proc it leaves alone. Said where it
/// restricts, because it is the first thing that people suspect then.
fn ptrace() -> Option<Check> {
    let value = read("/proc/sys/kernel/yama/ptrace_scope").filter(|value| value != "0")?;
    let finding = format!("{value}, which restricts debuggers; no command of Tare needs ptrace");
    Some(Check::works("ptrace scope", finding))
}

/// Whether an event can be counted on the calling thread.
fn perf_event(event: Event, kernel: bool) -> io::Result<()> {
    Counter::open(event, 0, kernel).map(drop)
}

fn perf_software() -> Check {
    let name = "perf clock events";
    let paranoid = read("/proc/sys/kernel/perf_event_paranoid").unwrap_or_else(|| "?".into());
    let remedy = "sysctl kernel.perf_event_paranoid=1, or run as root, or grant CAP_PERFMON; in a \
                  container also allow the system call in its seccomp profile";
    if perf_event(Event::CpuClock, true).is_ok() {
        return Check::works(name, "CPU sampling at 1 ms and finer, kernel frames included");
    }
    match perf_event(Event::CpuClock, false) {
        Ok(()) => Check::limited(
            name,
            format!(
                "CPU sampling at 1 ms, but no kernel frames (perf_event_paranoid is {paranoid})"
            ),
        )
        .remedy(remedy),
        Err(e) => Check::no(name, format!("refused: {e} (perf_event_paranoid is {paranoid})"))
            .remedy(remedy),
    }
}

fn perf_hardware() -> Check {
    let name = "hardware counters";
    match perf_event(Event::Cycles, false) {
        Ok(()) => Check::works(name, "cycles, instructions and cache misses can be measured"),
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Check::no(
            name,
            "this machine offers none, as most virtual machines; time is measured without them",
        )
        .remedy("only another machine, or a virtual one with its counters passed through"),
        Err(e) => Check::no(name, format!("refused: {e}"))
            .remedy("sysctl kernel.perf_event_paranoid=2 or lower, or run as root"),
    }
}

fn cpu_timers() -> Check {
    let name = "CPU timers";
    let mut timer: libc::timer_t = std::ptr::null_mut();
    // SAFETY: a null event asks for the default one; the timer is a local, never armed, and
    // deleted at once.
    let created = unsafe {
        let code =
            libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, std::ptr::null_mut(), &raw mut timer);
        if code == 0 {
            libc::timer_delete(timer);
        }
        code == 0
    };
    if !created {
        return Check::no(name, format!("timer_create: {}", io::Error::last_os_error()));
    }
    let tick = rustix::time::clock_getres(rustix::time::ClockId::RealtimeCoarse);
    let tick_ms = tick.tv_nsec as f64 / 1e6;
    Check::works(
        name,
        format!(
            "CPU sampling per thread without perf events; ticks with the kernel, every {tick_ms:.0} ms"
        ),
    )
}

fn clock() -> Check {
    let name = "clock";
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match source.as_deref() {
        Some("tsc") => Check::works(name, "the kernel keeps time by the TSC: exact times by rdtsc"),
        Some(other) => Check::limited(
            name,
            format!("the kernel keeps time by {other}, not the TSC: exact times cost more"),
        ),
        None => Check::limited(name, "the kernel does not say how it keeps time"),
    }
}

fn tmp() -> Check {
    let name = "/tmp";
    match rustix::fs::statvfs("/tmp") {
        Ok(fs) if fs.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC) => {
            Check::limited(name, "mounted noexec: the agent is laid elsewhere while a JVM loads it")
        }
        Ok(_) if rustix::fs::access("/tmp", rustix::fs::Access::WRITE_OK).is_err() => {
            Check::no(name, "not writable: HotSpot's attach protocol needs it")
                .remedy("make /tmp writable, or launch with `tare run -- java …`")
        }
        Ok(_) => Check::works(name, "writable, libraries can be loaded from it"),
        Err(e) => Check::no(name, format!("cannot be looked at: {e}")),
    }
}

fn memory() -> Check {
    let name = "shared memory";
    let made = rustix::fs::memfd_create("tare-doctor", rustix::fs::MemfdFlags::CLOEXEC);
    let limit = cgroup_limit();
    match (made, limit) {
        (Err(e), _) => Check::no(name, format!("memfd_create: {e}")),
        (Ok(_), Some((used, limit))) => Check::works(
            name,
            format!("available; this cgroup uses {} of {} MiB", used >> 20, limit >> 20),
        ),
        (Ok(_), None) => Check::works(name, "available, no cgroup limit here"),
    }
}

/// Bytes used and allowed in our own cgroup (version 2), if there is a limit.
fn cgroup_limit() -> Option<(u64, u64)> {
    let own = read("/proc/self/cgroup")?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let dir = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    let number = |file: &str| read(dir.join(file))?.parse::<u64>().ok();
    Some((number("memory.current")?, number("memory.max")?))
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
