//! What is to be sent to the near end, and the one thread that waits for the wire. Whoever adds to
//! a queue that is full waits until there is room: commands feel that as a pipe that nobody reads,
//! and recordings sum up what they measure meanwhile (`crate::relayed`).
//!
//! The thread beats by itself, so that the near end hears of this one until the last byte is sent,
//! and nothing but beats goes while enough is on its way (`window`).

use super::window::Window;
use crate::host::BEAT;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::spawn;
use std::time::{Duration, Instant};
use tare_relay::FromFar;

/// What waits of a kind before whoever adds more has to wait: a little, since the command's own
/// queue is behind it.
const MOST: usize = 1 << 16;

#[derive(Clone, Copy)]
pub enum Queue {
    /// Printed text, which overtakes files.
    Text,
    /// The file and what belongs to it, in order; and the end, which comes after all else.
    Bulk,
}

#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Few and small.
    urgent: VecDeque<Vec<u8>>,
    /// The last one replaces those before.
    progress: Option<Vec<u8>>,
    text: Waiting,
    bulk: Waiting,
    rate: Option<u64>,
    /// Nothing that has a rate is sent before.
    paused: Option<Instant>,
    window: Window,
    /// Nobody takes anything any more: what is added is thrown away.
    closed: bool,
    /// A frame is on its way.
    sending: bool,
}

#[derive(Default)]
struct Waiting {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Waiting {
    fn pop(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }
}

impl State {
    /// What goes next, if something may.
    fn next(&mut self, now: Instant) -> Option<Vec<u8>> {
        if let Some(urgent) = self.urgent.pop_front() {
            return Some(urgent);
        }
        let waits = self.progress.is_some() || self.text.bytes + self.bulk.bytes > 0;
        if !waits || self.paused.is_some_and(|until| now < until) || !self.window.has_room() {
            return None;
        }
        let next = self.progress.take().or_else(|| self.text.pop()).or_else(|| self.bulk.pop())?;
        // What a link may carry in a second is carried in a second.
        self.paused = self
            .rate
            .map(|rate| now + Duration::from_secs_f64(next.len() as f64 / rate.max(1) as f64));
        Some(next)
    }

    /// How long nothing can be sent unless somebody says something.
    fn until(&self, now: Instant, beat: Instant) -> Duration {
        let paused = self.paused.filter(|until| *until > now).unwrap_or(beat);
        paused.min(beat).saturating_duration_since(now)
    }

