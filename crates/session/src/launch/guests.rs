//! Waiting for the JVMs that reported: for as long as their recordings take, but not for those that
//! outlive their command.

use crate::completion::Completion;
use crate::observer::Note;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// When it is first said that the recording of a program that has ended is not complete yet, and
/// how often then.
const SAY_AFTER: Duration = Duration::from_secs(2);
const SAY_EVERY: Duration = Duration::from_secs(10);

/// How long a JVM that has not ended is waited for after its command has.
const GRACE: Duration = Duration::from_millis(500);

/// The JVMs that reported, and how many of them are still attended to.
#[derive(Clone, Default)]
pub(super) struct Guests(Arc<Mutex<Book>>);

#[derive(Default)]
pub(super) struct Book {
    pub(super) seen: usize,
    /// The pids of those that are still attended to.
    present: Vec<u32>,
    /// Set when the command has ended and those that go on are to be left.
    pub(super) leave: Arc<AtomicBool>,
}

/// What is around somebody who waits.
pub(super) trait Around {
    /// Since the command has ended.
    fn elapsed(&self) -> Duration;
    fn pause(&mut self);
    fn has_ended(&self, pid: u32) -> bool;
    fn say(&mut self, text: &str);
    fn warn(&mut self, text: &str);
    /// How far the recordings are.
    fn headway(&self) -> String;
}

/// The true surroundings.
pub(super) struct Here<'a> {
    notes: &'a dyn Fn(Note),
    since: Instant,
    then: Completion,
}

impl<'a> Here<'a> {
    pub(super) fn new(notes: &'a dyn Fn(Note)) -> Self {
        Here { notes, since: Instant::now(), then: Completion::now() }
    }
}

impl Around for Here<'_> {
    fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    fn pause(&mut self) {
        thread::sleep(Duration::from_millis(10));
    }

    fn has_ended(&self, pid: u32) -> bool {
        tare_attach::inspect(pid).is_err()
    }

    fn say(&mut self, text: &str) {
        (self.notes)(Note::Aside(text.to_owned()));
    }

    fn warn(&mut self, text: &str) {
        (self.notes)(Note::Warning(text.to_owned()));
    }

    fn headway(&self) -> String {
        Completion::now().since(self.then)
    }
}

impl Guests {
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn come(&self, pid: u32) {
        let mut book = self.book();
        book.seen += 1;
        book.present.push(pid);
    }

    pub(super) fn go(&self, pid: u32) {
        self.book().present.retain(|present| *present != pid);
    }

    /// Waits for the attendants, for as long as they take: until then the recordings are not
    /// complete. A JVM that outlives the command (a build daemon) is left after a moment, which
    /// ends its recording. False if `enough`, a signal that comes meanwhile, ended it before.
    pub(super) fn settle(&self, enough: &AtomicBool, around: &mut impl Around) -> bool {
        let mut say_at = SAY_AFTER;
        loop {
            let (present, leave) = {
                let book = self.book();
                (book.present.clone(), Arc::clone(&book.leave))
            };
            let Some(&first) = present.first() else { return true };
            let ended = present.iter().find(|pid| around.has_ended(**pid)).copied();
            if enough.load(Relaxed) {
                around.warn(&format!(
                    "stopped before the recording of JVM {} was complete",
                    ended.unwrap_or(first)
                ));
                return false;
            }
            let passed = around.elapsed();
            let lives = present.iter().find(|pid| !around.has_ended(**pid));
            if let Some(pid) = lives.filter(|_| passed > GRACE)
                && !leave.swap(true, Relaxed)
            {
                around.say(&format!(
                    "JVM {pid} outlives the command that started it; Tare leaves it running"
                ));
            }
            if passed > say_at {
                around.say(&format!(
                    "the program has ended; completing the recording of JVM {} ({} s): {} …",
                    ended.unwrap_or(first),
                    passed.as_secs(),
                    around.headway(),
                ));
                say_at = passed + SAY_EVERY;
            }
            around.pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pause is ten seconds long. What happens at which of them is told.
    struct Fake<'a> {
        pauses: u64,
        ended: bool,
        at: &'a dyn Fn(u64),
        said: Vec<String>,
    }

    impl<'a> Fake<'a> {
        fn new(ended: bool, at: &'a dyn Fn(u64)) -> Self {
            Fake { pauses: 0, ended, at, said: Vec::new() }
        }
    }

    impl Around for Fake<'_> {
        fn elapsed(&self) -> Duration {
            Duration::from_secs(10 * self.pauses)
        }

        fn pause(&mut self) {
            self.pauses += 1;
            assert!(self.pauses < 10_000, "waits for ever");
            (self.at)(self.pauses);
        }

        fn has_ended(&self, _: u32) -> bool {
            self.ended
        }

        fn say(&mut self, text: &str) {
            self.said.push(text.to_owned());
        }

        fn warn(&mut self, text: &str) {
            self.say(text);
        }

        fn headway(&self) -> String {
            format!("{} MiB written", self.pauses)
        }
    }

    #[test]
    fn a_recording_of_a_jvm_that_has_ended_is_waited_for() {
        let guests = Guests::default();
        guests.come(7);
        let at = |pause| {
            if pause == 360 {
                guests.go(7);
            }
        };
        let mut around = Fake::new(true, &at);
        assert!(guests.settle(&AtomicBool::new(false), &mut around));
        assert_eq!(around.pauses, 360, "an hour is what it takes");
        let Fake { said, .. } = around;
        assert!(
            said.len() > 100 && said.iter().all(|line| line.contains("MiB written")),
            "{said:?}"
        );
        assert_ne!(said[10], said[11], "it says how far it is");
        assert!(!guests.book().leave.load(Relaxed), "it has ended by itself");
    }

    #[test]
    fn a_signal_ends_the_waiting_and_what_is_not_complete_is_told() {
        let guests = Guests::default();
        guests.come(7);
        let enough = AtomicBool::new(false);
        for ended in [true, false] {
            enough.store(false, Relaxed);
            let at = |pause| enough.store(pause == 5, Relaxed);
            let mut around = Fake::new(ended, &at);
            assert!(!guests.settle(&enough, &mut around));
            let last = around.said.last().map_or("", String::as_str);
            assert_eq!(last, "stopped before the recording of JVM 7 was complete");
        }
    }

    #[test]
    fn a_jvm_that_outlives_its_command_is_left_and_its_recording_completed() {
        let guests = Guests::default();
        guests.come(7);
        // Whoever attends to it sees that it is to be left, and takes two minutes to complete.
        let seen = AtomicBool::new(false);
        let at = |pause| {
            seen.fetch_or(guests.book().leave.load(Relaxed), Relaxed);
            if pause == 12 {
                guests.go(7);
            }
        };
        let mut around = Fake::new(false, &at);
        assert!(guests.settle(&AtomicBool::new(false), &mut around));
        assert!(seen.load(Relaxed), "nobody was told to leave");
        assert_eq!(around.pauses, 12);
    }
}
