//! What an agent writes into shared memory: streams of records, and the rings of a trace.

use crate::dice::Dice;
use tare_arena::layout::{self, Holds, PAGE, header, page, record as event, ring};
use tare_arena::samples::layout::{self as stream, frame, record, sample, trace};
use tare_arena::samples::{
    DeclaredKind, FieldKind, LineEntry, Record, SampleMethod, SampleThread, Text,
};
use tare_protocol::ClassCost;

/// So many streams.
const STREAMS: u64 = 16;

/// The byte in front says that what follows is the ring.
pub fn streams() -> Vec<Vec<u8>> {
    (1..=STREAMS).map(|seed| [vec![0], records(&mut Dice(seed))].concat()).collect()
}

fn records(dice: &mut Dice) -> Vec<u8> {
    let kinds = kinds();
    let mut out = Vec::new();
    for number in 1..4 {
        let name = ["main", "GC Thread#0", "ForkJoinPool-1-worker-1"][number as usize % 3].into();
        let thread = SampleThread { number, java_id: u64::from(number), name, ..<_>::default() };
        out.extend(thread.encode());
        let key = u64::from(number);
        let lines = vec![LineEntry { bci: 0, line: 7 }, LineEntry { bci: 5, line: 9 }];
        let class = ["a/B", "java/lang/VirtualThread", "java/util/HashMap"][number as usize % 3];
        let method = SampleMethod {
            key,
            class: class.into(),
            name: "run".into(),
            descriptor: "()V".into(),
            lines,
            ..SampleMethod::default()
        };
        out.extend(method.encode());
        let text = ["[B", "Lcom/acme/Order;", "com.acme.Lock"][number as usize % 3].into();
        out.extend(Text { id: number, text }.encode());
        out.extend(stack(number, dice));
    }
    kinds.iter().for_each(|kind| out.extend(kind.encode()));
    for _ in 0..40 {
        let time = 1_000 + dice.below(1_000_000);
        out.extend(match dice.below(4) {
            0 => seen(time, dice),
            _ => happened(&kinds[dice.below(kinds.len() as u64) as usize], time, dice),
        });
    }
    out.extend(Record::encode_thread_end(2, 1_000_000));
    out
}

/// The kinds of all engines that make more of events than rows.
fn kinds() -> Vec<DeclaredKind> {
    let costs = ClassCost::ALL.map(ClassCost::name);
    let loaded = [&["number", "class", "loader", "flags", "own"][..], &costs].concat();
    let kinds: [(&str, &[&str]); 15] = [
        ("allocation", &["number", "size", "interval", "born"]),
        ("live-survived", &["number", "level", "epoch"]),
        ("live-gone", &["number", "epoch"]),
        ("live-level", &["number", "level"]),
        ("live-swept", &["below", "epoch", "old"]),
        ("lock-wait", &["operation", "class", "instance", "owner", "owner-id", "asked", "queue"]),
        ("lock-owner", &["number", "held"]),
        ("lock-task", &["class", "executor"]),
        ("lock-sums", &["contentions", "blocked", "waiting", "lost-contentions"]),
        ("class-loaded", &loaded),
        ("class-linked", &["number"]),
        ("class-unloaded", &["number"]),
        ("class-loader", &["number", "class", "name", "parent"]),
        ("jni-refs", &["weak", "made", "deleted"]),
        ("gc", &["cause", "bytes", "thread"]),
    ];
    let kind = |(id, (name, fields)): (u32, (&str, &[&str]))| {
        let fields: Vec<(&str, FieldKind)> = fields
            .iter()
            .map(|field| match *field {
                "class" | "operation" | "cause" | "executor" => (*field, FieldKind::Text),
                "owner" | "thread" => (*field, FieldKind::Thread),
                "bytes" => (*field, FieldKind::Bytes),
                _ => (*field, FieldKind::Integer),
            })
            .collect();
        DeclaredKind::new(id, name, &fields)
    };
    (1..).zip(kinds).map(kind).collect()
}

