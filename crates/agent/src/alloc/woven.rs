//! Objects that woven code hands over: each is watched, and nothing else is known of it than the
//! node of its site and its size. So nothing is told of one before a collection has proven that it
//! lives, and those that die young cost no more than their references.
//!
//! It runs on the program's threads, in a native method of the probe runtime. What it may do there
//! is said in `met`.

use super::met::{self, Incoming, Shared};
use super::table::{Entry, Made};
use crate::jvm::Jni;
use crate::kernel;
use crate::stream::Stream;
use jvmti_bindings::sys::jni::{jlong, jobject};
use std::sync::atomic::Ordering::Relaxed;
use tare_arena::samples::{EventHead, FieldKind};
use tare_protocol::Unwatched;

/// Objects that are not proven, where the JVM keeps them until its next collection of the whole
/// heap (generational ZGC), and their bytes: that much it may be made to keep.
pub const UNPROVEN: usize = 1 << 16;
pub const UNPROVEN_BYTES: u64 = 32 << 20;

/// The kinds of events that there are here only.
#[derive(Clone, Copy)]
pub struct Kinds {
    /// An object survived.
    pub made: u32,
    /// How many are not proven, and how many are not watched.
    state: u32,
}

impl Kinds {
    pub fn declare(stream: &Stream) -> Option<Self> {
        use FieldKind::{Bytes, Integer};
        let (number, epoch, born) = (("number", Integer), ("epoch", Integer), ("born", Integer));
        let made = [number, epoch, ("node", Integer), ("size", Bytes), born];
        let unproven = [("unproven", Integer), ("unproven-bytes", Bytes)];
        let unwatched = Unwatched::ALL.map(|why| (why.key(), Integer));
        Some(Kinds {
            made: stream.declare("live-made", &made)?,
            state: stream.declare("live-state", &[&unproven[..], &unwatched].concat())?,
        })
    }
}

/// What was told last of how many are not proven, their bytes, and how many are not watched.
#[derive(Default, PartialEq, Eq)]
pub struct State([u64; 2 + Unwatched::ALL.len()]);

impl State {
    /// Tells it again if it has changed: a JVM that ends cannot be asked.
    pub fn tell(&mut self, shared: &Shared, unproven: usize, bytes: u64) {
        let Some(kinds) = shared.kinds.woven else { return };
        let mut now = State([unproven as u64, bytes, 0, 0, 0, 0]);
        for (to, count) in now.0[2..].iter_mut().zip(&shared.unwatched) {
            *to = count.load(Relaxed);
        }
        if now != *self {
            let time = kernel::monotonic();
            let head = EventHead { kind: kinds.state, time, ..EventHead::default() };
            shared.stream.ring.append_event(&head, &now.0);
            *self = now;
        }
    }
}

/// An object was made, and counted at a node of the arena; zero means that there was no room for
/// one.
pub fn made(jni: Jni, object: jobject, node: jlong, bytes: jlong) {
    met::with_session(|shared| {
        if shared.woven && !shared.paused.load(Relaxed) {
            // The upper half is the session's.
            let node = node as u32;
            shared.made(jni, object, Made::new(node, bytes.max(0).cast_unsigned()));
        }
    });
}

impl Shared {
    fn made(&self, jni: Jni, object: jobject, made: Made) {
        if made.node == 0 {
            return self.leave(Unwatched::Context);
        }
        if self.is_full.load(Relaxed) {
            return self.leave(self.why_full());
        }
        // With no lock held.
        let Some(weak) = jni.weak_object(object) else {
            return self.leave(Unwatched::Reference);
        };
        let has_room = {
            let mut incoming = self.incoming();
            let has_room = incoming.list.len() < self.room.load(Relaxed)
                && incoming.bytes + made.bytes() <= self.room_bytes.load(Relaxed);
            if has_room {
                // Numbers are in the order of births.
                let number = incoming.next;
                incoming.next += 1;
                incoming.bytes += made.bytes();
                let (born, is_old) = (self.begun.now(), made.bytes() >= self.old_from);
                incoming.list.push(Entry::made(weak, number, born, made, is_old));
            }
            has_room
        };
        if has_room {
            self.samples.fetch_add(1, Relaxed);
            self.bytes.fetch_add(made.bytes(), Relaxed);
        } else {
            jni.delete_weak(weak);
            self.is_full.store(true, Relaxed);
            self.leave(self.why_full());
        }
    }

    /// What is on its way is taken into the table, with its room: until the table was looked at
    /// there is no more than what it leaves.
    pub fn take_room(&self, incoming: &mut Incoming) {
        let bytes = std::mem::take(&mut incoming.bytes);
        if self.woven {
            let (room, left) = (self.room.load(Relaxed), self.room_bytes.load(Relaxed));
            self.room.store(room.saturating_sub(incoming.list.len()), Relaxed);
            self.room_bytes.store(left.saturating_sub(bytes), Relaxed);
        }
    }

    fn leave(&self, why: Unwatched) {
        self.unwatched[why as usize].fetch_add(1, Relaxed);
    }

    fn why_full(&self) -> Unwatched {
        match self.is_short_of_young.load(Relaxed) {
            true => Unwatched::Young,
            false => Unwatched::Limit,
        }
    }

    /// How many are not watched, and why.
    pub fn unwatched(&self) -> impl Iterator<Item = String> {
        let all = Unwatched::ALL.into_iter().zip(&self.unwatched);
        let all = all.map(|(why, count)| (why.reason(), count.load(Relaxed)));
        all.filter(|(_, n)| *n > 0).map(|(why, n)| format!("{n} not watched: {why}"))
    }
}
