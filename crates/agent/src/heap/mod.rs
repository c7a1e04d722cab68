//! Heap snapshots: a copy of the JVM, made in a pause of some milliseconds, from which the tool
//! reads the heap while the program runs on.
//!
//! Who does what: `permission` says whether a copy may be made; `walk` has the JVM stand still, notes the
//! roots and makes the copy (`child`), which then serves the tool (`serve`): it reads memory,
//! marks what is reachable (`objects`, `mark`) and hands it out. Here is the JVM's side: the engine, which
//! looks after the copy and sees to it that none is left.
//!
//! There is one copy at a time; it belongs to a connection.

mod child;
mod mark;
mod memory;
mod objects;
mod permission;
mod serve;
mod walk;

use crate::alloc;
use crate::engines::{Between, Engine, EngineError, Jvm};
use crate::kernel;
use crate::lifecycle;
use crate::thread::{self, Ours};
use crate::vm_tables::{Places, Tables};
use child::{Errand, IN_JVM};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_protocol::heap::wire::Hello;
use tare_protocol::{EngineName, EnginePlan, EngineStatus, HeapPlan, HeapStatus};

/// How often the copy is looked after.
const TICK: Duration = Duration::from_millis(50);

/// A copy that runs the JVM's code, and for so long neither ran nor waited for a processor, waits
/// for a lock whose owner it does not have.
const STALLED: Duration = Duration::from_secs(1);

/// How long an ended copy may take to be gone.
const GONE: Duration = Duration::from_secs(5);

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Copies that were ended, were not gone yet, and have no thread that waits for them.
static LEFT: Mutex<Vec<libc::pid_t>> = Mutex::new(Vec::new());

fn session() -> MutexGuard<'static, Option<Session>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Heap;

impl Engine for Heap {
    fn name(&self) -> EngineName {
        EngineName::Heap
    }

    fn start(
        &self,
        jvm: Jvm,
        plan: &EnginePlan,
        _: &mut Between<'_>,
    ) -> Result<Vec<File>, EngineError> {
        let EnginePlan::Heap(plan) = plan else {
            return Err(EngineError::misdirected(plan.engine()));
        };
        let mut session = session();
        if session.is_some() {
            return Err(EngineError::Refused(
                "another front end takes a snapshot of this JVM's heap; wait for it".to_owned(),
            ));
        }
        reap_left();
        let (copy, file) = Session::begin(jvm, plan)?;
        *session = Some(copy);
        Ok(vec![file])
    }

    fn stop(&self, _: Jvm, _: &mut Between<'_>) {
        if let Some(copy) = session().take() {
            copy.end();
        }
    }

    fn status(&self) -> Option<EngineStatus> {
        let mut session = session();
        let copy = session.as_mut()?;
        copy.reap();
        Some(EngineStatus::Heap(copy.status.clone()))
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn tick(&self, _: Jvm) {
        if let Some(copy) = session().as_mut() {
            copy.reap();
            copy.watch();
        }
        reap_left();
    }
}

/// A copy, alive or ended.
struct Session {
    pid: libc::pid_t,
    status: HeapStatus,
    state: SharedWord,
    /// What the kernel last told of the copy's running and waiting, and when that was new.
    progress: (String, u64),
    moved: Instant,
    /// When it has to be gone, even if it is stopped and hears no alarm.
    deadline: Instant,
}

impl Session {
    fn begin(jvm: Jvm, plan: &HeapPlan) -> Result<(Self, File), EngineError> {
        let inside = jvm.jvmti.inside_libjvm();
        let lacks = |missing: crate::vm_tables::Missing| {
            EngineError::Refused(format!("this JVM does not tell where it has {}", missing.0))
        };
        let tables = Tables::read(inside).map_err(lacks)?;
        let places = Places::find(inside).map_err(lacks)?;
        let heap = permission::ask(&tables).map_err(EngineError::Refused)?;
        let version = jvm.jvmti.java_version().unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
        let (ours, theirs) = socket_pair().map_err(EngineError::Files)?;
        let state = SharedWord::new().map_err(EngineError::Files)?;
        let roots = walk::Roots::new().map_err(EngineError::Files)?;
        // As memory that the copy has as well, so that the pause is none the longer for it.
        let watched = alloc::watched();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let errand = Errand {
            socket: theirs.as_raw_fd(),
            parent: std::process::id().cast_signed(),
            redact: plan.redact,
            threads: threads(),
            limit_s: plan.limit_s.max(1),
            hello: Hello {
                heap_start: heap.start,
                heap_end: heap.end,
                taken_ns: u64::try_from(now.as_nanos()).unwrap_or(0),
                watched: watched.as_ptr() as u64,
                watched_count: watched.len() as u64,
                ..places.tell()
            },
            state: state.0,
        };
        let copied = walk::copy(jvm, major, errand, roots)?;
        // Until here it must be where the copy was told that it is.
        drop(std::hint::black_box(watched));
        let status = HeapStatus {
            copy: copied.pid.cast_unsigned(),
            pause_ns: copied.pause_ns,
            fork_ns: copied.fork_ns,
            ended: None,
        };
        let (progress, moved) = ((String::new(), 0), Instant::now());
        let deadline = moved + Duration::from_secs(plan.limit_s.max(1).into()) + STALLED;
        Ok((Session { pid: copied.pid, status, state, progress, moved, deadline }, ours))
    }

