//! What the table of watched objects has around it: the JVM's references, and the stream that it
//! tells by.

use super::met::{Kinds, Shared};
use super::table::{Entry, Surroundings};
use crate::jvm::Jni;
use crate::jvm::references::Weak;
use tare_arena::samples::EventHead;

/// The JVM and the stream, for the table.
pub struct Around<'a> {
    pub jni: Jni,
    pub shared: &'a Shared,
    /// Of what is told.
    pub time: u64,
}

impl Around<'_> {
    fn tell(&self, kind: u32, values: &[u64]) {
        let head = EventHead { kind, time: self.time, ..EventHead::default() };
        self.shared.stream.ring.append_event(&head, values);
    }
}

impl Surroundings<Weak> for Around<'_> {
    fn is_gone(&mut self, of: Weak) -> bool {
        self.jni.is_collected(of)
    }

    fn delete(&mut self, of: Weak) {
        self.jni.delete_weak(of);
    }

    fn has_room(&mut self) -> bool {
        self.shared.stream.ring.is_half_free()
    }

    fn survived(&mut self, entry: &Entry<Weak>, epoch: u64) {
        let (number, Entry { made, born, level, .. }) = (entry.name(), *entry);
        let Kinds { survived, woven, .. } = self.shared.kinds;
        match woven {
            Some(kinds) => {
                let born = u64::from(born.wrapping_sub(self.shared.base));
                self.tell(kinds.made, &[number, epoch, made.node.into(), made.bytes(), born]);
            }
            None => self.tell(survived, &[number, u64::from(level), epoch]),
        }
    }

    fn gone(&mut self, number: u64, epoch: Option<u64>) {
        self.tell(self.shared.kinds.gone, &[number, epoch.unwrap_or(u64::MAX)]);
    }

    fn stands_for_more(&mut self, number: u64, level: u8) {
        self.tell(self.shared.kinds.level, &[number, u64::from(level)]);
    }
}
