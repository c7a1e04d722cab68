//! How much may be on its way to the near end. Pipes, sockets and ssh's own window hold megabytes,
//! which a slow link takes minutes for; whatever follows would be as late, and nobody could tell a
//! slow link from a broken one. So only as much is sent as the near end takes in about two seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes that may be on their way in any case, and at most.
const LEAST: u64 = 16 << 10;
const MOST: u64 = 1 << 20;
/// It may be more if what was sent is taken sooner, and is to be less if it takes longer.
const SOON: Duration = Duration::from_millis(500);
const LATE: Duration = Duration::from_secs(2);
/// Times of sending that are remembered.
const MARKS: usize = 1024;

pub struct Window {
    sent: u64,
    taken: u64,
    limit: u64,
    /// What was sent before says nothing of this limit.
    limited: u64,
    /// Whether something had to wait since then.
    was_full: bool,
    /// How much had been sent when.
    marks: VecDeque<(u64, Instant)>,
}

impl Default for Window {
    fn default() -> Self {
        let (sent, taken, limited) = (0, 0, 0);
        Window { sent, taken, limit: LEAST, limited, was_full: false, marks: VecDeque::new() }
    }
}

impl Window {
    /// Whether there is room for more.
    pub fn has_room(&mut self) -> bool {
        let has_room = self.on_its_way() < self.limit;
        self.was_full |= !has_room;
        has_room
    }

    /// What was sent and not taken.
    pub fn on_its_way(&self) -> u64 {
        self.sent.saturating_sub(self.taken)
    }

    /// This is on its way from now on.
    pub fn sent(&mut self, bytes: usize, now: Instant) {
        self.sent += bytes as u64;
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back((self.sent, now));
    }

    /// The near end has so many bytes in all. One that claims what was not sent has no more.
    pub fn taken(&mut self, bytes: u64, now: Instant) {
        self.taken = bytes.clamp(self.taken, self.sent.max(self.taken));
        let mut last = None;
        while let Some((sent, since)) = self.marks.front().copied() {
            if sent > self.taken {
                break;
            }
            last = Some(since).filter(|_| sent > self.limited);
            self.marks.pop_front();
        }
        let Some(delay) = last.map(|since| now.saturating_duration_since(since)) else { return };
        let limit = match () {
            () if delay > LATE => (self.limit / 2).max(LEAST),
            () if delay < SOON && self.was_full => (self.limit * 2).min(MOST),
            () => return,
        };
        (self.limit, self.limited, self.was_full) = (limit, self.sent, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends as much as there is room for over a link of this many bytes a second, for a while; the
    /// most that was on its way in the second half.
    fn on_its_way(rate: u64, seconds: u64) -> u64 {
        let (mut window, start) = (Window::default(), Instant::now());
        let (mut most, mut carried) = (0, 0);
        for turn in 0..seconds * 20 {
            let now = start + Duration::from_millis(50 * turn);
            while window.has_room() {
                window.sent(8 << 10, now);
            }
            if turn > seconds * 10 {
                most = most.max(window.on_its_way());
            }
            carried = (carried + rate / 20).min(window.sent);
            window.taken(carried, now);
        }
        most
    }

    #[test]
    fn what_is_on_its_way_is_taken_within_seconds_however_slow_the_link_is() {
        for rate in [1 << 10, 8 << 10, 125_000, 1 << 20] {
            let most = on_its_way(rate, 120);
            // Two looks at it may pass before it is less.
            assert!(most <= (4 * rate).max(LEAST + (8 << 10)), "{most} bytes at {rate} a second");
            assert!(most >= rate.min(MOST) / 4, "{most} bytes at {rate} a second: it would stand");
        }
        let most = on_its_way(100 << 20, 20);
        assert!((MOST..MOST + (16 << 10)).contains(&most), "{most} bytes on a fast link");
    }

    #[test]
    fn an_end_that_lies_about_what_it_has_gets_no_more_than_that() {
        let (mut window, now) = (Window::default(), Instant::now());
        window.sent(100, now);
        window.taken(u64::MAX, now);
        assert_eq!(window.taken, 100);
        window.taken(5, now);
        assert_eq!(window.taken, 100, "nothing is given back");
        window.sent(1 << 20, now);
        assert!(!window.has_room());
    }
}
