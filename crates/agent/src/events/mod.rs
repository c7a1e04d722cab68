//! The JVM's events: who wants which, and the one place to which the JVM brings them (`callbacks`).
//!
//! A subscriber is a static list of functions, one for each event that it may want. It switches an
//! event on when it needs it; the JVM is told with the first subscriber, and told again when the
//! last has had enough. So an event that nobody wants costs nothing. Who wants an event is one bit
//! in one word: a callback loads that word and calls those whose bits are set, without a lock.

pub mod callbacks;
pub mod class_hook;
pub mod extensions;

use crate::engines;
use crate::jvm::{Failure, Jni, Jvmti};
use crate::rights::{self, Right};
use crate::stream;
use class_hook::LoadedClass;
use jvmti_bindings::sys::jni::{jclass, jlong, jmethodID, jobject, jthread};
use jvmti_bindings::sys::jvmti::{
    JVMTI_EVENT_COMPILED_METHOD_LOAD, JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
    JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, JVMTI_EVENT_GARBAGE_COLLECTION_START,
    JVMTI_EVENT_MONITOR_CONTENDED_ENTER, JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
    JVMTI_EVENT_MONITOR_WAIT, JVMTI_EVENT_MONITOR_WAITED, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
    JVMTI_MAX_EVENT_TYPE_VAL, JVMTI_MIN_EVENT_TYPE_VAL, jvmtiEvent,
};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Mutex, PoisonError};

/// Who may subscribe to events, by number: the stream, whichever engines use it, and the engines.
/// Nothing in it can panic: callbacks look here before the gate.
fn subscriber(at: usize) -> Option<&'static Subscriber> {
    match at.checked_sub(1) {
        None => Some(&stream::SUBSCRIBER),
        Some(at) => engines::ALL.get(at).map(|engine| engine.subscriber()),
    }
}

/// All their numbers.
fn numbers() -> Range<usize> {
    0..1 + engines::ALL.len()
}

/// What is called for which event, on the thread that it happened on. Each call passes the gate by
/// itself. An event may still come a moment after it was switched off.
pub struct Subscriber {
    pub thread_start: fn(Jni, jthread),
    pub thread_end: fn(Jni, jthread),
    pub class_load: fn(Jni, jclass),
    pub class_prepare: fn(Jvmti, Jni, jclass),
    /// The new bytes of a class, or nothing if it stays as it is.
    pub class_file_load: fn(&LoadedClass<'_>) -> Option<Vec<u8>>,
    pub compiled_method_load: fn(jmethodID),
    /// The method may be gone already.
    pub compiled_method_unload: fn(jmethodID),
    pub monitor_contended_enter: fn(Jni, jobject),
    /// The thread holds the monitor: whoever waits for it waits for what is done here.
    pub monitor_contended_entered: fn(Jni, jobject),
    /// The thread begins `Object.wait`, and still holds the monitor.
    pub monitor_wait: fn(Jni, jobject),
    /// It was woken, or has waited long enough.
    pub monitor_waited: fn(Jni, jobject),
    /// A virtual thread is about to leave its carrier, and has all its frames yet: it parks,
    /// yields, ends or, since JDK 24, waits for a monitor. The thread itself runs this.
    pub virtual_thread_unmount: fn(Jni, jthread),
    /// It has a carrier again, or for the first time, or could not leave it.
    pub virtual_thread_mount: fn(Jni, jthread),
    /// The JVM's sampler has met an object: the object, its class, its size in bytes.
    pub sampled_allocation: fn(Jvmti, Jni, jobject, jclass, jlong),
    /// The two of a collection come while the world stands still: no call into the JVM, no lock.
    pub collection_start: fn(),
    pub collection_finish: fn(),
}

impl Subscriber {
    /// Who wants nothing; to be spelled out for the rest.
    pub const NONE: Subscriber = Subscriber {
        thread_start: |_, _| (),
        thread_end: |_, _| (),
        class_load: |_, _| (),
        class_prepare: |_, _, _| (),
        class_file_load: |_| None,
        compiled_method_load: |_| (),
        compiled_method_unload: |_| (),
        monitor_contended_enter: |_, _| (),
        monitor_contended_entered: |_, _| (),
        monitor_wait: |_, _| (),
        monitor_waited: |_, _| (),
        virtual_thread_unmount: |_, _| (),
        virtual_thread_mount: |_, _| (),
        sampled_allocation: |_, _, _, _, _| (),
        collection_start: || (),
        collection_finish: || (),
    };
}

const EVENTS: usize = (JVMTI_MAX_EVENT_TYPE_VAL - JVMTI_MIN_EVENT_TYPE_VAL + 1) as usize;

/// For each event the subscribers that want it, a bit each, in their order.
static WANTED: [AtomicU32; EVENTS] = [const { AtomicU32::new(0) }; EVENTS];

/// Held while an event goes on or off, so that the JVM's state and ours stay the same.
static CHANGING: Mutex<()> = Mutex::new(());

/// Only for JVMTI's own numbers of events, of which all have a place.
fn wanted(event: jvmtiEvent) -> &'static AtomicU32 {
    &WANTED[(event - JVMTI_MIN_EVENT_TYPE_VAL) as usize]
}

