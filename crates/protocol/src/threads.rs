//! A dump of all threads of a JVM: what is asked for, and the text that comes back.
//!
//! The text is lines, their fields set apart by tabs (PROTOCOL.md lists them). The JVM's owner may
//! write what they like there, so reading it is total: a line that cannot be read is an error, and
//! lines of unknown kinds are passed over.

use crate::{Message, WireError};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// What a dump is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsPlan {
    /// Frames of a stack.
    pub depth: u32,
    /// Virtual threads that are looked at; none with zero.
    pub virtuals: u32,
    /// For how long they are looked at, in milliseconds.
    pub virtual_ms: u32,
    /// If the JVM has not got on with it for so many milliseconds, what can be read without it is
    /// told instead; never with zero.
    pub stall_ms: u32,
}

impl Default for ThreadsPlan {
    fn default() -> Self {
        ThreadsPlan { depth: 512, virtuals: 20_000, virtual_ms: 3_000, stall_ms: 8_000 }
    }
}

impl ThreadsPlan {
    pub(crate) fn to_message(self) -> Message {
        Message::new("threads")
            .with("depth", self.depth)
            .with("virtuals", self.virtuals)
            .with("virtual-ms", self.virtual_ms)
            .with("stall-ms", self.stall_ms)
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(ThreadsPlan {
            depth: m.parse("depth")?,
            virtuals: m.parse("virtuals")?,
            virtual_ms: m.parse("virtual-ms")?,
            stall_ms: m.parse("stall-ms")?,
        })
    }
}

/// All threads, as the JVM told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadDump {
    pub threads: Vec<DumpedThread>,
    pub stacks: Vec<DumpedStack>,
    pub frames: Vec<DumpedFrame>,
    /// Threads that are missing, because there were too many.
    pub platform_left_out: u64,
    pub virtual_left_out: u64,
    /// The heap had room for so many frames a stack only.
    pub shallow: Option<u64>,
    /// The JVM keeps no list of virtual threads that no executor has.
    pub virtual_untracked: bool,
    /// Why nothing is known of locks, or of virtual threads; and what broke off.
    pub no_management: Option<String>,
    pub no_virtual: Option<String>,
    pub incomplete: Option<String>,
    /// The JVM reached no safepoint, so this is what could be read without it.
    pub stalled: Option<Stalled>,
}

/// What is known of a JVM that reaches no safepoint. Threads have their numbers in the kernel for
/// ids, and their names there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stalled {
    /// For so many milliseconds, or longer.
    pub ms: u64,
    /// Ids of the threads that are in Java code or in the JVM, while it waits for them.
    pub kept_by: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedThread {
    pub id: u64,
    pub name: String,
    pub is_virtual: bool,
    pub state: State,
    pub daemon: bool,
    pub in_native: bool,
    pub suspended: bool,
    pub priority: i32,
    /// Its place in [`ThreadDump::stacks`].
    pub stack: usize,
    /// Of a virtual thread that is mounted: the id of its carrier. Of others zero.
    pub carrier: u64,
    pub wait: Option<Wait>,
    pub held: Vec<Held>,
    pub os: Option<Os>,
}

/// What the kernel knows of a platform thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Os {
    pub tid: u32,
    pub cpu_ns: u64,
}

/// As `java.lang.Thread.State` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    New,
    Runnable,
    Blocked,
    Waiting,
    TimedWaiting,
    Terminated,
}

impl State {
    const ALL: [State; 6] = [
        State::New,
        State::Runnable,
        State::Blocked,
        State::Waiting,
        State::TimedWaiting,
        State::Terminated,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::New => "NEW",
            State::Runnable => "RUNNABLE",
            State::Blocked => "BLOCKED",
            State::Waiting => "WAITING",
            State::TimedWaiting => "TIMED_WAITING",
            State::Terminated => "TERMINATED",
        }
    }
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub how: How,
    /// The class of the lock; empty where the JVM does not tell.
    pub class: String,
    /// Its identity hash code, or the address of the JVM's monitor where that is all there is.
    pub lock: u64,
    /// The id of the thread that has it; zero where nobody knows.
    pub owner: u64,
    /// What is the same as long as this wait goes on, and never again after it; empty if unknown.
    pub token: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// For a monitor, to enter it.
    Enter,
    /// For a notification: who has the monitor does not matter.
    Wait,
    /// Parked, for whatever the program says.
    Park,
    /// A carrier, for the virtual thread on it.
    Carry,
}

