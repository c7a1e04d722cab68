//! Events of what the JVM itself does: collections, safepoints, threads that come and go. Fields of
//! the JDK's that a recording of ours does not tell are left out: readers ask for fields by name.

use super::Shape::{Bytes, Constant, Plain, Stretch};
use super::event;
use super::{
    BOOLEAN, Class, DURATION, EVENT_THREAD, Field, INT, LONG, STACK, START, STRING, THREAD,
};

pub const COLLECTION: i64 = 108;
pub const HEAP_SUMMARY: i64 = 109;
pub const PAUSE_PHASE: i64 = 121;
pub const SAFEPOINT_BEGIN: i64 = 122;
pub const SAFEPOINT_SYNC: i64 = 123;
pub const SAFEPOINT_END: i64 = 124;
pub const VM_OPERATION: i64 = 125;
pub const THREAD_START: i64 = 126;
pub const THREAD_END: i64 = 127;

const GC: &[&str] = &["Java Virtual Machine", "GC", "Collector"];
const GC_PHASES: &[&str] = &["Java Virtual Machine", "GC", "Phases"];
const RUNTIME: &[&str] = &["Java Virtual Machine", "Runtime", "Safepoint"];
const APPLICATION: &[&str] = &["Java Application"];
const GC_ID: Field = ("gcId", INT, Plain);
const SAFEPOINT_ID: Field = ("safepointId", LONG, Plain);

pub(super) const CLASSES: &[Class] = &[
    event(
        COLLECTION,
        "jdk.GarbageCollection",
        "Garbage Collection",
        GC,
        &[
            START,
            DURATION,
            EVENT_THREAD,
            GC_ID,
            ("name", STRING, Plain),
            ("cause", STRING, Plain),
            ("sumOfPauses", LONG, Stretch),
            ("longestPause", LONG, Stretch),
        ],
    ),
    event(
        HEAP_SUMMARY,
        "jdk.GCHeapSummary",
        "Heap Summary",
        GC,
        &[START, GC_ID, ("when", STRING, Plain), ("heapUsed", LONG, Bytes)],
    ),
    event(
        PAUSE_PHASE,
        "jdk.GCPhasePause",
        "GC Phase Pause",
        GC_PHASES,
        &[START, DURATION, EVENT_THREAD, GC_ID, ("name", STRING, Plain)],
    ),
    event(
        SAFEPOINT_BEGIN,
        "jdk.SafepointBegin",
        "Safepoint Begin",
        RUNTIME,
        &[START, DURATION, SAFEPOINT_ID],
    ),
    event(
        SAFEPOINT_SYNC,
        "jdk.SafepointStateSynchronization",
        "Safepoint State Synchronization",
        RUNTIME,
        &[START, DURATION, SAFEPOINT_ID, ("runningThreadCount", INT, Plain)],
    ),
    event(
        SAFEPOINT_END,
        "jdk.SafepointEnd",
        "Safepoint End",
        RUNTIME,
        &[START, DURATION, SAFEPOINT_ID],
    ),
    event(
        VM_OPERATION,
        "jdk.ExecuteVMOperation",
        "VM Operation",
        &["Java Virtual Machine", "Runtime"],
        &[
            START,
            DURATION,
            ("operation", STRING, Plain),
            ("safepoint", BOOLEAN, Plain),
            SAFEPOINT_ID,
        ],
    ),
    event(
        THREAD_START,
        "jdk.ThreadStart",
        "Java Thread Start",
        APPLICATION,
        &[
            START,
            EVENT_THREAD,
            STACK,
            ("thread", THREAD, Constant),
            ("parentThread", THREAD, Constant),
        ],
    ),
    event(
        THREAD_END,
        "jdk.ThreadEnd",
        "Java Thread End",
        APPLICATION,
        &[START, EVENT_THREAD, ("thread", THREAD, Constant)],
    ),
];