    fn is_empty(&self) -> bool {
        let waits = self.text.bytes + self.bulk.bytes;
        self.urgent.is_empty() && self.progress.is_none() && waits == 0
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends from now on, on a thread of its own.
    pub fn send_to(self: &Arc<Self>, mut out: impl Write + Send + 'static) {
        let outbox = Arc::clone(self);
        spawn(move || outbox.send(&mut out));
    }

    fn send(&self, out: &mut impl Write) {
        let mut beat = Instant::now() + BEAT;
        loop {
            let mut state = self.lock();
            let frame = loop {
                state.sending = false;
                if state.closed {
                    return;
                }
                let now = Instant::now();
                if now >= beat {
                    beat = now + BEAT;
                    break FromFar::Beat.to_frame().encode();
                }
                if let Some(frame) = state.next(now) {
                    break frame;
                }
                self.changed.notify_all();
                let patience = state.until(now, beat);
                let waited = self.changed.wait_timeout(state, patience);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            };
            state.sending = true;
            state.window.sent(frame.len(), Instant::now());
            self.changed.notify_all();
            drop(state);
            if out.write_all(&frame).and_then(|()| out.flush()).is_err() {
                return self.close();
            }
        }
    }

    /// So many bytes are at the near end.
    pub fn taken(&self, bytes: u64) {
        self.lock().window.taken(bytes, Instant::now());
        self.changed.notify_all();
    }

    /// The most bytes a second.
    pub fn limit(&self, rate: Option<u64>) {
        self.lock().rate = rate;
    }

    /// Before all that waits.
    pub fn urgent(&self, said: &FromFar) {
        self.lock().urgent.push_back(said.to_frame().encode());
        self.changed.notify_all();
    }

    pub fn progress(&self, text: &str) {
        self.lock().progress = Some(FromFar::Progress(text.to_owned()).to_frame().encode());
        self.changed.notify_all();
    }

    /// Waits for room.
    pub fn add(&self, queue: Queue, said: &FromFar) {
        let frame = said.to_frame().encode();
        let mut state = self.lock();
        loop {
            if state.closed {
                return;
            }
            let waiting = match queue {
                Queue::Text => &mut state.text,
                Queue::Bulk => &mut state.bulk,
            };
            if waiting.bytes < MOST {
                waiting.bytes += frame.len();
                waiting.frames.push_back(frame);
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.changed.notify_all();
    }

    /// After all else, and without waiting: nothing follows.
    pub fn last(&self, said: &FromFar) {
        let frame = said.to_frame().encode();
        let mut state = self.lock();
        if !state.closed {
            state.bulk.bytes += frame.len();
            state.bulk.frames.push_back(frame);
        }
        self.changed.notify_all();
    }

    /// Nobody is at the other end.
    pub fn close(&self) {
        let mut state = self.lock();
        *state = State { closed: true, ..State::default() };
        self.changed.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits until all is sent, as long as something moves.
    pub fn finish(&self, patience: Duration) {
        let mut state = self.lock();
        let left = |state: &State| {
            (state.urgent.len() + state.text.bytes + state.bulk.bytes, state.window.on_its_way())
        };
        let (mut before, mut moved) = (left(&state), Instant::now());
        while !state.closed && (state.sending || !state.is_empty()) {
            let now = left(&state);
            if now != before {
                (before, moved) = (now, Instant::now());
            } else if moved.elapsed() > patience {
                return;
            }
            let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use tare_relay::Decoder;

    /// Takes bytes only while it is let, as a link that stands.
    #[derive(Clone, Default)]
    struct Gate(Arc<Taken>);

    #[derive(Default)]
    struct Taken {
        /// Whether it is open, and what came through.
        state: Mutex<(bool, Vec<u8>)>,
        opened: Condvar,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut state = self.0.state.lock().unwrap();
            while !state.0 {
                state = self.0.opened.wait(state).unwrap();
            }
            state.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Gate {
        fn open() -> Self {
            let gate = Gate::default();
            gate.0.state.lock().unwrap().0 = true;
            gate
        }

        /// What has come through.
        fn said(&self) -> Vec<FromFar> {
            let mut decoder = Decoder::default();
            decoder.push(&self.0.state.lock().unwrap().1);
            let frames = std::iter::from_fn(|| decoder.next_frame().unwrap());
            frames.map(|frame| FromFar::from_frame(frame).unwrap()).collect()
        }
    }

    /// Waits, for as long as a busy machine may need.
    fn wait_until(holds: impl Fn() -> bool) {
        let limit = Instant::now() + Duration::from_secs(240);
        while !holds() {
            assert!(Instant::now() < limit, "it never was");
            sleep(Duration::from_millis(5));
        }
    }

    /// Nothing lies in pipes that the near end has not asked for, and beats pass by what waits.
    #[test]
    fn what_is_not_taken_keeps_the_rest_from_being_sent_but_not_beats() {
        let (outbox, gate) = (Arc::new(Outbox::default()), Gate::open());
        outbox.send_to(gate.clone());
        let filler = {
            let outbox = Arc::clone(&outbox);
            spawn(move || {
                for _ in 0..100 {
                    outbox.add(Queue::Bulk, &FromFar::File(vec![0; 8000]));
                }
            })
        };
        wait_until(|| outbox.lock().bulk.bytes >= MOST);
        outbox.urgent(&FromFar::Beat);
        wait_until(|| gate.said().last() == Some(&FromFar::Beat));
        let files = || gate.said().iter().filter(|said| matches!(said, FromFar::File(_))).count();
        let sent = files();
        assert!(sent < 10, "{sent} frames are on their way");
        assert!(!filler.is_finished());
        // What was taken makes room for as much.
        outbox.taken(gate.0.state.lock().unwrap().1.len() as u64);
        wait_until(|| files() > sent);
        while !filler.is_finished() || !outbox.lock().is_empty() {
            outbox.taken(gate.0.state.lock().unwrap().1.len() as u64);
            sleep(Duration::from_millis(1));
        }
        outbox.finish(Duration::from_secs(240));
        assert_eq!(files(), 100);
    }

    /// While a slow link is given time, and after the last word.
    #[test]
    fn it_beats_until_all_is_sent() {
        let (outbox, gate) = (Arc::new(Outbox::default()), Gate::open());
        outbox.limit(Some(1000));
        outbox.add(Queue::Bulk, &FromFar::File(vec![0; 6000]));
        outbox.last(&FromFar::Exit(0));
        outbox.send_to(gate.clone());
        outbox.finish(Duration::from_secs(240));
        let said = gate.said();
        assert_eq!(said.last(), Some(&FromFar::Exit(0)));
        assert!(said.contains(&FromFar::Beat), "silent for six seconds");
    }

    #[test]
    fn text_overtakes_files_and_the_end_comes_last() {
        let (outbox, gate) = (Arc::new(Outbox::default()), Gate::default());
        outbox.add(Queue::Bulk, &FromFar::File(vec![1]));
        outbox.add(Queue::Text, &FromFar::Out(vec![2]));
        outbox.progress("1 s");
        outbox.progress("2 s");
        outbox.urgent(&FromFar::Beat);
        outbox.last(&FromFar::Exit(0));
        outbox.send_to(gate.clone());
        gate.0.state.lock().unwrap().0 = true;
        gate.0.opened.notify_all();
        outbox.finish(Duration::from_secs(30));
        let said = gate.said();
        let expected = [
            FromFar::Beat,
            FromFar::Progress("2 s".into()),
            FromFar::Out(vec![2]),
            FromFar::File(vec![1]),
            FromFar::Exit(0),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn who_waits_for_room_goes_on_when_the_link_is_given_up() {
        let (outbox, gate) = (Arc::new(Outbox::default()), Gate::default());
        outbox.send_to(gate);
        let filler = {
            let outbox = Arc::clone(&outbox);
            spawn(move || {
                for _ in 0..100 {
                    outbox.add(Queue::Bulk, &FromFar::File(vec![0; 30_000]));
                }
            })
        };
        sleep(Duration::from_millis(50));
        assert!(!filler.is_finished(), "it takes more than there is room for");
        outbox.close();
        filler.join().unwrap();
    }
}