impl How {
    const ALL: [(How, &'static str); 4] =
        [(How::Enter, "enter"), (How::Wait, "wait"), (How::Park, "park"), (How::Carry, "carry")];
}

/// A monitor that a thread has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The frame that has entered it, from the top; native code if it is negative.
    pub depth: i32,
    pub lock: u64,
    pub class: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DumpedStack {
    /// Places in [`ThreadDump::frames`], the innermost first.
    pub frames: Vec<usize>,
    pub left_out: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DumpedFrame {
    pub class: String,
    pub method: String,
    pub file: String,
    /// As `StackTraceElement` has it: -2 in a native method, other negative ones unknown.
    pub line: i32,
}

/// A line that is not one of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpError {
    pub line: usize,
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the JVM's dump of threads cannot be read (line {})", self.line)
    }
}

impl std::error::Error for DumpError {}

impl ThreadDump {
    pub fn parse(text: &str) -> Result<Self, DumpError> {
        let mut reader = Reader::default();
        for (at, line) in text.lines().enumerate() {
            reader.line(line).ok_or(DumpError { line: at + 1 })?;
        }
        reader.finish().ok_or(DumpError { line: text.lines().count() })
    }

    /// The frames of a thread, the innermost first.
    pub fn frames_of<'a>(
        &'a self,
        thread: &DumpedThread,
    ) -> impl Iterator<Item = &'a DumpedFrame> + use<'a> {
        let stack = self.stacks.get(thread.stack).map_or(&[][..], |stack| &stack.frames);
        stack.iter().filter_map(|frame| self.frames.get(*frame))
    }
}

