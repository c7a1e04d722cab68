//! Dumps of a JVM's threads, and deadlocks that are proven.
//!
//! Platform threads are dumped in one moment, virtual ones are not, and a program may break a
//! circle by itself, by an interrupt. So a circle of waiting threads is believed only if it stands in
//! a second look, unchanged: each member in the very same wait, which the JVM numbers. Where a wait
//! has no number (virtual threads that wait for monitors) a third look must show the same stacks.

mod initialisers;

pub use initialisers::Initialisers;

use crate::client::Agent;
use crate::error::{Error, Result};
use initialisers::Stillness;
use std::collections::HashMap;
use std::io::Read;
use std::time::Duration;
use tare_analysis::{Circle, Waiter, Waits, waits};
use tare_protocol::{DumpedThread, How, Request, State, ThreadDump, ThreadsPlan, Wait};

/// Between two looks.
pub const BETWEEN: Duration = Duration::from_millis(200);

/// Circles that come and go are not waited for longer than this; those that stand, up to the second.
const MOST_LOOKS: u32 = 6;
const LONGEST: u32 = MOST_LOOKS + INTERRUPTIBLE;

/// Looks in which a circle must stand: with numbered waits, without, and where a program may break it
/// up by interrupting one that waits. Then it is given two seconds for that.
const NUMBERED: u32 = 2;
const ALIKE: u32 = 3;
const INTERRUPTIBLE: u32 = 11;

/// The threads of a JVM, and who waits for whom. Places in `waits` are those of `dump.threads`.
pub struct Looked {
    pub dump: ThreadDump,
    /// With the circles that are proven.
    pub waits: Waits,
    /// Circles that stood in the last look, and not for long enough to be believed.
    pub unproven: Vec<Circle>,
    /// Static initialisers that seem to wait for each other.
    pub initialisers: Option<Initialisers>,
    pub looks: u32,
}

/// Looks at the threads, once, and again as long as there are circles that are not proven yet.
/// `pause` waits between two looks; no more are wanted if it says false.
pub fn look(
    agent: &mut Agent,
    plan: ThreadsPlan,
    pause: &mut dyn FnMut(Duration) -> bool,
) -> Result<Looked> {
    let mut proofs = Proofs::default();
    let mut stillness = Stillness::default();
    let mut looks = 0;
    loop {
        let dump = ask(agent, plan)?;
        looks += 1;
        if dump.stalled.is_some() {
            // Nothing is known of locks, and to ask again would take as long.
            let (waits, unproven) = (Waits::default(), Vec::new());
            return Ok(Looked { dump, waits, unproven, initialisers: None, looks });
        }
        let mut waits = waits(&waiters(&dump));
        let proven = proofs.take(&dump, &waits);
        let most = if proofs.some_stand() { LONGEST } else { MOST_LOOKS };
        let suspects = stillness.take(&dump);
        let enough = suspects.is_none() || stillness.is_enough();
        let known = enough && proven.iter().all(|proven| *proven);
        if known || looks >= most || !pause(BETWEEN) {
            let all = std::mem::take(&mut waits.deadlocks).into_iter().zip(proven);
            let (good, bad): (Vec<_>, Vec<_>) = all.partition(|(_, proven)| *proven);
            let circles = |all: Vec<(Circle, bool)>| all.into_iter().map(|(circle, _)| circle);
            waits.deadlocks = circles(good).collect();
            let unproven = circles(bad).collect();
            let initialisers = suspects.filter(|_| stillness.is_enough());
            return Ok(Looked { dump, waits, unproven, initialisers, looks });
        }
    }
}

fn ask(agent: &mut Agent, plan: ThreadsPlan) -> Result<ThreadDump> {
    let [file] = agent.tell_for_files(&Request::Threads(plan))?;
    let mut bytes = Vec::new();
    // The length was checked; what is there beyond it is not read.
    let length = file.metadata()?.len();
    file.take(length).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    ThreadDump::parse(&text).map_err(|e| Error::Confused(e.to_string()))
}

/// Whom each thread waits for.
fn waiters(dump: &ThreadDump) -> Vec<Waiter> {
    let places: HashMap<u64, usize> =
        dump.threads.iter().enumerate().map(|(at, thread)| (thread.id, at)).collect();
    let waiter = |thread: &DumpedThread| {
        let wait = thread.wait.as_ref().filter(|wait| waits_for_owner(wait));
        Waiter {
            owner: wait.and_then(|wait| places.get(&wait.owner).copied()),
            timed: thread.state == State::TimedWaiting,
        }
    };
    dump.threads.iter().map(waiter).collect()
}

/// Whether a wait ends when the owner gives back what it has.
pub fn waits_for_owner(wait: &Wait) -> bool {
    matches!(wait.how, How::Enter | How::Park) && wait.owner != 0
}

/// What was seen of circles so far.
#[derive(Default)]
struct Proofs {
    /// By the ids of its members: what each of them did, and in how many looks.
    circles: HashMap<Vec<u64>, (Vec<Member>, u32)>,
}

/// Where locks of the JDK are.
const JUC: &str = "java.util.concurrent.";

/// What a member of a circle does.
#[derive(PartialEq, Eq)]
struct Member {
    wait: Wait,
    state: State,
    stack: Vec<(String, String, i32)>,
}

