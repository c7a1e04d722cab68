//! How many calls of each hook are timed, and for how much of the time they are counted: as many as
//! fit into what a climb may take of the program's processor time. Samples and the agent's own
//! threads come off first, then what a hook takes that counts nothing, then counting, then timing.

use super::blocks::ALL;
use crate::kernel;

/// What calls take, in picoseconds: one that is not even counted; counting one; timing one, with
/// all that belongs to it; and what of that the agent sees of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    pub pass_ps: u64,
    pub count_ps: u64,
    pub time_ps: u64,
    pub inside_ps: u64,
}

pub struct Budget {
    ppm: u64,
    costs: Costs,
    /// What was spent inside, and on how many calls, at the last look.
    seen: (u64, u64),
    /// What samples and the agent's own threads took until the last look, in nanoseconds.
    beside: u64,
    cpu: u64,
    began: u64,
    /// In all, in nanoseconds.
    spent: u64,
    /// What hooks may take in a second, in nanoseconds. Nobody knows before the first look.
    a_second: Option<u64>,
    /// What timing may take until the next look.
    room: u64,
}

/// What a look brought of one hook: calls that were counted, those that were not, and those that
/// would be until the next look, of which some are to be timed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub calls: u64,
    pub missed: u64,
    pub expected: u64,
}

/// A program that does nothing still allows this part of a processor's time, in ppm.
const IDLE_PPM: u64 = 50_000;

/// Of the budget, what samples and the agent's own threads leave for hooks in any case.
const HOOKS_LEAST: u64 = 4;

/// Of that, what is left for timing in any case.
const LEAST: u64 = 8;

/// The same of counting, where what a hook takes that counts nothing leaves less.
const COUNTING_LEAST: u64 = 4;

impl Budget {
    /// What samples and own threads had taken `beside` before is not part of it.
    pub fn new(ppm: u32, costs: Costs, beside: u64) -> Self {
        let cpu = kernel::clock(libc::CLOCK_PROCESS_CPUTIME_ID);
        let ppm = u64::from(ppm);
        let seen = (0, 0);
        Budget { ppm, costs, seen, beside, cpu, began: cpu, spent: 0, a_second: None, room: 0 }
    }

    /// What all of it took, and the program's processor time meanwhile, in nanoseconds.
    pub fn so_far(&self) -> (u64, u64) {
        (self.spent, self.cpu.saturating_sub(self.began))
    }

    /// Takes what the last time brought (calls of each hook, what was spent inside, and on how many
    /// calls), and what samples and own threads took so far; says what part of the next calls is to
    /// be timed.
    pub fn share(
        &mut self,
        since: u64,
        seen: &[Seen],
        inside: (u64, u64),
        beside: u64,
    ) -> Vec<u64> {
        let now = kernel::clock(libc::CLOCK_PROCESS_CPUTIME_ID);
        let cpu = now.saturating_sub(std::mem::replace(&mut self.cpu, now));
        let before = std::mem::replace(&mut self.seen, inside);
        let (spent, told) = (inside.0 - before.0, inside.1.saturating_sub(before.1));
        let of = |seen: &Seen| {
            let counting = seen.calls.saturating_mul(self.costs.count_ps);
            counting.saturating_add(seen.missed.saturating_mul(self.costs.pass_ps))
        };
        let counting = seen.iter().map(of).sum::<u64>() / 1000;
        let outside = self.costs.time_ps.saturating_sub(self.costs.inside_ps);
        let beside = beside.saturating_sub(std::mem::replace(&mut self.beside, beside));
        self.spent += beside + counting + spent + told.saturating_mul(outside) / 1000;
        if told >= 32 {
            // Stacks of this program may be dearer to walk than those of the rehearsal.
            let inside_ps = spent.saturating_mul(1000) / told;
            let time_ps = (self.costs.time_ps * 3 + inside_ps + outside) / 4;
            self.costs = Costs { time_ps, inside_ps: time_ps - outside.min(time_ps), ..self.costs };
        }
        let allowed = cpu.max(since.saturating_mul(IDLE_PPM) / 1_000_000);
        let whole = allowed.saturating_mul(self.ppm) / 1_000_000;
        let budget = whole.saturating_sub(beside).max(whole / HOOKS_LEAST);
        self.room = budget.saturating_sub(counting).max(budget / LEAST);
        if since > 0 {
            let now = u128::from(budget) * 1_000_000_000 / u128::from(since);
            let now = u64::try_from(now).unwrap_or(u64::MAX >> 2);
            // What a program does changes; a moment of nothing is not the end of it.
            let known = self.a_second.unwrap_or(now);
            self.a_second = Some(known.saturating_mul(3).saturating_add(now) / 4);
        }
        let expected: Vec<u64> = seen.iter().map(|seen| seen.expected).collect();
        parts(&expected, self.room, self.costs.time_ps.max(1))
    }

    /// Whether so many calls that were timed since the last look are far more than there is room for.
    pub fn is_overdrawn(&self, inside: (u64, u64)) -> bool {
        let told = inside.1.saturating_sub(self.seen.1);
        told.saturating_mul(self.costs.time_ps) / 1000 > 2 * self.room
    }

