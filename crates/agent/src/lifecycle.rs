//! From loaded to active to gone, any number of times in one JVM's life.
//!
//! The library stays mapped after a detach (frames of ours may still be on some stack), so all
//! state is in one static that goes round: idle → active → leaving → idle. The control thread
//! owns the stay; the JVM's callbacks only look at it.

use crate::classes;
use crate::control::{self, Control, End};
use crate::doing;
use crate::engines::{self, Jvm};
use crate::events::{self, callbacks};
use crate::exact;
use crate::gate;
use crate::jni_refs;
use crate::jvm::{Failure, Group, Jni, Jvmti, Vm};
use crate::pauses;
use crate::rendezvous;
use crate::rights;
use crate::socket::{self, Place};
use crate::stream;
use crate::thread;
use jvmti_bindings::sys::jvmti;
use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};
use tare_protocol::{AgentOptions, GRACE, LoadedBy, Response};

/// How long a new load waits for an old session that is just leaving.
const LEAVING_PATIENCE: Duration = Duration::from_secs(5);

/// How long a JVM that was attached to while it starts may take to be whole.
const STARTING_PATIENCE: Duration = Duration::from_secs(20);

/// One stay of the agent in the JVM, shared by the control thread and the callbacks.
pub struct Stay {
    pub loaded_by: LoadedBy,
    pub since: Instant,
    /// How long the agent stays while no front end is connected; `None` is for ever.
    pub grace: Option<Duration>,
    /// Written to once when the JVM ends, to get the control thread out of its wait.
    pub wake: File,
    place: Place,
    dead: AtomicBool,
    /// The connection to the process that launched the JVM; closed when the agent leaves.
    launcher: Mutex<Launcher>,
}

enum Launcher {
    None,
    Connected(#[expect(dead_code, reason = "held to be closed")] UnixStream),
    /// The agent has left already; what comes now is closed at once.
    Closed,
}

impl Stay {
    pub fn vm_is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    fn launcher(&self) -> MutexGuard<'_, Launcher> {
        self.launcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, stream: Option<UnixStream>) {
        let mut launcher = self.launcher();
        if let (Launcher::None, Some(stream)) = (&*launcher, stream) {
            *launcher = Launcher::Connected(stream);
        }
    }
}

enum State {
    Idle,
    /// Loaded with the JVM, which is not up yet; what is needed once it is.
    Waiting {
        vm: Vm,
        jvmti: Jvmti,
        options: AgentOptions,
    },
    Active(Arc<Stay>),
    Leaving,
}

static STATE: Mutex<State> = Mutex::new(State::Idle);
static CHANGED: Condvar = Condvar::new();

/// A panic while the state was locked leaves one of its four values in it, each of them sound.
fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn enter_state(new: State) {
    *state() = new;
    CHANGED.notify_all();
}

/// Why the agent could not become active. The program runs on without it.
#[derive(Debug)]
pub enum ActivationError {
    NoJvmti,
    Jvmti(Failure),
    Socket(io::Error),
    Thread(io::Error),
    Busy,
}

impl fmt::Display for ActivationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActivationError::NoJvmti => {
                write!(f, "this JVM offers no JVMTI environment of version 11")
            }
            ActivationError::Jvmti(failure) => write!(f, "{failure}"),
            ActivationError::Socket(e) => write!(f, "no place for the control socket: {e}"),
            ActivationError::Thread(e) => write!(f, "cannot start the control thread: {e}"),
            ActivationError::Busy => write!(f, "an earlier session is still leaving"),
        }
    }
}

impl From<Failure> for ActivationError {
    fn from(failure: Failure) -> Self {
        ActivationError::Jvmti(failure)
    }
}

/// `-agentpath`: the JVM is not up yet, so wait for its word.
pub fn on_load(vm: Vm, options: AgentOptions) -> Result<(), ActivationError> {
    let mut state = state();
    if !matches!(*state, State::Idle) {
        // The same library twice on one command line: once is enough.
        return Ok(());
    }
    let jvmti = environment(vm, Duration::ZERO)?;
    if let Err(failure) = jvmti.event(jvmti::JVMTI_EVENT_VM_INIT, true) {
        let _ = jvmti.dispose();
        return Err(failure.into());
    }
    if options.exact {
        exact::prepare(vm, jvmti, options.fixed);
    }
    *state = State::Waiting { vm, jvmti, options };
    Ok(())
}

/// The attach protocol: the JVM is up; become active before we return, so that the socket is
/// there when the front end gets its answer.
pub fn on_attach(vm: Vm, options: &AgentOptions) -> Result<(), ActivationError> {
    {
        let state = state();
        let (state, _) = CHANGED
            .wait_timeout_while(state, LEAVING_PATIENCE, |s| matches!(s, State::Leaving))
            .unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Active(_) | State::Waiting { .. } => return Ok(()),
            State::Leaving => return Err(ActivationError::Busy),
            State::Idle => {}
        }
    }
    let jvmti = environment(vm, STARTING_PATIENCE)?;
    let grace = options.grace.map_or(GRACE, |seconds| Duration::from_secs(seconds.into()));
    match activate(vm, jvmti, LoadedBy::Attach, Some(grace)) {
        Ok(_) => Ok(()),
        Err(e) => {
            let _ = jvmti.dispose();
            Err(e)
        }
    }
}