/// A record of so many bytes with its head, and some words in it.
fn raw(kind: u32, size: usize, words: &[(usize, u64)]) -> Vec<u8> {
    let mut out = vec![0; size];
    for (at, word) in words {
        let end = size.min(at + 8);
        out[*at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
    }
    out[..4].copy_from_slice(&(size as u32 | kind << record::KIND_SHIFT).to_le_bytes());
    out
}

fn stack(id: u32, dice: &mut Dice) -> Vec<u8> {
    let count = dice.below(6) as usize + 1;
    let mut out = raw(
        record::TRACE,
        trace::HEAD + count * frame::SIZE,
        &[(trace::ID, id.into()), (trace::FRAMES, count as u64)],
    );
    for number in 0..count {
        let at = trace::HEAD + number * frame::SIZE;
        let kinds = [frame::JAVA, frame::JAVA, frame::NATIVE, frame::KERNEL, frame::SPECIAL];
        let kind = if number == 0 { frame::CLASS } else { kinds[dice.below(5) as usize] };
        out[at..at + 8].copy_from_slice(&(dice.below(4) + 1).to_le_bytes());
        out[at + frame::KIND] = kind;
    }
    out
}

fn seen(time: u64, dice: &mut Dice) -> Vec<u8> {
    let words = [
        (sample::THREAD, dice.below(4)),
        (sample::TIME, time),
        (sample::WEIGHT, dice.below(20_000_000)),
        (sample::JAVA_ID, dice.below(3)),
        (sample::TRACE, dice.below(4)),
    ];
    raw(record::SAMPLE, sample::SIZE, &words)
}

fn happened(kind: &DeclaredKind, time: u64, dice: &mut Dice) -> Vec<u8> {
    let words = [
        (stream::event::KIND, kind.id.into()),
        (stream::event::TIME, time),
        (stream::event::DURATION, dice.below(1000)),
        (stream::event::JAVA_ID, dice.below(3)),
        (stream::event::THREAD, dice.below(4)),
        (stream::event::TRACE, dice.below(4)),
    ];
    let head = stream::event::HEAD;
    let values: Vec<(usize, u64)> =
        (0..kind.fields.len()).map(|at| (head + at * 8, dice.below(9))).collect();
    raw(record::EVENT, head + values.len() * 8, &[&words[..], &values].concat())
}

/// An arena with the agent's ring and one of a thread, of which nothing was read.
pub fn rings() -> Vec<Vec<u8>> {
    let mut bytes = vec![0_u8; 3 * PAGE + 256];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(header::MAGIC, &layout::MAGIC.to_le_bytes());
    put(header::BUMP, &(5 * PAGE as u64).to_le_bytes());
    put(header::FIRST, &(PAGE as u64).to_le_bytes());
    put(header::NODE, &(Holds::Trace.node_size() as u32).to_le_bytes());
    put(header::HOLDS, &Holds::Trace.code().to_le_bytes());
    put(header::TICKS_1, &2600_u64.to_le_bytes());
    put(header::NANOS_1, &1000_u64.to_le_bytes());
    put(header::AGENT_RING, &(PAGE as u32).to_le_bytes());
    put(PAGE + page::KIND, &page::KIND_RING.to_le_bytes());
    put(PAGE + ring::SIZE, &(PAGE as u32).to_le_bytes());
    put(PAGE + ring::HEAD, &(4 * ring::RECORD as u64).to_le_bytes());
    let kinds = [event::THREAD, event::ENTRY, event::EXIT, event::GAP];
    for (number, kind) in kinds.into_iter().enumerate() {
        let at = 2 * PAGE + number * ring::RECORD;
        put(at, &(number as u64).to_le_bytes());
        put(at + 8, &(u64::from(kind) << (32 + event::DEPTH_BITS) | 7).to_le_bytes());
    }
    let mut with_tails = vec![16];
    with_tails.extend([0; 16]);
    with_tails.extend(&bytes);
    let mut without = vec![0];
    without.extend(&bytes);
    vec![with_tails, without]
}
