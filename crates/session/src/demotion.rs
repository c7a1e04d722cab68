//! Which methods of a timed recording are better only counted: those that are so short and so often
//! called that timing them says more about the probes than about them. Decided again and again from
//! what a window of some seconds brought, so that the probes' share stays near a budget.
//!
//! What probes cost is told by samples of the same window, or by the calibration where there are none. This
//! file decides; the agent weaves anew and samples, `exact` brings the figures.

use crate::stream::Taken;
use crate::words::several;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// The first window begins with the recording. Weaving anew holds the JVM up, so it is done seldom, and the
/// more seldom the longer it goes on.
const FIRST: Duration = Duration::from_millis(1_400);
const PAUSE: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_millis(900);
const SLOWER: u32 = 2;
const POLITE: u32 = 10;
const SLOWEST: Duration = Duration::from_secs(60);

/// Each change makes the JVM compile anew, so it is to last: where times take more than they may, so much is no
/// longer timed that they take this share of it,
const AIM: f64 = 0.1;
/// and methods are timed again only if times take less than this.
const LOW: f64 = 0.05;
/// Once something was changed, times must take so much more than they may before more is.
const AGAIN: f64 = 1.5;

/// Methods that take less than this share of the program's own time, all of them together, are not worth a change.
const WORTH_IT: f64 = 0.01;

/// A method that takes so many nanoseconds is always timed.
const LONGEST: f64 = 50_000.0;

/// Fewer samples than this tell nothing, and fewer of probes not what a call costs.
const ENOUGH: usize = 100;
const ENOUGH_OF_PROBES: f64 = 30.0;

/// What one call costs in probes, in nanoseconds, by the calibration.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub timed: f64,
    pub counted: f64,
}

/// What a method did in all, up to a look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    pub timed: f64,
    pub counted: f64,
    /// Its own time, as measured, in nanoseconds.
    pub own: f64,
    /// The calls whose probes are in that time: those that it made, also through methods that have no time.
    pub made_timed: f64,
    pub made_counted: f64,
}

impl Load {
    /// More of the same method.
    pub fn add(&mut self, more: &Load) {
        self.timed += more.timed;
        self.counted += more.counted;
        self.own += more.own;
        self.made_timed += more.made_timed;
        self.made_counted += more.made_counted;
    }

    /// What was pruned meanwhile may be less than before.
    fn since(&self, before: &Load) -> Load {
        Load {
            timed: (self.timed - before.timed).max(0.0),
            counted: (self.counted - before.counted).max(0.0),
            own: (self.own - before.own).max(0.0),
            made_timed: (self.made_timed - before.made_timed).max(0.0),
            made_counted: (self.made_counted - before.made_counted).max(0.0),
        }
    }

    fn calls(&self) -> f64 {
        self.timed + self.counted
    }
}

/// What probes took in a window, by samples or by the calibration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// As shares of the program's own time: of finding contexts and counting, and of timing.
    pub counting: f64,
    pub timing: f64,
    /// How many samples tell it; none, if the calibration does.
    pub samples: usize,
}

impl Overhead {
    pub fn all(&self) -> f64 {
        self.counting + self.timing
    }
}

/// Holds the probes to a budget.
pub struct Steering {
    /// Probes may take this share of what the program takes without them.
    budget: f64,
    /// What methods had done when the window began, by id; `None` outside of windows.
    window: Option<HashMap<u32, Load>>,
    /// When the next window may begin, or the one under way end.
    next: Instant,
    pause: Duration,
    /// Of the last look, on the processor.
    cost: Duration,
    demoted: HashSet<u32>,
    ever: HashSet<u32>,
    /// How often each method is called, see [`Steering::note_how_often`].
    often: HashMap<u32, f64>,
    /// What timing adds to a call, as well as it is known so far.
    timing: Option<f64>,
    overhead: Option<Overhead>,
    /// Why there are no samples, if that was ever so.
    pub unsampled: Option<String>,
}