    /// For what part of the time each hook is to count, of 2^32, of hooks with so many calls a
    /// second. Others have so many that are passed by.
    pub fn duties(&self, rates: &[u64], others: u64) -> Vec<u64> {
        let all = rates.iter().fold(others, |all, rate| all.saturating_add(*rate));
        let passing = all.saturating_mul(self.costs.pass_ps) / 1000;
        let least = IDLE_PPM * self.ppm / 1_000;
        let a_second = self.a_second.unwrap_or(least).max(least);
        let room = a_second.saturating_sub(passing).max(a_second / COUNTING_LEAST);
        let more = self.costs.count_ps.saturating_sub(self.costs.pass_ps).max(1);
        parts(rates, room / 4 * 3, more)
    }
}

/// Shares room in nanoseconds among hooks: each gets as much as the others, but no more than it
/// needs.
fn parts(calls: &[u64], room: u64, time_ps: u64) -> Vec<u64> {
    let need = |calls: u64| calls.saturating_mul(time_ps) / 1000;
    let mut by_need: Vec<usize> = (0..calls.len()).collect();
    by_need.sort_by_key(|at| calls[*at]);
    let mut parts = vec![0; calls.len()];
    let (mut left, mut others) = (room, calls.len() as u64);
    for at in by_need {
        let share = left / others;
        let need = need(calls[at]);
        let given = need.min(share);
        parts[at] = match need {
            0 => ALL,
            need => {
                u64::try_from(u128::from(given) * u128::from(ALL) / u128::from(need)).unwrap_or(ALL)
            }
        };
        left -= given;
        others -= 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_calls_are_all_timed_and_frequent_ones_share_the_rest() {
        // A microsecond each, a millisecond in all.
        let shared = parts(&[10, 1_000_000, 0, 1_000_000], 1_000_000, 1_000_000);
        assert_eq!((shared[0], shared[2]), (ALL, ALL));
        let timed = |part: u64| 1_000_000 * part / ALL;
        assert_eq!((timed(shared[1]), timed(shared[3])), (494, 494));
        assert_eq!(parts(&[500], 1_000_000, 1_000_000), [ALL]);
        assert_eq!(parts(&[u64::MAX], 0, 1_000_000), [0]);
        assert_eq!(parts(&[], 1, 1), []);
    }

    #[test]
    fn what_a_climb_took_is_summed_up() {
        let mut budget = Budget::new(20_000, COSTS, 1_000);
        // 1,000 counted at 2 ns; 100 timed, 90 µs inside and 100 ns each outside; 10,000 passed by
        // at 300 ps. Samples and own threads took 4 µs.
        let seen = Seen { calls: 1_000, missed: 10_000, expected: 0 };
        budget.share(100_000_000, &[seen], (90_000, 100), 5_000);
        assert_eq!(budget.so_far().0, 4_000 + 2_000 + 3_000 + 90_000 + 10_000);
        // A thread that has ended takes its time along.
        budget.share(100_000_000, &[], (90_000, 100), 2_000);
        assert_eq!(budget.so_far().0, 109_000);
    }

    #[test]
    fn counting_keeps_to_what_it_may_take() {
        // Of an idle program's twentieth of a processor two percent: a millisecond a second.
        let budget = Budget::new(20_000, COSTS, 0);
        // 36 M calls at 1.7 ns more than nothing are 61 ms. A quarter of a millisecond is left in any
        // case; the other hook needs next to nothing.
        let [rare, frequent] = budget.duties(&[1_000, 36_000_000], 0)[..] else { panic!() };
        assert_eq!(rare, ALL);
        let part = frequent as f64 / ALL as f64;
        assert!((0.002..0.004).contains(&part), "{part}");
        // 100,000 calls need a fifth of it.
        assert_eq!(budget.duties(&[100_000], 0), [ALL]);
    }

    #[test]
    fn the_first_look_tells_what_a_program_allows() {
        let mut budget = Budget::new(500_000, COSTS, 0);
        assert_ne!(budget.duties(&[100_000_000], 0), [ALL]);
        let began = budget.cpu;
        while budget.cpu < began + 20_000_000 {
            budget.cpu = kernel::clock(libc::CLOCK_PROCESS_CPUTIME_ID);
        }
        budget.cpu = began;
        // It has kept a processor busy; half of one is room for 100 M calls a second at 2 ns.
        budget.share(20_000_000, &[], (0, 0), 0);
        assert_eq!(budget.duties(&[100_000_000], 0), [ALL]);
    }

    #[test]
    fn samples_and_own_threads_are_part_of_what_a_climb_may_take() {
        // What the test's own process uses meanwhile must not matter.
        let room = |beside: u64| {
            let mut budget = Budget::new(20_000, COSTS, 0);
            budget.cpu = u64::MAX;
            budget.share(1_000_000_000, &[], (0, 0), beside);
            budget.room
        };
        // Two percent of an idle program's twentieth of a processor: a millisecond.
        assert_eq!(room(0), 1_000_000);
        assert_eq!(room(300_000), 700_000);
        assert_eq!(room(5_000_000), 250_000, "hooks keep a quarter");
    }

    #[test]
    fn a_burst_of_timed_calls_is_noticed() {
        let mut budget = Budget::new(20_000, COSTS, 0);
        budget.share(100_000_000, &[Seen::default()], (0, 0), 0);
        // A millisecond a second is room for a hundred calls in a tenth of one.
        assert!(!budget.is_overdrawn((0, 100)));
        assert!(budget.is_overdrawn((0, 10_000_000)));
    }

    const COSTS: Costs =
        Costs { pass_ps: 300, count_ps: 2_000, time_ps: 1_000_000, inside_ps: 900_000 };
}