#[derive(Default)]
struct Reader {
    dump: ThreadDump,
    places: HashMap<u64, usize>,
    /// Of threads: the monitor that they wait for, and who has it.
    monitors: HashMap<u64, (u64, u64)>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Option<()> {
        let mut fields = Fields(line.split('\t'));
        match fields.next()? {
            "F" => {
                let (class, method, file) = (fields.text()?, fields.text()?, fields.text()?);
                let line = fields.number()?;
                self.dump.frames.push(DumpedFrame { class, method, file, line });
            }
            "S" => {
                let mut stack = DumpedStack::default();
                for word in fields.next()?.split_ascii_whitespace() {
                    match word.strip_prefix('+') {
                        Some(more) => stack.left_out = more.parse().ok()?,
                        None => stack.frames.push(self.frame(word)?),
                    }
                }
                self.dump.stacks.push(stack);
            }
            "T" => {
                let thread = self.thread(&mut fields)?;
                self.places.insert(thread.id, self.dump.threads.len());
                self.dump.threads.push(thread);
            }
            "L" => {
                let (depth, lock) = (fields.number()?, fields.hex()?);
                let held = Held { depth, lock, class: fields.text()? };
                self.dump.threads.last_mut()?.held.push(held);
            }
            "K" => {
                let (id, tid, cpu_ns) =
                    (fields.number::<u64>()?, fields.number()?, fields.number()?);
                if let Some(at) = self.places.get(&id) {
                    self.dump.threads.get_mut(*at)?.os = Some(Os { tid, cpu_ns });
                }
            }
            "M" => {
                let (id, monitor) = (fields.number()?, fields.hex()?);
                self.monitors.insert(id, (monitor, fields.number()?));
            }
            "N" => {
                let (key, text) = (fields.next()?, fields.text()?);
                match key {
                    "platform-left-out" => self.dump.platform_left_out = text.parse().ok()?,
                    "shallow" => self.dump.shallow = Some(text.parse().ok()?),
                    "virtual-left-out" => self.dump.virtual_left_out = text.parse().ok()?,
                    "virtual-untracked" => self.dump.virtual_untracked = true,
                    "no-management" => self.dump.no_management = Some(text),
                    "no-virtual" => self.dump.no_virtual = Some(text),
                    "incomplete" => self.dump.incomplete = Some(text),
                    "stalled" => self.stalled().ms = text.parse().ok()?,
                    "keeps" => {
                        let id = text.parse().ok()?;
                        self.stalled().kept_by.push(id);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Some(())
    }

    fn stalled(&mut self) -> &mut Stalled {
        self.dump.stalled.get_or_insert_default()
    }

    fn frame(&self, number: &str) -> Option<usize> {
        number.parse().ok().filter(|at| *at < self.dump.frames.len())
    }

    fn thread(&self, fields: &mut Fields<'_>) -> Option<DumpedThread> {
        let (id, name, kind) = (fields.number()?, fields.text()?, fields.next()?);
        let (state, flags) = (fields.next()?, fields.next()?);
        let state = State::ALL.into_iter().find(|known| known.name() == state)?;
        let (priority, stack) = (fields.number()?, fields.number()?);
        let carrier = fields.number()?;
        Some(DumpedThread {
            id,
            name,
            is_virtual: kind == "virtual",
            state,
            daemon: flags.contains('d'),
            in_native: flags.contains('n'),
            suspended: flags.contains('s'),
            priority,
            stack: Some(stack).filter(|at| *at < self.dump.stacks.len())?,
            carrier,
            wait: if fields.is_over() { None } else { Some(fields.wait()?) },
            held: Vec::new(),
            os: None,
        })
    }

    /// A monitor is entered in the name of a virtual thread by its carrier: whoever waits for the
    /// one waits for the other.
    fn finish(mut self) -> Option<ThreadDump> {
        let carried: HashMap<u64, u64> = self
            .dump
            .threads
            .iter()
            .filter(|thread| thread.carrier != 0)
            .map(|thread| (thread.carrier, thread.id))
            .collect();
        let virtuals = self.dump.threads.iter().filter(|thread| thread.is_virtual);
        let virtuals: HashSet<u64> = virtuals.map(|thread| thread.id).collect();
        for thread in &mut self.dump.threads {
            let own = self.monitors.get(&thread.id);
            let entered = own.or_else(|| self.monitors.get(&thread.carrier)).copied();
            let Some((lock, owner)) = entered.filter(|_| thread.wait.is_none()) else { continue };
            // A thread that waits for what a virtual one has is told as one that runs.
            if thread.state == State::Blocked
                || thread.state == State::Runnable && virtuals.contains(&owner)
            {
                let (class, token) = (String::new(), String::new());
                thread.state = State::Blocked;
                thread.wait = Some(Wait { how: How::Enter, class, lock, owner, token });
            }
        }
        for thread in &mut self.dump.threads {
            if let Some(wait) = thread.wait.as_mut().filter(|wait| wait.how == How::Enter) {
                wait.owner = carried.get(&wait.owner).copied().unwrap_or(wait.owner);
            }
        }
        Some(self.dump)
    }
}

struct Fields<'a>(std::str::Split<'a, char>);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    fn is_over(&self) -> bool {
        self.0.clone().next().is_none()
    }

    fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        self.next()?.parse().ok()
    }

    fn hex(&mut self) -> Option<u64> {
        u64::from_str_radix(self.next()?, 16).ok()
    }

    fn text(&mut self) -> Option<String> {
        let text = self.next()?;
        let mut out = String::with_capacity(text.len());
        let mut all = text.chars();
        while let Some(c) = all.next() {
            match c {
                '\\' => match all.next()? {
                    't' => out.push('\t'),
                    'n' => out.push('\n'),
                    other => out.push(other),
                },
                c => out.push(c),
            }
        }
        Some(out)
    }

    /// How, the lock's class, its hash, its owner, and what tells this wait from another.
    fn wait(&mut self) -> Option<Wait> {
        let how = self.next()?;
        let how = How::ALL.into_iter().find(|(_, name)| *name == how)?.0;
        let (class, lock, owner) = (self.text()?, self.hex()?, self.number()?);
        Some(Wait { how, class, lock, owner, token: self.text().unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "F\tshop.Bank\tmove\tBank.java\t7\nF\tshop.Bank\tnap\t\t-2\nS\t1 0 +3\n\
        T\t1\ta\\tb\\n\tplatform\tBLOCKED\tdn\t5\t0\t0\tenter\tshop.Account\tff\t9\t3.4\n\
        L\t1\tee\tshop.Other\nL\t-1\tef\tshop.Jni\n\
        T\t9\tcarrier\tplatform\tWAITING\t\t5\t0\t0\tcarry\tjava.lang.VirtualThread\t1\t20\t0.0\n\
        T\t20\tv\tvirtual\tBLOCKED\td\t5\t0\t9\n\
        T\t21\tlate\tplatform\tRUNNABLE\t\t5\t0\t0\n\
        K\t1\t4711\t2500\nM\t9\t7f00\t1\nM\t21\t7f08\t20\nM\t1\t7f10\t0\nX\tnew\nN\tvirtual-left-out\t12";

    #[test]
    fn a_dump_is_read() {
        let dump = ThreadDump::parse(TEXT).unwrap();
        let [one, _, carried, late] = dump.threads.as_slice() else { panic!("{dump:?}") };
        assert_eq!((one.id, one.name.as_str(), one.daemon), (1, "a\tb\n", true));
        assert_eq!((one.in_native, one.suspended), (true, false));
        let held = |depth, lock, class: &str| Held { depth, lock, class: class.into() };
        assert_eq!(one.held, [held(1, 0xee, "shop.Other"), held(-1, 0xef, "shop.Jni")]);
        assert_eq!(one.os, Some(Os { tid: 4711, cpu_ns: 2500 }));
        let names: Vec<_> = dump.frames_of(one).map(|frame| frame.method.as_str()).collect();
        assert_eq!((names, dump.stacks[0].left_out), (vec!["nap", "move"], 3));
        // The carrier has the monitor in the name of its virtual thread, and waits for another.
        let wait = one.wait.as_ref().unwrap();
        assert_eq!((wait.owner, wait.lock, wait.token.as_str()), (20, 0xff, "3.4"));
        let wait = carried.wait.as_ref().unwrap();
        assert_eq!((wait.how, wait.owner, wait.lock), (How::Enter, 1, 0x7f00));
        assert_eq!((late.state, late.wait.as_ref().unwrap().owner), (State::Blocked, 20));
        assert_eq!(dump.virtual_left_out, 12);
    }

    #[test]
    fn a_jvm_that_reaches_no_safepoint_says_so() {
        assert_eq!(ThreadDump::parse(TEXT).unwrap().stalled, None);
        let text = format!("{TEXT}\nN\tkeeps\t9\nN\tkeeps\t21\nN\tstalled\t8000");
        let stalled = ThreadDump::parse(&text).unwrap().stalled.unwrap();
        assert_eq!(stalled, Stalled { ms: 8_000, kept_by: vec![9, 21] });
        let wrong = ThreadDump::parse("N\tkeeps\tnobody");
        assert_eq!(wrong, Err(DumpError { line: 1 }));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        for line in [
            "S\t5",
            "L\t0\t1\tx",
            "T\t1\tx\tplatform\tASLEEP\t\t5\t0\t0",
            "T\t1\tx\tplatform\tBLOCKED\t\t5\t0\t0",
            "F\ta\tb",
            "K\tx",
        ] {
            assert_eq!(ThreadDump::parse(line), Err(DumpError { line: 1 }), "{line}");
            let behind = format!("{TEXT}\nF\tx");
            assert_eq!(ThreadDump::parse(&behind), Err(DumpError { line: 16 }));
        }
        assert_eq!(ThreadDump::parse(""), Ok(ThreadDump::default()));
    }
}