impl Steering {
    pub fn new(budget: f64) -> Self {
        Steering {
            budget,
            window: Some(HashMap::new()),
            next: Instant::now() + FIRST,
            pause: PAUSE,
            cost: Duration::ZERO,
            demoted: HashSet::new(),
            ever: HashSet::new(),
            often: HashMap::new(),
            timing: None,
            overhead: None,
            unsampled: None,
        }
    }

    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// What probes took in the last window.
    pub fn overhead(&self) -> Option<Overhead> {
        self.overhead
    }

    /// What tells it.
    pub fn source(&self) -> String {
        match (self.overhead.map_or(0, |overhead| overhead.samples), &self.unsampled) {
            (0, Some(reason)) => format!("the calibration, since there are no samples: {reason}"),
            (0, None) => "the calibration, since there were too few samples".to_owned(),
            (samples, _) => several(samples, "sample"),
        }
    }

    /// Methods that were not timed for a while, and those that are not timed now.
    pub fn ever_demoted(&self) -> impl Iterator<Item = (u32, bool)> + '_ {
        self.ever.iter().map(|id| (*id, self.demoted.contains(id)))
    }

    /// Whether a window is to begin or to end at this look.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// What a look has cost: the next one is to be so far away that they take a tenth of a processor at most.
    pub fn paid(&mut self, cost: Duration) {
        self.cost = cost;
    }

    /// Whether samples are to be taken until the next look.
    pub fn in_window(&self) -> bool {
        self.window.is_some()
    }

    /// A window begins; `loads` is what methods have done so far.
    pub fn begin(&mut self, loads: HashMap<u32, Load>) {
        self.window = Some(loads);
        self.next = Instant::now() + WINDOW.max(self.pause);
    }

    /// The window ends. `taken` is what samples told, if there were any. The ids of all methods that are not to be
    /// timed from now on, if that is to change.
    pub fn end(
        &mut self,
        loads: &HashMap<u32, Load>,
        taken: Option<Taken>,
        calibrated: Option<Costs>,
    ) -> Option<Vec<u32>> {
        let before = self.window.take()?;
        let since: Vec<(u32, Load)> = loads
            .iter()
            .map(|(id, now)| (*id, now.since(&before.get(id).copied().unwrap_or_default())))
            .collect();
        self.next = Instant::now() + self.pause;
        let taken = taken.filter(|taken| taken.samples >= ENOUGH && taken.program > 0.0);
        let prices = match (taken, calibrated) {
            (Some(taken), _) => self.measured(&since, &taken, calibrated),
            // Who knows better from an earlier window waits for the next.
            (None, Some(costs)) if self.timing.is_none() => Prices::calibrated(&since, costs)?,
            _ => return None,
        };
        let calls: f64 = since.iter().map(|(_, load)| load.calls()).sum();
        let timed: f64 = since.iter().map(|(_, load)| load.timed).sum();
        self.overhead = Some(match taken {
            Some(Taken { program, counting, timing, samples, .. }) => {
                Overhead { counting: counting / program, timing: timing / program, samples }
            }
            None => Overhead {
                counting: calls * prices.counting / prices.program,
                timing: timed * prices.timing / prices.program,
                samples: 0,
            },
        });
        self.note_how_often(&since, prices.program);
        let wanted = choose(&since, &self.demoted, &self.often, prices, self.budget);
        let changed = wanted != self.demoted;
        if changed {
            self.ever.extend(&wanted);
            self.demoted = wanted;
        }
        // A program that did nothing may begin at any moment.
        if changed || taken.is_some() {
            self.pause = (self.pause * SLOWER).min(SLOWEST);
        }
        self.next = Instant::now() + self.pause.max(self.cost * POLITE);
        changed.then(|| self.demoted.iter().copied().collect())
    }

    /// What calls cost by samples. Where hardly any is timed any more, few samples are of timing: then no more is
    /// believed than they allow for, and no more than was measured before.
    fn measured(
        &mut self,
        loads: &[(u32, Load)],
        taken: &Taken,
        calibrated: Option<Costs>,
    ) -> Prices {
        let calls: f64 = loads.iter().map(|(_, load)| load.calls()).sum();
        let timed: f64 = loads.iter().map(|(_, load)| load.timed).sum();
        let of_timing = taken.of_timing as f64;
        let timing = if of_timing >= ENOUGH_OF_PROBES {
            taken.timing / timed.max(1.0)
        } else {
            let all = taken.program + taken.counting + taken.timing;
            let most = (of_timing + 2.0 * of_timing.sqrt() + 3.0) * all / taken.samples as f64;
            let most = most / timed.max(1.0);
            let least = calibrated.map_or(0.0, |costs| costs.timed - costs.counted);
            self.timing.map_or(most, |before| before.min(most)).max(least)
        };
        self.timing = Some(timing);
        Prices { program: taken.program, counting: taken.counting / calls.max(1.0), timing }
    }

    /// Keeps, for each method, its calls in a nanosecond of the program's own time. What is not called in one window may
    /// be in the next: programs have phases, and what is forgotten at once would be timed and not timed in turns.
    fn note_how_often(&mut self, loads: &[(u32, Load)], program: f64) {
        self.often.values_mut().for_each(|often| *often /= 2.0);
        for (id, load) in loads {
            let now = load.calls() / program;
            self.often.entry(*id).and_modify(|often| *often = often.max(now)).or_insert(now);
        }
    }
}

