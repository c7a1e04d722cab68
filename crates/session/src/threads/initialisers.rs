//! Static initialisers that seem to wait for each other.
//!
//! A thread that needs a class which another thread initialises waits inside of the JVM, which
//! calls it running and tells nobody what it waits for. What gives it away: it is in no native
//! code, its stack does not change, and it uses no processor time. So this is a suspicion and no
//! proof: which class each of them waits for is not known.

use std::collections::HashMap;
use tare_protocol::{DumpedThread, State, ThreadDump};

/// Looks in which threads must stand still.
pub const LOOKS: u32 = 3;

/// The method that initialises a class.
const INITIALISER: &str = "<clinit>";

/// The line of a frame of a native method.
const NATIVE_LINE: i32 = -2;

/// Threads that stand still, of which some initialise classes. Places are those of the dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Initialisers {
    /// With the class that each initialises.
    pub inside: Vec<(usize, String)>,
    /// Others that the JVM calls running.
    pub behind: Vec<usize>,
}

/// What does not change while a thread stands still: its state, processor time, and methods.
type Still = (State, Option<u64>, Vec<(String, String, i32)>);

/// What was seen in the looks so far.
#[derive(Default)]
pub struct Stillness {
    looks: u32,
    threads: HashMap<u64, Still>,
}

impl Stillness {
    /// Takes in another look: threads that have stood still since the first one, if they may wait
    /// for each other.
    pub fn take(&mut self, dump: &ThreadDump) -> Option<Initialisers> {
        self.looks += 1;
        let mut found = Initialisers::default();
        let mut still = HashMap::new();
        let mut kept_by_jvm = false;
        for (at, thread) in dump.threads.iter().enumerate() {
            let class = initialises(dump, thread);
            let runs = thread.state == State::Runnable && is_in_java(dump, thread);
            let waits = matches!(thread.state, State::Waiting | State::Blocked);
            // Without its processor time nobody knows whether it runs.
            let Some(os) = thread.os.filter(|_| runs || waits && class.is_some()) else { continue };
            let frames = dump.frames_of(thread);
            let stack = frames.map(|f| (f.class.clone(), f.method.clone(), f.line)).collect();
            let now: Still = (thread.state, Some(os.cpu_ns), stack);
            if self.looks > 1 && self.threads.get(&thread.id) != Some(&now) {
                continue;
            }
            still.insert(thread.id, now);
            kept_by_jvm |= runs;
            match class {
                Some(class) => found.inside.push((at, class)),
                None => found.behind.push(at),
            }
        }
        self.threads = still;
        let several = found.inside.len() + found.behind.len() > 1;
        (several && kept_by_jvm && !found.inside.is_empty()).then_some(found)
    }

    /// Whether threads have stood still for long enough to say so.
    pub fn is_enough(&self) -> bool {
        self.looks >= LOOKS
    }
}

/// Whether the JVM says that a thread executes Java: threads of its own have no stack, and who waits
/// in a native method is somewhere else.
fn is_in_java(dump: &ThreadDump, thread: &DumpedThread) -> bool {
    let native = |line: i32| line == NATIVE_LINE;
    let top = dump.frames_of(thread).next();
    !thread.in_native && !thread.is_virtual && top.is_some_and(|frame| !native(frame.line))
}

/// The class whose static initialiser a thread runs, the innermost of several.
fn initialises(dump: &ThreadDump, thread: &DumpedThread) -> Option<String> {
    let mut frames = dump.frames_of(thread);
    frames.find(|frame| frame.method == INITIALISER).map(|frame| frame.class.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads inside of static initialisers and one outside, with their processor times.
    fn dump(state: &str, flags: &str, cpu: [u64; 3]) -> ThreadDump {
        let [a, b, c] = cpu;
        let text = format!(
            "F\tA\t<clinit>\tA.java\t7\nF\tB\t<clinit>\tB.java\t7\nF\tC\trun\tC.java\t7\n\
             F\tReference\tawait\t\t-2\nS\t0\nS\t1\nS\t2\nS\t3\nS\t\n\
             T\t1\ta\tplatform\t{state}\t{flags}\t5\t0\t0\n\
             T\t2\tb\tplatform\tRUNNABLE\t{flags}\t5\t1\t0\n\
             T\t3\tc\tplatform\tRUNNABLE\t{flags}\t5\t2\t0\n\
             T\t4\tReference Handler\tplatform\tRUNNABLE\t\t5\t3\t0\n\
             T\t5\tSignal Dispatcher\tplatform\tRUNNABLE\t\t5\t4\t0\n\
             K\t4\t14\t9\nK\t5\t15\t9\nK\t1\t11\t{a}\nK\t2\t12\t{b}\nK\t3\t13\t{c}\n"
        );
        ThreadDump::parse(&text).unwrap()
    }

    fn suspects(looks: &[ThreadDump]) -> Option<Initialisers> {
        let mut stillness = Stillness::default();
        let mut last = None;
        looks.iter().for_each(|look| last = stillness.take(look));
        last.filter(|_| stillness.is_enough())
    }

    #[test]
    fn threads_that_stand_still_in_initialisers_are_suspected() {
        let look = || dump("RUNNABLE", "", [1, 2, 3]);
        let found = suspects(&[look(), look(), look()]).unwrap();
        assert_eq!(found.inside, [(0, "A".to_owned()), (1, "B".to_owned())]);
        assert_eq!(found.behind, [2]);
        assert_eq!(suspects(&[look(), look()]), None, "not for long enough");
        // An initialiser may wait for a thread that needs its class.
        let waits = || dump("WAITING", "", [1, 2, 3]);
        assert!(suspects(&[waits(), waits(), waits()]).is_some());
    }

    #[test]
    fn who_runs_or_is_in_native_code_is_not() {
        let looks = [1, 2, 3].map(|n| dump("RUNNABLE", "", [n, n, n]));
        assert_eq!(suspects(&looks), None);
        let native = || dump("RUNNABLE", "n", [1, 2, 3]);
        assert_eq!(suspects(&[native(), native(), native()]), None);
    }
}
