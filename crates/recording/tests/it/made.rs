//! Profiles made by a seeded generator, with something in every table, and all of a profile as
//! text.

use std::fmt::Write;
use std::time::Duration;
use tare_profile::facts::{Mark, ProbeCost, keys};
use tare_profile::{
    Estimate, Event, EventKind, Execution, FieldType, FieldValue, Frame, FrameId, LossKind, Method,
    MethodKind, Profile, Row, SeriesId, SeriesInfo, Thread, ThreadId, ThreadKind, TimeAxis, Unit,
    ValueKind,
};

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A run that goes on as long as one likes.
pub struct Run {
    pub profile: Profile,
    random: Random,
    frames: Vec<FrameId>,
    threads: Vec<ThreadId>,
    time: u64,
}

pub const SAMPLES: SeriesId = SeriesId::new(0);
pub const TIMES: SeriesId = SeriesId::new(1);

impl Run {
    pub fn new(seed: u64) -> Self {
        let mut profile = Profile::new();
        let info = SeriesInfo::new("cpu", ValueKind::Samples).with_time(TimeAxis::Exact);
        profile.add_series(info.with_period(10_000_000, ValueKind::CpuTime));
        let info = SeriesInfo::new("exact", ValueKind::WallTime);
        profile.add_series(info.with_estimate(Estimate::Compensated));
        let other = ValueKind::Other { name: "cache-misses".to_owned(), unit: Unit::Count };
        let buckets = TimeAxis::Buckets { width: 1_000_000 };
        profile.add_series(SeriesInfo::new("pmu", other).with_time(buckets));
        profile.run.tool = "tare test".to_owned();
        profile.run.command_line = ["java", "-jar", "grüße.jar"].map(str::to_owned).to_vec();
        profile.run.flags = vec!["-Xmx1g".to_owned()];
        profile.run.options = vec![("interval".to_owned(), "10ms=x".to_owned())];
        let facts = &mut profile.run.facts;
        facts.set(keys::ENGINE, &"timer".to_owned());
        facts.set(keys::SAMPLED_TIME, &Duration::from_nanos(2_340_000_001));
        facts.set(keys::OVERHEAD, &0.1);
        facts.set(keys::NOTES, &vec!["grüße".to_owned(), String::new()]);
        facts.set(keys::CALIBRATION, &ProbeCost::of_lines(["clock 5000", "narrow 0 10 -12"]));
        let mark = Mark { method: "a.B.c".to_owned(), calls: 9, spread: 0.5 };
        facts.set(keys::MARKS, &vec![mark.clone(), Mark { calls: 10, ..mark }]);
        profile.run.pid = Some(4711);
        profile.run.started = Some(-5);
        let frames = vec![profile.special("[dropped]")];
        let threads = vec![ThreadId::UNKNOWN];
        Run { profile, random: Random(seed), frames, threads, time: 0 }
    }

    /// Lets so many things happen.
    pub fn go_on(&mut self, steps: usize) {
        for _ in 0..steps {
            self.time += self.random.below(1_000_000);
            match self.random.below(20) {
                0 => self.new_method(),
                1 => self.new_thread(),
                2 => self.event(),
                _ => self.values(),
            }
            self.profile.run.duration = self.time;
            self.profile.run.facts.set(keys::SAMPLES, &(self.time / 1000));
        }
    }

    fn new_method(&mut self) {
        let n = self.random.below(1000);
        let mut text = |text: String| self.profile.strings.intern(&text);
        let kinds = [MethodKind::Java, MethodKind::Native, MethodKind::Kernel, MethodKind::Class];
        let method = Method {
            kind: kinds[n as usize % 4],
            class: text(format!("com.acme.p{}.C{n}", n % 7)),
            name: text(format!("m{n}")),
            descriptor: text(if n.is_multiple_of(2) { "(I)V".into() } else { String::new() }),
            file: text(format!("C{n}.java")),
            line: (!n.is_multiple_of(3)).then_some(n as u32),
            loader: text("app".into()),
            module: text("acme.jar".into()),
        };
        let method = self.profile.methods.intern(method);
        let executions = [
            Execution::Unknown,
            Execution::Interpreted,
            Execution::Compiled { tier: 4 },
            Execution::Inlined,
            Execution::Native,
        ];
        for execution in executions {
            let bci = (n % 2 == 1).then_some(n as u16);
            let line = (!n.is_multiple_of(5)).then_some(n as u32 + 3);
            let frame = self.profile.frames.intern(Frame { method, bci, line, execution });
            self.frames.push(frame);
        }
    }