/// What things cost in a window, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Prices {
    /// All that the program did, without probes.
    program: f64,
    /// To find the context of a call and count it, and what timing adds to that.
    counting: f64,
    timing: f64,
}

impl Prices {
    /// `None` if nothing ran.
    fn calibrated(loads: &[(u32, Load)], costs: Costs) -> Option<Prices> {
        let measured: f64 = loads.iter().map(|(_, load)| load.own).sum();
        let paid: f64 =
            loads.iter().map(|(_, l)| l.timed * costs.timed + l.counted * costs.counted).sum();
        // Where probes overlap with work they cost less than they do alone; some work there was.
        let program = (measured - paid).max(measured * 0.05);
        let timing = (costs.timed - costs.counted).max(0.0);
        (program > 0.0).then_some(Prices { program, counting: costs.counted, timing })
    }

    /// What a call of a method takes without probes. A clock is read half inside of a call and half outside; the context is
    /// found outside, by the caller's clock.
    fn body(&self, load: &Load) -> f64 {
        let inside = self.timing / 2.0;
        let outside = self.counting + inside;
        let probes =
            load.timed * inside + load.made_timed * outside + load.made_counted * self.counting;
        (load.own - probes) / load.timed.max(1.0)
    }
}

/// What timing may take when counting takes so much, as shares of the program's own time: what counting leaves of the
/// budget. Counting may well take more than all of it; then timing may add as much as the budget.
fn allowed(budget: f64, counting: f64) -> f64 {
    (budget - counting).max(counting.min(budget))
}

