//! Lines over time: one point a second of what the JVM does as a whole, and of what looking at it
//! costs.

use std::collections::VecDeque;

/// Points that are kept: as many as the widest terminal shows.
const POINTS: usize = 240;

/// What is told as a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gauge {
    Cpu,
    Heap,
    Alloc,
    Gc,
    Blocked,
    Tare,
}

impl Gauge {
    pub const ALL: [Gauge; 6] =
        [Gauge::Cpu, Gauge::Heap, Gauge::Alloc, Gauge::Gc, Gauge::Blocked, Gauge::Tare];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Gauge::Cpu => "cpu",
            Gauge::Heap => "heap",
            Gauge::Alloc => "alloc",
            Gauge::Gc => "gc",
            Gauge::Blocked => "blocked",
            Gauge::Tare => "tare",
        }
    }
}

/// One second. What is not known is `None`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Gauges {
    /// Processors that the JVM used: 3.12 of 8.
    pub cpu: Option<f64>,
    /// Bytes in use, by the last collection and what was allocated since.
    pub heap: Option<f64>,
    /// Bytes a second.
    pub alloc: Option<f64>,
    /// The share of the time in which the program stood still for collections.
    pub gc: Option<f64>,
    /// Threads that waited for a lock that another had, on average.
    pub blocked: Option<f64>,
    /// Processors that Tare used, here and in the JVM.
    pub tare: Option<f64>,
}

impl Gauges {
    #[must_use]
    pub fn get(&self, gauge: Gauge) -> Option<f64> {
        match gauge {
            Gauge::Cpu => self.cpu,
            Gauge::Heap => self.heap,
            Gauge::Alloc => self.alloc,
            Gauge::Gc => self.gc,
            Gauge::Blocked => self.blocked,
            Gauge::Tare => self.tare,
        }
    }
}

/// A second and its gauges, the oldest first.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    points: VecDeque<Point>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Point {
    from: u64,
    to: u64,
    gauges: Gauges,
}

impl History {
    pub(crate) fn push(&mut self, from: u64, to: u64, gauges: Gauges) {
        self.points.push_back(Point { from, to, gauges });
        if self.points.len() > POINTS {
            self.points.pop_front();
        }
    }

    /// A thread was blocked from then to then, which is told when it is over.
    pub(crate) fn blocked(&mut self, from: u64, to: u64) {
        for point in self.points.iter_mut().rev().take_while(|point| point.to > from) {
            let inside = point.to.min(to).saturating_sub(point.from.max(from));
            let share = inside as f64 / (point.to - point.from).max(1) as f64;
            *point.gauges.blocked.get_or_insert(0.0) += share;
        }
    }

    #[must_use]
    pub fn last(&self) -> Gauges {
        self.points.back().map(|point| point.gauges).unwrap_or_default()
    }

    /// The last so many points; those that are not known are gaps.
    pub fn line(&self, gauge: Gauge, points: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        let skip = self.points.len().saturating_sub(points);
        self.points.iter().skip(skip).map(move |point| point.gauges.get(gauge))
    }

    /// The mean of the last so many points that are known.
    #[must_use]
    pub fn mean(&self, gauge: Gauge, points: usize) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0_u32);
        for value in self.line(gauge, points).flatten() {
            sum += value;
            count += 1;
        }
        (count > 0).then(|| sum / f64::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_spread_over_the_seconds_that_it_lasted() {
        let mut history = History::default();
        for second in 0..4 {
            history.push(second * 100, (second + 1) * 100, Gauges::default());
        }
        history.blocked(150, 350);
        history.blocked(390, 400);
        let line: Vec<Option<f64>> = history.line(Gauge::Blocked, 10).collect();
        assert_eq!(line, [None, Some(0.5), Some(1.0), Some(0.6)]);
        assert_eq!(history.mean(Gauge::Blocked, 2), Some(0.8));
        assert_eq!(history.mean(Gauge::Cpu, 2), None);
        assert_eq!(history.line(Gauge::Blocked, 1).count(), 1);
    }

    #[test]
    fn it_does_not_grow_for_ever() {
        let mut history = History::default();
        (0..1000).for_each(|second| history.push(second, second + 1, Gauges::default()));
        assert_eq!(history.line(Gauge::Cpu, 1000).count(), POINTS);
    }
}
