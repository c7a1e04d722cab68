//! Seeds that need no input: small recordings, foreign files, arenas and messages, made by our own
//! writers from a profile of chance (always the same chance). Heap dumps are in `heap`, streams and
//! rings in `shared`, what a process shows of itself in `process`, jars and libraries in `code`.

mod code;
mod heap;
mod process;
mod shared;

pub use code::{elf_files, frames, jars};
pub use heap::{heap_dumps, heap_indexes};
pub use process::{command_lines, perfdata, process_files, requests};
pub use shared::{rings, streams};

use crate::dice::Dice;
use lz4_flex::block::decompress;
use tare_arena::layout::{self, Holds, PAGE, header, node, page, tree};
use tare_arena::{MethodName, NameLog};
use tare_formats::{Format, Options};
use tare_profile::{
    ContextId, Event, EventKind, Execution, Frame, FrameId, LockFields, Method, MethodKind,
    Profile, Row, SeriesInfo, Thread, ThreadId, TimeAxis, ValueKind, Wait,
};
use tare_protocol::{
    AgentOptions, EngineChange, EngineName, EnginePlan, EngineStatus, ErrorCode, EventCounts,
    ExactPlan, ExactStatus, Figures, Greeting, LoadedBy, Measure, Request, Response, Roots, Scheme,
    SomeTimes, Started, Status, TreePlan, TreeRoots,
};
use tare_recording::Writer;

fn some_frames(profile: &mut Profile, dice: &mut Dice) -> Vec<FrameId> {
    let kinds = [MethodKind::Java, MethodKind::Java, MethodKind::Native, MethodKind::Kernel];
    let ways = [Execution::Interpreted, Execution::Compiled { tier: 1 }, Execution::Native];
    (0..dice.below(12) + 2)
        .map(|number| {
            let method = Method {
                kind: kinds[dice.below(4) as usize],
                class: profile.strings.intern(&format!("a.C{}", number % 3)),
                name: profile.strings.intern(&format!("m{number}")),
                descriptor: profile.strings.intern("(I)V"),
                ..Method::default()
            };
            let line = Some(dice.below(300) as u32 + 1);
            let execution = ways[dice.below(3) as usize];
            let method = profile.methods.intern(method);
            profile.frames.intern(Frame { line, execution, ..Frame::of(method) })
        })
        .collect()
}

fn profile(seed: u64) -> Profile {
    let dice = &mut Dice(seed);
    let mut profile = Profile::new();
    profile.run.tool = "tare fuzz".to_owned();
    profile.run.started = Some(1_700_000_000_000_000_000);
    profile.run.duration = 5_000_000;
    let frames = some_frames(&mut profile, dice);
    let name = profile.strings.intern("main");
    let worker = Thread { name, java_id: Some(1), os_id: Some(7), ..Thread::default() };
    let threads = [ThreadId::UNKNOWN, profile.threads.push(worker)];
    let mut contexts = vec![ContextId::ROOT];
    for _ in 0..dice.below(30) + 2 {
        let parent = contexts[dice.below(contexts.len() as u64) as usize];
        let frame = frames[dice.below(frames.len() as u64) as usize];
        contexts.push(profile.contexts.child(parent, frame));
    }
    let samples = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
    let infos = [
        samples.with_period(10_000_000, ValueKind::CpuTime),
        SeriesInfo::new("alloc", ValueKind::AllocatedBytes).with_time(TimeAxis::Exact),
        SeriesInfo::new("exact", ValueKind::Invocations),
        SeriesInfo::new("exact", ValueKind::WallTime),
    ];
    for info in infos {
        let timed = info.time == TimeAxis::Exact;
        // A sample that counts for many becomes many events, and a large seed.
        let most = if info.kind == ValueKind::Samples { 2 } else { 1000 };
        let series = profile.add_series(info);
        for _ in 0..dice.below(20) + 1 {
            let context = contexts[dice.below(contexts.len() as u64) as usize];
            let thread = threads[dice.below(2) as usize];
            let time = if timed { dice.below(5_000_000) } else { 0 };
            let row = Row::new(context, thread, dice.below(most) as i64 + 1).at(time);
            profile.series_mut(series).push(row);
        }
    }
    let table = profile.events_of(&EventKind::lock());
    let fields = LockFields {
        class: profile.strings.intern("a.Lock"),
        operation: profile.strings.intern(Wait::Lock.name()),
        owner_context: contexts[1],
        ..LockFields::default()
    };
    let event = Event { time: 9, duration: 5, thread: threads[1], context: contexts[1] };
    profile.events_mut(table).push(event, &fields.values());
    profile
}

