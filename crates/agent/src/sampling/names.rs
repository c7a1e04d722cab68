//! Who the numbers in the stream are: methods and threads, resolved on the control thread.
//!
//! The handler records a method by its id. Each tick the control thread looks through the traces that have
//! come and sends what is known of ids that it has not seen. A class that is unloaded between the
//! sample and the tick loses its name; the time in between is a tick.

use super::ring::Ring;
use crate::jvm::{Jni, Jvmti};
use std::collections::{HashSet, VecDeque};
use tare_arena::samples::layout::{frame, record, trace};

/// Methods resolved at most per tick, so that the control thread stays responsive.
const PER_TICK: usize = 2_000;

#[derive(Default)]
pub struct MethodNames {
    /// Up to where the stream was looked through.
    pub scanned: u64,
    known: HashSet<u64>,
    waiting: VecDeque<u64>,
}

impl MethodNames {
    /// Looks for new methods in what has come.
    pub fn scan(&mut self, ring: &Ring) {
        let (known, waiting) = (&mut self.known, &mut self.waiting);
        self.scanned = ring.scan(self.scanned, |kind, bytes| {
            if kind != record::TRACE {
                return;
            }
            let frames = bytes.get(trace::HEAD..).unwrap_or(&[]);
            for one in frames.chunks_exact(frame::SIZE) {
                let key = one.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                if one[frame::KIND] == frame::JAVA && known.insert(key) {
                    waiting.push_back(key);
                }
            }
        });
    }

    /// Sends names; what finds no room in the ring waits for the next call.
    pub fn send(&mut self, ring: &Ring, jvmti: Jvmti, jni: Jni, most: Option<usize>) {
        for _ in 0..most.unwrap_or(PER_TICK) {
            let Some(key) = self.waiting.pop_front() else { return };
            if !ring.append_bytes(&jvmti.describe_method(jni, key).encode()) {
                self.waiting.push_front(key);
                return;
            }
        }
    }
}