impl Member {
    fn new(dump: &ThreadDump, thread: &DumpedThread) -> Option<Self> {
        let frames = dump.frames_of(thread);
        let stack = frames.map(|f| (f.class.clone(), f.method.clone(), f.line)).collect();
        Some(Member { wait: thread.wait.clone()?, state: thread.state, stack })
    }

    /// Whether an interrupt ends its wait, as `lockInterruptibly` has it.
    fn is_interruptible(&self) -> bool {
        let mut juc = self.stack.iter().filter(|(class, _, _)| class.starts_with(JUC));
        self.wait.how == How::Park && juc.any(|(_, method, _)| method.ends_with("Interruptibly"))
    }
}

impl Proofs {
    /// Whether there is a circle that stood in the last two looks.
    fn some_stand(&self) -> bool {
        self.circles.values().any(|(_, looks)| *looks > 1)
    }

    /// Takes in another look; which of its circles are proven.
    fn take(&mut self, dump: &ThreadDump, waits: &Waits) -> Vec<bool> {
        let mut before = std::mem::take(&mut self.circles);
        let mut proven = Vec::new();
        for circle in &waits.deadlocks {
            let threads: Vec<_> = circle.members.iter().map(|at| &dump.threads[*at]).collect();
            let members: Vec<_> =
                threads.iter().filter_map(|thread| Member::new(dump, thread)).collect();
            let ids: Vec<u64> = threads.iter().map(|thread| thread.id).collect();
            let looks = match before.remove(&ids) {
                Some((old, looks)) if old == members => looks + 1,
                _ => 1,
            };
            let numbered = members.iter().all(|member| !member.wait.token.is_empty());
            proven.push(
                looks
                    >= match numbered {
                        _ if members.iter().any(Member::is_interruptible) => INTERRUPTIBLE,
                        true => NUMBERED,
                        false => ALIKE,
                    },
            );
            self.circles.insert(ids, (members, looks));
        }
        proven
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads that wait for each other, in waits of these numbers.
    fn dump(one: &str, other: &str) -> ThreadDump {
        let text = format!(
            "F\tBank\tmove\tBank.java\t7\nS\t0\n\
             T\t1\ta\tplatform\tBLOCKED\t\t5\t0\t0\tenter\tAccount\taa\t2\t{one}\n\
             T\t2\tb\tplatform\tBLOCKED\t\t5\t0\t0\tenter\tAccount\tbb\t1\t{other}\n"
        );
        ThreadDump::parse(&text).unwrap()
    }

    fn proven(looks: &[(&str, &str)]) -> bool {
        let mut proofs = Proofs::default();
        let mut last = Vec::new();
        for (one, other) in looks {
            let dump = dump(one, other);
            let waits = waits(&waiters(&dump));
            assert_eq!(waits.deadlocks.len(), 1);
            last = proofs.take(&dump, &waits);
        }
        last == [true]
    }

    #[test]
    fn a_circle_is_believed_when_all_its_waits_are_the_same_ones() {
        assert!(!proven(&[("1.0", "4.2")]));
        assert!(proven(&[("1.0", "4.2"), ("1.0", "4.2")]));
        assert!(!proven(&[("1.0", "4.2"), ("1.0", "5.2")]), "one of them has waited anew");
        assert!(!proven(&[("1.0", ""), ("1.0", "")]), "not all waits have a number");
        assert!(proven(&[("1.0", ""), ("1.0", ""), ("1.0", "")]));
        assert!(!proven(&[("1.0", ""), ("2.0", ""), ("2.0", "")]));
    }

    #[test]
    fn a_circle_that_an_interrupt_breaks_is_given_time_for_it() {
        let text = "F\tjava.util.concurrent.locks.ReentrantLock\tlockInterruptibly\t\t1\nS\t0\nS\t\n\
                    T\t1\ta\tplatform\tWAITING\t\t5\t0\t0\tpark\tA\taa\t2\t1\n\
                    T\t2\tb\tplatform\tWAITING\t\t5\t1\t0\tpark\tA\tbb\t1\t1";
        let dump = ThreadDump::parse(text).unwrap();
        let (mut proofs, waits) = (Proofs::default(), waits(&waiters(&dump)));
        for look in 1..=INTERRUPTIBLE {
            assert_eq!(proofs.take(&dump, &waits), [look == INTERRUPTIBLE]);
            assert_eq!(proofs.some_stand(), look > 1);
        }
    }

    #[test]
    fn a_notification_and_a_limited_time_make_no_circle() {
        for (from, to) in [("\tenter\t", "\twait\t"), ("BLOCKED", "TIMED_WAITING")] {
            let text = "S\t\n\
                        T\t1\ta\tplatform\tBLOCKED\t\t5\t0\t0\tenter\tA\taa\t2\t1\n\
                        T\t2\tb\tplatform\tBLOCKED\t\t5\t0\t0\tenter\tA\tbb\t1\t1";
            let broken = ThreadDump::parse(&text.replacen(from, to, 1)).unwrap();
            assert_eq!(waits(&waiters(&broken)).deadlocks, []);
            let whole = ThreadDump::parse(text).unwrap();
            assert_eq!(waits(&waiters(&whole)).deadlocks.len(), 1);
        }
    }
}