    /// Takes note if the copy has ended.
    fn reap(&mut self) {
        if self.status.ended.is_none() {
            self.status.ended = wait(self.pid);
        }
    }

    /// Ends a copy that hangs in the JVM's code, or that somebody has stopped (SIGSTOP) beyond its
    /// time.
    fn watch(&mut self) {
        if self.status.ended.is_some() {
            return;
        }
        if Instant::now() >= self.deadline {
            return self.give_up("was stopped, and was ended because its time was over");
        }
        if self.state.get() != IN_JVM {
            return;
        }
        let waiting = fs::read_to_string(format!("/proc/{}/schedstat", self.pid));
        let progress =
            (waiting.unwrap_or_default(), kernel::clock(kernel::process_clock(self.pid)));
        if progress != self.progress {
            (self.progress, self.moved) = (progress, Instant::now());
        } else if self.moved.elapsed() >= STALLED {
            self.give_up("waited for a lock of the JVM's, and was ended");
        }
    }

    fn give_up(&mut self, how: &str) {
        kill(self.pid);
        self.status.ended = Some(how.to_owned());
        reap_later(self.pid);
    }

    fn end(mut self) {
        self.reap();
        if self.status.ended.is_some() {
            return reap_left();
        }
        kill(self.pid);
        let began = Instant::now();
        while wait(self.pid).is_none() {
            if began.elapsed() > GONE {
                return reap_later(self.pid);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Has a thread wait for the end of a copy that was killed. On a machine with much to do that may
/// come after the agent has left, and nobody else would ever wait for it.
fn reap_later(pid: libc::pid_t) {
    let body = move || {
        let _ours = Ours::note();
        let mut status = 0;
        // SAFETY: writes to a local. Nobody else waits for this child.
        while unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == -1
            && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
    };
    let started = lifecycle::with_signals_blocked(|| thread::spawn("tare-reap", 128 << 10, body));
    if started.is_err() {
        LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
    }
}

/// How many threads the copy may use. It yields to everybody, so it can have all processors; but
/// what it takes of a quota, or of the few that the JVM is kept to, the program lacks.
fn threads() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    // SAFETY: no pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let has_quota = usize::try_from(online).is_ok_and(|online| allowed < online);
    if has_quota { allowed.div_ceil(2) } else { allowed }
}

fn kill(pid: libc::pid_t) {
    // SAFETY: no pointers; a child of ours that was not waited for yet, so nobody else has its pid.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

fn reap_left() {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|pid| wait(*pid).is_none());
}

/// How a child of ours ended, if it has.
fn wait(pid: libc::pid_t) -> Option<String> {
    let mut status = 0;
    // SAFETY: writes to a local. Children that tell nobody of their end need the flag.
    let code = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG | libc::__WALL) };
    match code {
        0 => None,
        -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => None,
        -1 => Some("is gone, and somebody else was told how".to_owned()),
        _ if libc::WIFSIGNALED(status) => Some(match libc::WTERMSIG(status) {
            libc::SIGALRM => "ended because its time was over".to_owned(),
            libc::SIGPIPE => "ended because nobody listened any more".to_owned(),
            signal => format!("was ended by signal {signal}"),
        }),
        _ => match libc::WEXITSTATUS(status) {
            0 => Some("ended as it should".to_owned()),
            code => Some(format!("ended with code {code}")),
        },
    }
}

/// Two ends of a socket: ours, and the copy's.
fn socket_pair() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: writes to a local; on success two descriptors that nobody else owns.
    unsafe {
        match libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) {
            0 => Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A word that the JVM and its copy share.
struct SharedWord(*mut u32);

// SAFETY: memory of our own, which only volatile loads and stores touch.
unsafe impl Send for SharedWord {}

const PAGE: usize = 4096;

impl SharedWord {
    fn new() -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(SharedWord(at.cast()))
    }

    fn get(&self) -> u32 {
        // SAFETY: the mapping from above.
        unsafe { self.0.read_volatile() }
    }
}

impl Drop for SharedWord {
    fn drop(&mut self) {
        // SAFETY: the mapping from above, used no more in this process.
        unsafe { libc::munmap(self.0.cast(), PAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A process that does what it is told, as the copy is made.
    fn copy(body: impl FnOnce(libc::c_int)) -> (libc::pid_t, File) {
        let (ours, theirs) = socket_pair().unwrap();
        let state = SharedWord::new().unwrap();
        let errand = Errand {
            socket: theirs.as_raw_fd(),
            parent: std::process::id().cast_signed(),
            redact: false,
            threads: 1,
            limit_s: 60,
            hello: Hello::default(),
            state: state.0,
        };
        let pid = child::fork(&errand);
        if pid == 0 {
            body(errand.socket);
            // SAFETY: nothing of the test may run in the copy.
            unsafe { libc::_exit(7) };
        }
        assert!(pid > 0);
        (pid, ours)
    }

    fn ended(pid: libc::pid_t) -> String {
        loop {
            match wait(pid) {
                Some(how) => return how,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_copy_ends_as_it_says_and_is_reaped() {
        let (pid, _) = copy(|_| {});
        assert_eq!(ended(pid), "ended with code 7");
        let (pid, _) = copy(|_| {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        });
        kill(pid);
        assert_eq!(ended(pid), "was ended by signal 9");
    }

    #[test]
    fn a_copy_that_ends_late_is_reaped_though_nobody_looks_after_it() {
        let (pid, ours) = copy(|socket| {
            memory::Descriptor(socket).read_all(&mut [0]);
        });
        reap_later(pid);
        // SAFETY: no pointers; signal 0 is none. One that has ended and was not waited for is
        // there, too.
        let is_there = || unsafe { libc::kill(pid, 0) } == 0;
        assert!(is_there(), "it waits for us");
        drop(ours);
        let began = Instant::now();
        while is_there() {
            assert!(began.elapsed() < Duration::from_secs(60), "it is left");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_copy_whose_listener_is_gone_ends() {
        // Where bytes were left unread, the first write fails without a signal (ECONNRESET); the
        // next one brings it.
        let (pid, ours) = copy(|socket| {
            while memory::Descriptor(socket).write_all(&[0; 4096]) {}
            memory::Descriptor(socket).write_all(&[0]);
        });
        drop(ours);
        assert_eq!(ended(pid), "ended because nobody listened any more");
    }

    #[test]
    fn a_copy_has_no_descriptor_but_its_socket() {
        let kept = File::open("/proc/self/status").unwrap();
        let number = kept.as_raw_fd();
        let (pid, mut ours) = copy(|socket| {
            // SAFETY: asks for a descriptor's flags, which has no effect.
            let open = |fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1;
            let others = (0..1024).filter(|fd| *fd != socket && open(*fd)).count();
            memory::Descriptor(socket).write_all(&[others as u8, u8::from(open(socket))]);
        });
        let mut said = [9; 2];
        ours.read_exact(&mut said).unwrap();
        assert_eq!(said, [0, 1], "descriptor {number} and others are closed");
        assert_eq!(ended(pid), "ended with code 7");
    }
}