    fn new_thread(&mut self) {
        let n = self.random.below(100);
        if n < 30 {
            // A thread gets a new name, or ends.
            let id = self.threads[self.random.below(self.threads.len() as u64) as usize];
            if id != ThreadId::UNKNOWN {
                let name = self.profile.strings.intern(&format!("renamed {n}"));
                let thread = self.profile.threads.get_mut(id);
                thread.name = name;
                thread.ended = Some(self.time);
            }
            return;
        }
        let kinds = [ThreadKind::Java, ThreadKind::Virtual, ThreadKind::Vm, ThreadKind::Native];
        let thread = Thread {
            kind: kinds[n as usize % 4],
            name: self.profile.strings.intern(&format!("worker {n}")),
            java_id: n.is_multiple_of(2).then_some(n),
            os_id: n.is_multiple_of(3).then_some(n + 1000),
            started: Some(self.time),
            ended: None,
        };
        self.threads.push(self.profile.threads.push(thread));
    }

    fn event(&mut self) {
        let thread = self.threads[self.random.below(self.threads.len() as u64) as usize];
        let context = self.context();
        let event = Event { time: self.time, duration: self.random.below(1000), thread, context };
        let text = FieldValue::Text(self.profile.strings.intern("G1"));
        let n = self.random.below(1 << 40) as i64;
        if n % 3 == 0 {
            let fields = [("owner", FieldType::Thread), ("owner's stack", FieldType::Context)];
            let lock = self.profile.events_of(&EventKind::new("lock", &fields));
            let stack = FieldValue::Context(self.context());
            self.profile.events_mut(lock).push(event, &[FieldValue::Thread(thread), stack]);
        } else if n % 2 == 0 {
            let gc = self.profile.events_of(&EventKind::gc());
            let fields = [text, text, FieldValue::Integer(n), FieldValue::Integer(-n)];
            self.profile.events_mut(gc).push(event, &fields);
        } else {
            let fields = [("load", FieldType::Real), ("by", FieldType::Thread)];
            let load = self.profile.events_of(&EventKind::new("load", &fields));
            let values = [FieldValue::Real(n as f64 / 7.0), FieldValue::Thread(thread)];
            self.profile.events_mut(load).push(event, &values);
        }
        self.profile.run.lose(LossKind::Dropped, "samples", 1, "ring full");
    }

    fn context(&mut self) -> tare_profile::ContextId {
        let depth = self.random.below(6);
        let frames = (0..depth).map(|_| self.random.below(self.frames.len() as u64) as usize);
        let frames: Vec<FrameId> = frames.map(|at| self.frames[at]).collect();
        self.profile.contexts.stack(frames)
    }

    fn values(&mut self) {
        let context = self.context();
        let thread = self.threads[self.random.below(self.threads.len() as u64) as usize];
        let value = self.random.below(1 << 20) as i64 - 1000;
        self.profile.series_mut(SAMPLES).push(Row::new(context, thread, 1).at(self.time));
        self.profile.series_mut(TIMES).push(Row::new(context, thread, value));
        let bucket = self.time / 1_000_000 * 1_000_000;
        let row = Row::new(context, thread, value).at(bucket);
        self.profile.series_mut(SeriesId::new(2)).push(row);
    }
}

pub fn made(seed: u64, steps: usize) -> Profile {
    let mut run = Run::new(seed);
    run.go_on(steps);
    run.profile
}

/// Everything in a profile, so that equal texts mean equal profiles.
pub fn dump(profile: &Profile) -> String {
    let mut out = format!("{:#?}\n", profile.run);
    for (id, text) in profile.strings.iter() {
        let _ = writeln!(out, "string {} {text:?}", id.raw());
    }
    for (id, method) in profile.methods.iter() {
        let _ = writeln!(out, "method {} {method:?}", id.raw());
    }
    for (id, frame) in profile.frames.iter() {
        let _ = writeln!(out, "frame {} {frame:?}", id.raw());
    }
    for (id, parent, frame) in profile.contexts.iter() {
        let _ = writeln!(out, "context {} {} {}", id.raw(), parent.raw(), frame.raw());
    }
    for (id, thread) in profile.threads.iter() {
        let _ = writeln!(out, "thread {} {thread:?}", id.raw());
    }
    for (id, series) in profile.all_series() {
        let _ = writeln!(out, "series {} {:?}", id.raw(), series.info());
        for row in series.rows() {
            let (context, thread) = (row.context.raw(), row.thread.raw());
            let _ = writeln!(out, "  {context} {thread} {} {}", row.time, row.value);
        }
    }
    for (id, table) in profile.all_events() {
        let _ = writeln!(out, "events {} {:?}", id.raw(), table.kind());
        for (row, event) in table.events().enumerate() {
            let fields: Vec<_> = table.fields().iter().map(|field| field.get(row)).collect();
            let _ = writeln!(out, "  {event:?} {fields:?}");
        }
    }
    out
}
