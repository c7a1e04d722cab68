//! What the JVM itself does, as its own recorder tells it: collections, safepoints, and threads that
//! come and go.
//!
//! A pause of ours is a collection of theirs: its phases are not told apart. Its number is ours.
//! Safepoints that nobody saw one by one are no event of the JDK's, and are left out.

use super::schema::of_jvm::{
    COLLECTION, HEAP_SUMMARY, PAUSE_PHASE, SAFEPOINT_BEGIN, SAFEPOINT_END, SAFEPOINT_SYNC,
    THREAD_END, THREAD_START, VM_OPERATION,
};
use super::write::Writer;
use crate::error::WriteError;
use std::collections::HashMap;
use tare_profile::{ContextId, FieldValue, Profile, ThreadId, ThreadKind, collections, safepoints};

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What the JDK's events have room for.
fn short(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

impl Writer<'_, '_> {
    pub(super) fn write_collections(&mut self) -> Result<(), WriteError> {
        for one in collections(self.profile) {
            let (id, pause) = (short(one.number), number(one.duration));
            let thread = self.constants.thread(one.thread);
            self.begin(COLLECTION, one.time);
            self.event.long(pause);
            self.event.long(thread);
            self.event.int(id);
            self.event.text(if one.collector.is_empty() { &one.kind } else { &one.collector });
            self.event.text(&one.cause);
            self.event.long(pause);
            self.event.long(pause);
            self.end()?;
            for (when, time, heap) in
                [("Before GC", one.time, one.heap_before), ("After GC", one.end(), one.heap_after)]
            {
                if let Some(heap) = heap {
                    self.begin(HEAP_SUMMARY, time);
                    self.event.int(id);
                    self.event.text(when);
                    self.event.long(number(heap));
                    self.end()?;
                }
            }
            self.begin(PAUSE_PHASE, one.time);
            self.event.long(pause);
            self.event.long(thread);
            self.event.int(id);
            self.event.text(if one.kind.is_empty() { "GC Pause" } else { &one.kind });
            self.end()?;
        }
        Ok(())
    }

    pub(super) fn write_safepoints(&mut self) -> Result<(), WriteError> {
        for one in safepoints(self.profile).iter().filter(|one| one.count == 1) {
            let (id, reach) = (number(one.number), number(one.reach));
            self.begin(SAFEPOINT_BEGIN, one.time);
            self.event.long(reach);
            self.event.long(id);
            self.end()?;
            if let Some(running) = one.running {
                self.begin(SAFEPOINT_SYNC, one.time);
                self.event.long(reach);
                self.event.long(id);
                self.event.int(short(running));
                self.end()?;
            }
            self.begin(VM_OPERATION, one.time.saturating_add(one.reach));
            self.event.long(number(one.duration.saturating_sub(one.reach)));
            self.event.text(&one.reason);
            self.event.flag(true);
            self.event.long(id);
            self.end()?;
            self.begin(SAFEPOINT_END, one.end());
            self.event.long(0);
            self.event.long(id);
            self.end()?;
        }
        Ok(())
    }

    /// Threads that run Java; with the stack of who started them, if that was recorded.
    pub(super) fn write_comings(&mut self) -> Result<(), WriteError> {
        let profile = self.profile;
        let starters = starters(profile);
        let java = profile.threads.iter().filter(|(_, thread)| thread.kind == ThreadKind::Java);
        for (id, one) in java {
            if let Some(at) = one.started {
                let by = one.java_id.and_then(|id| starters.get(&id).copied());
                let (parent, context) = by.unwrap_or((ThreadId::UNKNOWN, ContextId::ROOT));
                self.begin(THREAD_START, at);
                let (thread, parent) = (self.constants.thread(id), self.constants.thread(parent));
                let stack = self.constants.stack(context);
                [parent, stack, thread, parent].into_iter().for_each(|n| self.event.long(n));
                self.end()?;
            }
            if let Some(at) = one.ended {
                self.begin(THREAD_END, at);
                let thread = self.constants.thread(id);
                [thread, thread].into_iter().for_each(|n| self.event.long(n));
                self.end()?;
            }
        }
        Ok(())
    }
}

/// Who started threads, and where, by the ids of these.
fn starters(profile: &Profile) -> HashMap<u64, (ThreadId, ContextId)> {
    let mut found = HashMap::new();
    for (_, table) in profile.all_events().filter(|(_, table)| table.kind().name == "thread-start")
    {
        let Some(field) = table.field_named("java-id") else { continue };
        for (row, event) in table.events().enumerate() {
            if let Some(FieldValue::Integer(id)) = table.field(row, field) {
                found.insert(id.cast_unsigned(), (event.thread, event.context));
            }
        }
    }
    found
}