/// So many profiles are made into seeds.
const PROFILES: u64 = 24;

/// Recordings as they are written, some without their end, and the same with blocks that are not
/// packed, in which a fuzzer gets further. The byte at the end asks for right checksums.
pub fn recordings() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for seed in 0..PROFILES {
        let mut writer = Writer::new(Vec::new()).expect("a recording");
        let profile = profile(seed);
        writer.write(&profile).expect("a recording");
        let bytes = writer.finish(&profile).expect("a recording");
        let mut loose = unpacked(&bytes);
        loose.push(0);
        seeds.push(bytes[..bytes.len() - (seed as usize % 2) * 16].to_vec());
        seeds.push(loose);
    }
    seeds
}

/// The file's header and its blocks without packing. Places change, so the index is left out.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    const HEADER: usize = 32;
    let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("a word")) as usize;
    let mut out = bytes[..HEADER].to_vec();
    let mut at = HEADER;
    while bytes[at..].starts_with(b"\xf5TBk") {
        let stored = word(at + 12);
        let start = at + HEADER;
        let mut head = bytes[at..start].to_vec();
        let mut content = bytes[start..start + stored].to_vec();
        if head[5] == 1 {
            content = decompress(&content, word(at + 16)).expect("what we packed");
            head[5] = 0;
            head[12..16].copy_from_slice(&(content.len() as u32).to_le_bytes());
        }
        // Kind 255 is the index.
        if head[4] != 255 {
            out.extend(head);
            out.extend(content);
        }
        at = start + stored;
    }
    out
}

pub fn jfr() -> Vec<Vec<u8>> {
    foreign_files(Format::Jfr)
}

pub fn pprof() -> Vec<Vec<u8>> {
    foreign_files(Format::Pprof)
}

pub fn collapsed() -> Vec<Vec<u8>> {
    foreign_files(Format::Collapsed)
}

/// A format that is read, plain and a few of them packed.
fn foreign_files(format: Format) -> Vec<Vec<u8>> {
    let file = |seed: u64| {
        let options =
            Options { gzip: seed % 8 == 7, threads: seed.is_multiple_of(2), ..Options::default() };
        let mut out = Vec::new();
        tare_formats::write(&profile(seed), format, options, &mut out).expect("a file");
        out
    };
    (0..PROFILES).map(file).collect()
}

/// Arenas of a header, a tree and a page of nodes, counted and timed; and logs of names.
pub fn arenas() -> Vec<Vec<u8>> {
    let mut log = NameLog::default();
    let mut names = vec![0; 8];
    for id in 1..9 {
        let class = format!("a/C{id}");
        let (name, descriptor) = ("run".to_owned(), "()V".to_owned());
        let method = MethodName { id, class, name, descriptor, line: 3, ..MethodName::default() };
        let record = NameLog::record(&method);
        log.add(&record);
        names.extend(record);
        names[..8].copy_from_slice(&log.length().to_le_bytes());
    }
    vec![arena(false), arena(true), names]
}