/// The methods that are to be counted only.
fn choose(
    loads: &[(u32, Load)],
    demoted: &HashSet<u32>,
    often: &HashMap<u32, f64>,
    prices: Prices,
    budget: f64,
) -> HashSet<u32> {
    let mut wanted = demoted.clone();
    let calls: f64 = loads.iter().map(|(_, load)| load.calls()).sum();
    let allowed = allowed(budget, calls * prices.counting / prices.program) * prices.program;
    let mut timing: f64 = loads.iter().map(|(_, load)| load.timed * prices.timing).sum();
    if timing > if demoted.is_empty() { allowed } else { allowed * AGAIN } {
        // A method that takes longer than this pays for its own times within the budget. How long methods are is
        // measured with all that probes make longer, so it may take a longer one until enough are found.
        let mut short = prices.timing / budget;
        while timing > allowed * AIM && short < LONGEST {
            let mut candidates: Vec<&(u32, Load)> = loads
                .iter()
                .filter(|(id, load)| !wanted.contains(id) && prices.body(load) < short)
                .collect();
            candidates.sort_by(|a, b| b.1.timed.total_cmp(&a.1.timed));
            let mut left: f64 = candidates.iter().map(|(_, load)| load.timed * prices.timing).sum();
            for (id, load) in candidates {
                if timing <= allowed * AIM || left <= prices.program * WORTH_IT {
                    break;
                }
                wanted.insert(*id);
                timing -= load.timed * prices.timing;
                left -= load.timed * prices.timing;
            }
            short *= 2.0;
        }
    } else if timing < allowed * LOW {
        let price =
            |id: &u32| often.get(id).copied().unwrap_or(0.0) * prices.program * prices.timing;
        let mut back: Vec<(f64, u32)> = demoted.iter().map(|id| (price(id), *id)).collect();
        back.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (price, id) in back {
            timing += price;
            if timing > allowed * AIM {
                break;
            }
            wanted.remove(&id);
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: f64 = 1e9;

    fn prices(program: f64) -> Prices {
        Prices { program, counting: 2.0, timing: 20.0 }
    }

    /// Calls of a method, each with so many nanoseconds of its own, as a timed session measures it.
    fn timed(id: u32, calls: f64, body: f64) -> (u32, Load) {
        (id, Load { timed: calls, own: calls * (body + 10.0), ..Load::default() })
    }

    fn chosen(loads: &[(u32, Load)], demoted: &[u32], program: f64, budget: f64) -> Vec<u32> {
        let demoted = demoted.iter().copied().collect();
        let often = loads.iter().map(|(id, load)| (*id, load.calls() / program)).collect();
        let mut chosen: Vec<u32> =
            choose(loads, &demoted, &often, prices(program), budget).into_iter().collect();
        chosen.sort_unstable();
        chosen
    }

    #[test]
    fn what_is_called_most_goes_first_and_no_more_than_need_be() {
        let loads = [timed(1, 1e7, 5.0), timed(2, 5e5, 5.0), timed(3, 1e4, 20_000.0)];
        assert_eq!(chosen(&loads, &[], SECOND, 0.2), [1]);
        assert_eq!(chosen(&loads, &[], SECOND, 0.06), [1, 2]);
        assert!(chosen(&loads, &[], SECOND, 1.0).is_empty());
    }

    #[test]
    fn what_costs_next_to_nothing_stays_timed() {
        let loads = [timed(1, 1e7, 5.0), timed(2, 100.0, 5.0)];
        assert_eq!(chosen(&loads, &[], SECOND, 0.001), [1]);
    }

    #[test]
    fn longer_methods_go_last_and_the_longest_never() {
        let loads = [timed(1, 1e7, 400.0), timed(2, 5e6, 5.0), timed(3, 6e6, 60_000.0)];
        assert_eq!(chosen(&loads, &[], SECOND, 0.25), [1, 2]);
        // It is called more often than each of the others, and stays.
        let mut loads = vec![timed(1, 6e5, 400.0)];
        loads.extend((2..=15).map(|id| timed(id, 5.5e5, 5.0)));
        assert_eq!(chosen(&loads, &[], SECOND, 0.15), (2..=15).collect::<Vec<u32>>());
        assert!(chosen(&[timed(3, 6e6, 60_000.0)], &[], SECOND, 0.05).is_empty());
    }

    /// A method that calls others has their probes in its time, and looks long.
    #[test]
    fn probes_of_callees_are_no_part_of_a_body() {
        let (_, mut load) = timed(1, 100.0, 50.0);
        assert!((prices(SECOND).body(&load) - 50.0).abs() < 1e-9);
        (load.made_timed, load.made_counted) = (300.0, 500.0);
        load.own += 300.0 * 12.0 + 500.0 * 2.0;
        assert!((prices(SECOND).body(&load) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn what_has_become_rare_is_timed_again() {
        let rare = Load { counted: 100.0, ..Load::default() };
        let often = Load { counted: 1e7, ..Load::default() };
        let loads = [(1, rare), (2, often), timed(3, 1e4, 20_000.0)];
        assert_eq!(chosen(&loads, &[1, 2], SECOND, 0.2), [2]);
    }

    #[test]
    fn timing_may_take_what_counting_leaves_and_never_nothing() {
        for (counting, expected) in [(0.0, 0.2), (0.05, 0.15), (0.1, 0.1), (0.15, 0.15), (3.0, 0.2)]
        {
            let found = allowed(0.2, counting);
            assert!((found - expected).abs() < 1e-9, "{counting}: {found}");
        }
    }

    /// A window of the steering at once.
    fn window(
        steering: &mut Steering,
        loads: &[(u32, Load)],
        taken: Option<Taken>,
    ) -> Option<Vec<u32>> {
        let before = HashMap::new();
        steering.begin(before);
        let calibrated = Some(Costs { timed: 22.0, counted: 2.0 });
        steering.end(&loads.iter().copied().collect(), taken, calibrated)
    }

    fn taken(program: f64, counting: f64, timing: f64) -> Option<Taken> {
        let samples = |nanos: f64| (nanos / 1e6) as usize;
        let of_timing = samples(timing);
        let samples = samples(program + counting + timing);
        Some(Taken { program, counting, timing, samples, of_timing })
    }

    /// By the calibration times take 2 %; samples say that they take as long as the program.
    #[test]
    fn samples_are_believed_and_not_the_calibration() {
        let loads = [timed(1, 1e6, 980.0)];
        let mut steering = Steering::new(0.2);
        assert_eq!(window(&mut steering, &loads, None), None);
        assert!(steering.overhead().unwrap().all() < 0.03);
        assert!(steering.source().contains("calibration"), "{}", steering.source());
        let found = window(&mut steering, &loads, taken(0.4e9, 0.2e9, 0.4e9));
        assert_eq!(found, Some(vec![1]));
        let overhead = steering.overhead().unwrap();
        assert_eq!((overhead.counting, overhead.timing), (0.5, 1.0));
        assert_eq!(steering.source(), "1,000 samples");
    }

    /// What was measured is not given up for a calibration, nor for a handful of samples.
    #[test]
    fn a_window_without_samples_changes_nothing() {
        let loads = [timed(1, 1e6, 980.0)];
        let mut steering = Steering::new(0.2);
        window(&mut steering, &loads, taken(0.4e9, 0.2e9, 0.4e9));
        let counted = [(1, Load { counted: 1.0, ..Load::default() })];
        assert_eq!(window(&mut steering, &counted, None), None);
        assert_eq!(window(&mut steering, &counted, taken(0.01e9, 0.0, 0.0)), None);
        assert_eq!(steering.ever_demoted().collect::<Vec<_>>(), [(1, true)]);
        assert_eq!(steering.overhead().unwrap().samples, 1000);
    }

    /// Methods are not timed again for a phase in which they are not called.
    #[test]
    fn a_phase_is_not_forgotten_at_once() {
        let loads = [timed(1, 1e7, 5.0)];
        let mut steering = Steering::new(0.2);
        assert!(window(&mut steering, &loads, taken(0.4e9, 0.2e9, 0.4e9)).is_some());
        let other = [timed(2, 1e3, 400_000.0)];
        let mut windows = 0;
        while window(&mut steering, &other, taken(0.4e9, 0.0, 0.0)).is_none() {
            windows += 1;
        }
        assert!((2..20).contains(&windows), "{windows}");
        assert_eq!(steering.ever_demoted().collect::<Vec<_>>(), [(1, false)]);
    }

    #[test]
    fn nothing_is_decided_where_nothing_ran() {
        let mut steering = Steering::new(0.2);
        assert_eq!(window(&mut steering, &[], None), None);
        assert!(steering.overhead().is_none());
    }
}