/// An environment of our own. A very young JVM takes attach commands before it gives any out; the
/// thread that waits for it here is then the JVM's attach listener, and nothing else is held up.
fn environment(vm: Vm, patience: Duration) -> Result<Jvmti, ActivationError> {
    let deadline = Instant::now() + patience;
    let jvmti = loop {
        match vm.jvmti() {
            Some(jvmti) => break jvmti,
            None if Instant::now() >= deadline => return Err(ActivationError::NoJvmti),
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    vm.keep_an_environment();
    let prepared = jvmti
        .set_callbacks(&callbacks::table())
        .and_then(|()| jvmti.event(jvmti::JVMTI_EVENT_VM_DEATH, true));
    if let Err(failure) = prepared {
        let _ = jvmti.dispose();
        return Err(failure.into());
    }
    Ok(jvmti)
}

/// Called when the JVM is up.
pub fn vm_init() {
    let State::Waiting { vm, jvmti, options } = std::mem::replace(&mut *state(), State::Idle)
    else {
        return;
    };
    let _ = jvmti.event(jvmti::JVMTI_EVENT_VM_INIT, false);
    // Asked now: once active, a front end may send us away at any moment.
    let started = rendezvous::describe(jvmti);
    match activate(vm, jvmti, LoadedBy::Launch, None) {
        Ok(stay) => {
            let patience = match options.exact || options.held {
                true => rendezvous::PATIENCE_TO_RECORD,
                false => rendezvous::PATIENCE,
            };
            let launcher =
                options.rendezvous.and_then(|path| rendezvous::report(&path, &started, patience));
            stay.hold(launcher);
            exact::agents::wait_until_ready();
        }
        Err(e) => {
            gate::say(&format!("not active in this JVM: {e}"));
            let _ = jvmti.dispose();
        }
    }
}

/// Called when the JVM ends.
pub fn vm_death(jvmti: Jvmti, jni: Jni) {
    // While the control thread still serves: who records learns of the end when all is told.
    gate::enter((), exact::agents::finish);
    gate::enter((), classes::last_sums);
    gate::enter((), jni_refs::last);
    gate::enter((), pauses::last);
    gate::enter((), || stream::name_all(jvmti, jni));
    gate::enter((), || {
        if let State::Active(stay) = &*state() {
            stay.dead.store(true, Ordering::Release);
            stay.place.remove();
            let _ = io::Write::write(&mut &stay.wake, &1_u64.to_ne_bytes());
        }
    });
}

/// Binds the socket and starts the control thread; on an error nothing of it is left.
fn activate(
    vm: Vm,
    jvmti: Jvmti,
    loaded_by: LoadedBy,
    grace: Option<Duration>,
) -> Result<Arc<Stay>, ActivationError> {
    let (listener, place) = Place::bind().map_err(ActivationError::Socket)?;
    let wake = match eventfd() {
        Ok(wake) => wake,
        Err(e) => {
            place.remove();
            return Err(ActivationError::Socket(e));
        }
    };
    let stay = Arc::new(Stay {
        loaded_by,
        since: Instant::now(),
        grace,
        wake,
        place,
        dead: AtomicBool::new(false),
        launcher: Mutex::new(Launcher::None),
    });
    let group = vm.jni().and_then(|jni| jni.outermost_group(jvmti));
    enter_state(State::Active(Arc::clone(&stay)));
    let theirs = Arc::clone(&stay);
    let started = with_signals_blocked(|| {
        thread::spawn("tare-control", 1 << 20, move || {
            control_thread(vm, jvmti, &theirs, listener, group);
        })
    });
    if let Err(e) = started {
        stay.place.remove();
        enter_state(State::Idle);
        return Err(ActivationError::Thread(e));
    }
    Ok(stay)
}

fn control_thread(vm: Vm, jvmti: Jvmti, stay: &Stay, listener: UnixListener, group: Option<Group>) {
    let _ours = thread::Ours::note();
    let mut jni = None;
    let end = gate::enter((End::Detach, None), || {
        jni = vm.attach_daemon(c"tare-control", group);
        match jni {
            Some(jni) => Control::new(stay, Jvm { vm, jvmti, jni }).run(&listener),
            None => {
                gate::say("the control thread could not become a thread of the JVM; leaving");
                (End::Detach, None)
            }
        }
    });
    let (End::Detach, asker) = end else {
        // The JVM is being taken down around us; calling it, even to detach, could hang or crash.
        // The thread holds nothing and ends with the process.
        drop(listener);
        loop {
            std::thread::park();
        }
    };
    // Before anybody can notice that the socket is gone: who then has the agent loaded again waits
    // until this session is over, and gets one of its own.
    enter_state(State::Leaving);
    stay.place.remove();
    *stay.launcher() = Launcher::Closed;
    drop(listener);
    gate::enter((), || {
        if let Some(jni) = jni {
            for engine in engines::ALL.iter().rev() {
                gate::enter((), || {
                    engine.stop(Jvm { vm, jvmti, jni }, &mut |step| {
                        control::note(step);
                        true
                    });
                });
            }
            doing::done();
        }
        events::forget();
        rights::forget();
        exact::forget_rights();
        let _ = jvmti.dispose();
        vm.detach_current();
    });
    enter_state(State::Idle);
    if let Some(stream) = asker {
        // The last act: who asked learns that nothing is left but this thread's return.
        let _ = socket::send(&stream, &Response::Ok.to_message().encode());
    }
}

/// A descriptor that can be waited for; it does not leak into child processes.
pub fn eventfd() -> io::Result<File> {
    // SAFETY: no pointers; a non-negative result is a descriptor that nobody else owns.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

/// A thread started inside `body` takes none of the signals that are meant for the program. The
/// synchronous ones stay open: the JVM uses them on every thread that is its own.
pub fn with_signals_blocked<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the sets are locals, initialised by the first calls that fill them; the mask of
    // the calling thread is put back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
            libc::sigdelset(&raw mut all, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
        let result = body();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}