/// Those who want an event now. Takes no lock and allocates nothing.
fn who_wants(event: jvmtiEvent) -> impl Iterator<Item = &'static Subscriber> {
    subscribers(wanted(event))
}

/// Those whose bits are set.
fn subscribers(wanted: &AtomicU32) -> impl Iterator<Item = &'static Subscriber> + use<> {
    let bits = wanted.load(Acquire);
    numbers().filter(move |at| bits & 1 << at != 0).filter_map(subscriber)
}

/// The bit of a subscriber.
fn bit_of(who: &'static Subscriber) -> Result<u32, Failure> {
    let at = numbers().find(|at| subscriber(*at).is_some_and(|one| std::ptr::eq(one, who)));
    at.map(|at| 1 << at)
        .ok_or(Failure::not_available("an event for who is not in the list of engines"))
}

/// One more wants an event: whether nobody did before.
fn is_first(wanted: &AtomicU32, bit: u32) -> bool {
    wanted.fetch_or(bit, AcqRel) == 0
}

/// One no longer wants an event: whether nobody does any more.
fn is_last(wanted: &AtomicU32, bit: u32) -> bool {
    wanted.fetch_and(!bit, AcqRel) == bit
}

/// What the JVM has to allow before it tells of an event. It is taken with the first subscriber and
/// given back with the last.
fn right(event: jvmtiEvent) -> Option<Right> {
    match event {
        JVMTI_EVENT_SAMPLED_OBJECT_ALLOC => Some(Right::Allocations),
        JVMTI_EVENT_GARBAGE_COLLECTION_START | JVMTI_EVENT_GARBAGE_COLLECTION_FINISH => {
            Some(Right::Collections)
        }
        JVMTI_EVENT_COMPILED_METHOD_LOAD | JVMTI_EVENT_COMPILED_METHOD_UNLOAD => {
            Some(Right::Compilations)
        }
        JVMTI_EVENT_MONITOR_CONTENDED_ENTER
        | JVMTI_EVENT_MONITOR_CONTENDED_ENTERED
        | JVMTI_EVENT_MONITOR_WAIT
        | JVMTI_EVENT_MONITOR_WAITED => Some(Right::Monitors),
        _ => None,
    }
}

/// Events that are on for one subscriber. They stay on if it is dropped; see [`Enabled::off`].
#[must_use]
pub struct Enabled {
    bit: u32,
    events: Vec<jvmtiEvent>,
}

impl Enabled {
    /// The subscriber wants them no more.
    pub fn off(self, jvmti: Jvmti) {
        let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        for &event in &self.events {
            if is_last(wanted(event), self.bit) {
                // A JVM that refuses this is about to end.
                let _ = jvmti.event(event, false);
                if let Some(right) = right(event) {
                    rights::give_back(jvmti, &[right]);
                }
            }
        }
    }
}

/// Switches events on for a subscriber that does not have them on; after a failure none of them is.
pub fn enable(
    jvmti: Jvmti,
    who: &'static Subscriber,
    events: impl IntoIterator<Item = jvmtiEvent>,
) -> Result<Enabled, Failure> {
    let mut done = Enabled { bit: bit_of(who)?, events: Vec::new() };
    for event in events {
        let changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the JVM is told: the first event may come at once.
        let first = is_first(wanted(event), done.bit);
        let needed = right(event).filter(|_| first);
        let told = match needed.map_or(Ok(()), |right| rights::take(jvmti, &[right])) {
            Ok(()) => {
                done.events.push(event);
                if first { jvmti.event(event, true) } else { Ok(()) }
            }
            Err(failure) => {
                is_last(wanted(event), done.bit);
                Err(failure)
            }
        };
        drop(changing);
        if let Err(failure) = told {
            done.off(jvmti);
            return Err(failure);
        }
    }
    Ok(done)
}

/// All are off, with the environment that they belonged to.
pub fn forget() {
    WANTED.iter().for_each(|bits| bits.store(0, Release));
    extensions::forget();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters;
    use crate::engines::Engine;
    use jvmti_bindings::sys::jvmti::JVMTI_EVENT_BREAKPOINT;

    #[test]
    fn an_event_is_on_from_the_first_to_the_last_who_wants_it() {
        // One that the agent never has.
        let event = JVMTI_EVENT_BREAKPOINT;
        let (stream, counters) = (&stream::SUBSCRIBER, counters::Counters.subscriber());
        let bit = |of: &'static Subscriber| bit_of(of).expect("in the list");
        let wanting = |of: &Subscriber| who_wants(event).any(|one| std::ptr::eq(one, of));
        assert_eq!(who_wants(event).count(), 0);
        assert!(is_first(wanted(event), bit(counters)));
        assert!(wanting(counters) && !wanting(stream));
        assert!(!is_first(wanted(event), bit(stream)));
        assert_eq!(who_wants(event).count(), 2);
        assert!(!is_last(wanted(event), bit(counters)));
        assert!(wanting(stream) && !wanting(counters));
        assert!(is_last(wanted(event), bit(stream)));
        assert_eq!(who_wants(event).count(), 0);
    }
}
