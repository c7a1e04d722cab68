//! Events that HotSpot has beyond the JVMTI specification: they have names, and a JVM says which
//! number each has, if it knows it. The callbacks are in `callbacks`, beside the others.

use super::callbacks::of_extension;
use super::{CHANGING, Subscriber, bit_of, is_first, is_last, subscribers};
use crate::jvm::{Failure, Jvmti};
use jvmti_bindings::sys::jvmti::jvmtiEvent;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering::*};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension {
    VirtualThreadUnmount,
    VirtualThreadMount,
}

/// For each the subscribers that want it, a bit each.
static WANTED: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

impl Extension {
    fn wanted(self) -> &'static AtomicU32 {
        match self {
            Extension::VirtualThreadUnmount => &WANTED[0],
            Extension::VirtualThreadMount => &WANTED[1],
        }
    }

    /// Those who want it now. Takes no lock and allocates nothing.
    pub(super) fn who_wants(self) -> impl Iterator<Item = &'static Subscriber> {
        subscribers(self.wanted())
    }

    /// Its number in this JVM.
    fn number(self, jvmti: Jvmti) -> Result<jvmtiEvent, Failure> {
        let (name, _) = of_extension(self);
        jvmti.extension_event(name).ok_or(Failure::not_available("an event of virtual threads"))
    }
}

/// Such events that are on for one subscriber. They stay on if it is dropped: see
/// [`Extended::off`].
#[must_use]
pub struct Extended {
    bit: u32,
    events: Vec<(Extension, jvmtiEvent)>,
}

impl Extended {
    /// The subscriber wants them no more.
    pub fn off(self, jvmti: Jvmti) {
        let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        for (extension, number) in self.events {
            if is_last(extension.wanted(), self.bit) {
                // A JVM that refuses this is about to end.
                let _ = jvmti.event(number, false);
                let _ = jvmti.set_extension_callback(number, None);
            }
        }
    }
}

/// Switches events on for a subscriber that does not have them on; after a failure none of them is.
pub fn enable(
    jvmti: Jvmti,
    who: &'static Subscriber,
    extensions: &[Extension],
) -> Result<Extended, Failure> {
    let mut done = Extended { bit: bit_of(who)?, events: Vec::new() };
    for &extension in extensions {
        let told = extension.number(jvmti).and_then(|number| {
            let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
            done.events.push((extension, number));
            // Before the JVM is told: the first event may come at once.
            if !is_first(extension.wanted(), done.bit) {
                return Ok(());
            }
            jvmti.set_extension_callback(number, Some(of_extension(extension).1))?;
            jvmti.event(number, true)
        });
        if let Err(failure) = told {
            done.off(jvmti);
            return Err(failure);
        }
    }
    Ok(done)
}

/// All are off, with the environment that they belonged to.
pub(super) fn forget() {
    WANTED.iter().for_each(|bits| bits.store(0, Release));
}