fn arena(timed: bool) -> Vec<u8> {
    let holds = if timed { Holds::Times } else { Holds::Nothing };
    let size = holds.node_size();
    let mut bytes = vec![0_u8; 3 * PAGE];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(header::MAGIC, &layout::MAGIC.to_le_bytes());
    put(header::BUMP, &(3 * PAGE as u64).to_le_bytes());
    put(header::FIRST, &(PAGE as u64).to_le_bytes());
    put(header::NODE, &(size as u32).to_le_bytes());
    put(header::HOLDS, &holds.code().to_le_bytes());
    put(header::TICKS_1, &2600_u64.to_le_bytes());
    put(header::NANOS_1, &1000_u64.to_le_bytes());
    put(PAGE + page::KIND, &page::KIND_TREE.to_le_bytes());
    put(PAGE + page::TREE, &(PAGE as u32).to_le_bytes());
    put(PAGE + tree::NAME, &4_u32.to_le_bytes());
    put(PAGE + tree::NAME + 4, b"main");
    put(2 * PAGE + page::KIND, &page::KIND_NODES.to_le_bytes());
    put(2 * PAGE + page::TREE, &(PAGE as u32).to_le_bytes());
    let root = PAGE + tree::ROOT;
    let first = 2 * PAGE + page::HEAD;
    let nodes = [
        (root, layout::ROOT, 0),
        (root + size, 1, root),
        (root + 2 * size, 2, root + size),
        (first, 3, root + size),
        (first + size, layout::REST, first),
    ];
    for (at, method, parent) in nodes {
        put(at + node::METHOD, &method.to_le_bytes());
        put(at + node::PARENT, &(parent as u32).to_le_bytes());
        put(at + node::COUNT, &9_u64.to_le_bytes());
        if timed {
            put(at + node::TOTAL, &77_u64.to_le_bytes());
        }
    }
    bytes
}

/// One seed per message, all of them in one stream, and texts of options and patterns.
pub fn messages() -> Vec<Vec<u8>> {
    let figures = Figures::Times {
        cpu_time: true,
        some: Some(SomeTimes { one_in: 32, seed: 7 }),
        all: false,
        count_only: vec!["**.get*".parse().expect("a pattern")],
        regions: vec!["a.B:7-9".parse().expect("a region")],
    };
    let roots = ["com.acme.Orders.place", "a.B.c"].map(|text| text.parse().expect("a pattern"));
    let roots = Roots::of(roots.into(), Scheme::Eager);
    let roots = roots.map(|roots| TreeRoots { roots, follow_threads: true, follow: None });
    let plan = ExactPlan {
        include: vec!["com.acme.**".parse().expect("a pattern")],
        memory: 1 << 28,
        measure: Measure::Trees(TreePlan { figures, roots, depth: 50 }),
        ..ExactPlan::default()
    };
    let status = Status {
        pid: 7,
        loaded_by: Some(LoadedBy::Attach),
        command: "Main \\x\ny".into(),
        capabilities: vec!["can_tag_objects".into()],
        engines: vec![
            EngineStatus::Counters(EventCounts { collections: 3, ..EventCounts::default() }),
            EngineStatus::Exact(Box::new(ExactStatus { classes: 2, ..ExactStatus::default() })),
            EngineStatus::Sampling(Box::default()),
        ],
        ..Status::default()
    };
    let started = Started {
        pid: 7,
        java_version: "21".into(),
        command: "Main".into(),
        build: "0123456789abcdef".into(),
    };
    let mut seeds: Vec<Vec<u8>> = [
        Request::hello(),
        Request::Status,
        Request::Start(EnginePlan::Counters),
        Request::Start(EnginePlan::Exact(Box::new(plan))),
        Request::Stop(EngineName::Exact),
        Request::Open(EngineName::Exact),
        Request::Start(EnginePlan::Sampling(Box::default())),
        Request::Change(EngineChange::Exact { demote: vec![3, 7] }),
        Request::Change(EngineChange::Sampling { interval_ns: Some(7), paused: Some(true) }),
        Request::Detach,
    ]
    .iter()
    .map(|request| request.to_message().encode())
    .collect();
    for response in [
        Response::Ok,
        Response::Status(Box::new(status)),
        Response::error(ErrorCode::Version, "other"),
    ] {
        seeds.push(response.to_message().encode());
    }
    seeds.push(Greeting::ours().to_message().encode());
    seeds.push(started.to_message().encode());
    seeds.push(seeds.concat());
    seeds.push(b"com.acme.**.Or*s?.pl*\ncom/acme/x/Orders1\nplace".to_vec());
    seeds
}

/// Options of the agent, and the name of its directory.
pub fn options() -> Vec<Vec<u8>> {
    let all = AgentOptions {
        rendezvous: Some("/tmp/a b".into()),
        exact: true,
        fixed: true,
        held: true,
        grace: Some(60),
    };
    let some = AgentOptions { rendezvous: Some("/x,=%20ü".into()), ..AgentOptions::default() };
    let mut seeds: Vec<Vec<u8>> = [all, some].map(|options| options.to_string().into()).into();
    seeds.push(b".tare-42-0000beef".to_vec());
    seeds
}
