//! What the probes of an exact recording take of the processor, by samples taken beside it: a
//! calibration tells what probes cost at best, this what they cost in this program, with its trees.
//!
//! A sample is the probes' if its innermost method is one of the probe runtime, and then the
//! outermost of these says what woven code called. No native code is named, so it costs next to
//! nothing.

use std::collections::HashMap;
use std::fs::File;
use tare_arena::samples::{
    Frame, Record, Sample, SampleMethod, SampleThread, Stream, StreamError, ThreadType, Trace,
};
use tare_java_names::jvm_thread;

/// Frames that are asked for: probes are the innermost, and call each other to a depth of some ten.
pub const DEPTH: u32 = 32;

/// Processor time in nanoseconds, by what it was spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// By the program, without probes and without what the JVM's own threads do.
    pub program: f64,
    /// By probes that find the context of a call and count it; of calls that are timed, too.
    pub counting: f64,
    /// By what probes of timed calls do beyond that.
    pub timing: f64,
    /// All of these, and those of timing.
    pub samples: usize,
    pub of_timing: usize,
}

/// A sampling session beside an exact recording.
pub struct ProbeSamples {
    stream: Stream,
    records: Records,
}

impl ProbeSamples {
    /// `files` are the descriptors that came with the start of the session.
    pub fn new(files: [File; 2]) -> Result<Self, StreamError> {
        Ok(ProbeSamples { stream: Stream::new(files)?, records: Records::default() })
    }

    /// Takes what has come, so that there is room for more. Whether the session still goes on.
    pub fn drain(&mut self) -> bool {
        let drained = self.stream.drain(|record| self.records.add(record));
        drained.is_ok() && self.stream.totals().is_ok_and(|totals| !totals.ended)
    }

    /// What was seen until the end of the session.
    pub fn end(mut self) -> Taken {
        // What could not be read is not counted, and the rest tells shares all the same.
        let _ = self.stream.drain_rest(|record| self.records.add(record));
        self.records.taken()
    }
}

/// What the stream told. Names may come after the stacks that they are in.
#[derive(Default)]
struct Records {
    samples: Vec<Sample>,
    stacks: HashMap<u32, Trace>,
    methods: HashMap<u64, SampleMethod>,
    threads: HashMap<u32, SampleThread>,
}

