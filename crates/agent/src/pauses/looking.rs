//! The thread that looks at what nobody tells: safepoints, and the compilers' counters. There is one
//! for all listeners, since what the JVM's thread notes of safepoints can be taken once. It never
//! enters the JVM.

use super::compilers::Compilers;
use super::listener::Listener;
use super::safepoints::{self, Looker};
use super::{PLACES, Places};
use crate::jvm::Jvmti;
use crate::kernel;
use crate::lifecycle::with_signals_blocked;
use crate::thread::{self, Handle, Ours};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often safepoints are looked at: two that come in between are told together.
/// Each look wakes a thread, which a program that does little else notices.
const LOOK: Duration = Duration::from_millis(10);

/// Who looks, and for whom.
struct Looking {
    /// Where safepoints are noted was looked for.
    is_ready: bool,
    looker: Option<Looker>,
    attended: Vec<Attended>,
    thread: Option<(Arc<AtomicBool>, Handle)>,
}

static LOOKING: Mutex<Looking> =
    Mutex::new(Looking { is_ready: false, looker: None, attended: Vec::new(), thread: None });

/// A listener, and what it was told by who looks.
struct Attended {
    listener: Arc<Listener>,
    /// Since when it listens.
    since: u64,
    /// It has what takes a while to find, and was sent the texts for it.
    is_ready: bool,
    /// The kind of safepoints in its ring, and how many it was told.
    kind: Option<u32>,
    number: u64,
    compilers: Option<Compilers>,
}

fn looking() -> MutexGuard<'static, Looking> {
    LOOKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One more is told, of what comes from now on.
pub fn attend(listener: &Arc<Listener>, jvmti: Jvmti) {
    let mut looking = looking();
    looking.attended.push(Attended {
        listener: Arc::clone(listener),
        since: kernel::monotonic(),
        is_ready: false,
        kind: None,
        number: 0,
        compilers: None,
    });
    if looking.thread.is_none() {
        let ends = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&ends);
        let body = move || look_on(jvmti, &theirs);
        let thread = with_signals_blocked(|| thread::spawn("tare-pauses", 128 << 10, body));
        looking.thread = thread.ok().map(|thread| (ends, thread));
    }
}

/// It is told the last, and no more. With the last listener the thread ends.
pub fn leave(listener: &Arc<Listener>, jvmti: Jvmti) {
    let mut now = looking();
    let is_last = now.attended.len() == 1;
    match now.thread.take_if(|_| is_last) {
        Some((ends, thread)) => {
            drop(now);
            ends.store(true, Relaxed);
            // It looks once more.
            thread.join();
            now = looking();
            (now.is_ready, now.looker) = (false, None);
        }
        None => now.look(jvmti, true),
    }
    now.attended.retain(|one| !Arc::ptr_eq(&one.listener, listener));
}

/// Tells what there is: the JVM is about to end. A look that is under way tells it as well.
pub fn last() {
    if let Ok(mut looking) = LOOKING.try_lock() {
        looking.tell(true);
    }
}

fn look_on(jvmti: Jvmti, ends: &AtomicBool) {
    let _ours = Ours::note();
    // They take a while, and nobody is to wait for it.
    PLACES.get_or_init(|| Places::find(jvmti).ok());
    let tracing = safepoints::learn(jvmti);
    {
        let mut looking = looking();
        (looking.is_ready, looking.looker) = (true, tracing.map(Looker::new));
    }
    loop {
        let over = ends.load(Relaxed);
        looking().look(jvmti, over);
        if over {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

impl Looking {
    /// Tells what has come, also to who has only begun to listen.
    fn look(&mut self, jvmti: Jvmti, last: bool) {
        if self.is_ready {
            for new in self.attended.iter_mut().filter(|one| !one.is_ready) {
                new.kind = safepoints::tracing().and_then(|tracing| {
                    new.listener.learn(tracing);
                    new.listener.declare_safepoints()
                });
                new.compilers = Compilers::begin(&new.listener.ring, jvmti);
                new.is_ready = true;
            }
        }
        self.tell(last);
    }

    fn tell(&mut self, last: bool) {
        let attended = &mut self.attended;
        if let Some(looker) = &mut self.looker {
            looker.look(|one| {
                for to in attended.iter_mut().filter(|to| one.begin >= to.since) {
                    if let Some(kind) = to.kind {
                        to.number += 1;
                        to.listener.safepoint(kind, to.number, one);
                    }
                }
            });
        }
        for Attended { listener, compilers, .. } in attended {
            if let Some(compilers) = compilers {
                compilers.look(&listener.ring, last);
            }
        }
    }
}