impl Records {
    fn add(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.samples.push(sample),
            Record::Trace(trace) => {
                self.stacks.insert(trace.id, trace);
            }
            Record::Method(method) => {
                self.methods.insert(method.key, method);
            }
            Record::Thread(thread) => {
                self.threads.insert(thread.number, thread);
            }
            Record::ThreadEnd { .. }
            | Record::EventKind(_)
            | Record::Text(_)
            | Record::Event(_) => {}
        }
    }

    fn taken(&self) -> Taken {
        let mut taken = Taken::default();
        for sample in self.samples.iter().filter(|sample| self.is_of_program(sample.thread)) {
            let Some(stack) = self.stacks.get(&sample.trace) else { continue };
            let place = match part(&self.names(stack)) {
                Part::Program => &mut taken.program,
                Part::Counting => &mut taken.counting,
                Part::Timing => {
                    taken.of_timing += 1;
                    &mut taken.timing
                }
                Part::Calibration => continue,
            };
            *place += sample.weight as f64;
            taken.samples += 1;
        }
        taken
    }

    /// The JVM's own threads compile woven code and collect garbage; how much of it is our doing,
    /// nobody knows.
    fn is_of_program(&self, thread: u32) -> bool {
        self.threads.get(&thread).is_none_or(|thread| {
            let of_jvm = thread.kind == ThreadType::Native && jvm_thread(&thread.name).is_some();
            !of_jvm && !thread.name.starts_with(OURS)
        })
    }

    /// Classes and names of Java methods, the innermost first.
    fn names(&self, stack: &Trace) -> Vec<(&str, &str)> {
        let java = stack.frames.iter().filter_map(|frame| match frame {
            Frame::Java { method, .. } => self.methods.get(method),
            _ => None,
        });
        java.map(|method| (&*method.class, &*method.name)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Program,
    Counting,
    Timing,
    /// Probes that are run to see what they cost.
    Calibration,
}

/// How names of the agent's threads begin.
const OURS: &str = "tare-";

/// How names of the probe runtime's classes begin; the build's id follows the job.
const RUNTIME: &str = "java/lang/Tare";
const PROBES: &str = "java/lang/TareProbe_";
const CALIBRATION: &str = "java/lang/TareCalibration_";

/// What woven code calls in methods that are timed, and what these call that counts.
const TIMED: [&str; 4] = ["enterTimed", "enterRootTimed", "exitTimed", "caughtTimed"];
const COUNTED: [&str; 3] = ["enter", "enterRoot", "exit"];

/// What of the JDK's probes call; in compiled code there is nothing left of the calls.
const CALLED: [(&str, &str); 2] =
    [("jdk/internal/misc/Unsafe", ""), ("java/lang/Thread", "currentThread")];

/// What a stack was sampled in.
fn part(frames: &[(&str, &str)]) -> Part {
    if frames.iter().any(|(class, _)| class.starts_with(CALIBRATION)) {
        return Part::Calibration;
    }
    let is_called = |(class, name): &&(&str, &str)| {
        CALLED.iter().any(|(of, method)| class == of && (method.is_empty() || name == method))
    };
    let runtime: Vec<_> = frames
        .iter()
        .skip_while(is_called)
        .take_while(|(class, _)| class.starts_with(RUNTIME))
        .collect();
    let timed = |(class, name): &(&str, &str)| class.starts_with(PROBES) && TIMED.contains(name);
    match runtime.as_slice() {
        [] => Part::Program,
        [.., inner, outer] if timed(outer) && COUNTED.contains(&inner.1) => Part::Counting,
        [.., outer] if timed(outer) => Part::Timing,
        _ => Part::Counting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_arena::samples::{How, State};

    const PROBE: &str = "java/lang/TareProbe_0123";
    const TREE: &str = "java/lang/TareTree_0123";
    const CLOCK: &str = "java/lang/TareClock_0123";

    #[test]
    fn the_outermost_probe_tells_what_a_sample_is_of() {
        let program = ("a/B", "c");
        for (stack, expected) in [
            (vec![program], Part::Program),
            (vec![], Part::Program),
            (vec![("jdk/internal/misc/Unsafe", "getLong"), program], Part::Program),
            (vec![(PROBE, "leafRoot"), program], Part::Counting),
            (vec![(TREE, "search"), (TREE, "find"), (PROBE, "enterRoot"), program], Part::Counting),
            (vec![(PROBE, "exit"), program], Part::Counting),
            // The same in a method that is timed.
            (
                vec![(TREE, "find"), (PROBE, "enterRoot"), (PROBE, "enterRootTimed"), program],
                Part::Counting,
            ),
            (vec![(PROBE, "exit"), (PROBE, "exitTimed"), program], Part::Counting),
            (vec![(PROBE, "enterRootTimed"), program], Part::Timing),
            (
                vec![(CLOCK, "ticks"), (PROBE, "begun"), (PROBE, "enterTimed"), program],
                Part::Timing,
            ),
            (
                vec![("java/lang/Thread", "currentThread"), (PROBE, "exitTimed"), program],
                Part::Timing,
            ),
            // What probes call is not always theirs.
            (vec![program, (PROBE, "enterRoot"), program], Part::Program),
            (vec![(PROBE, "exit"), ("java/lang/TareCalibration_0123", "run")], Part::Calibration),
        ] {
            assert_eq!(part(&stack), expected, "{stack:?}");
        }
    }

    /// One sample of each of three threads, in the same stack.
    #[test]
    fn threads_of_the_jvm_and_ours_do_not_count() {
        let mut records = Records::default();
        let thread = |number, kind, name: &str| {
            let name = name.to_owned();
            Record::Thread(SampleThread { number, kind, name, ..SampleThread::default() })
        };
        let frame = Frame::Java { method: 7, bci: None, how: How::Compiled };
        records.add(Record::Trace(Trace { id: 1, cut: false, frames: vec![frame] }));
        for number in 1..=4 {
            let (time, java_id, unchanged) = (0, 0, false);
            let (weight, trace, state) = (1_000, 1, State::Running);
            records.add(Record::Sample(Sample {
                thread: number,
                time,
                weight,
                java_id,
                trace,
                state,
                unchanged,
            }));
        }
        records.add(thread(1, ThreadType::Java, "main"));
        records.add(thread(2, ThreadType::Native, "C2 CompilerThre"));
        records.add(thread(3, ThreadType::Java, "tare-control"));
        // The name of a method comes last.
        let (class, name) = (PROBE.to_owned(), "exitTimed".to_owned());
        records.add(Record::Method(SampleMethod {
            key: 7,
            class,
            name,
            ..SampleMethod::default()
        }));
        let expected = Taken { timing: 2_000.0, samples: 2, of_timing: 2, ..Taken::default() };
        assert_eq!(records.taken(), expected);
    }
}
