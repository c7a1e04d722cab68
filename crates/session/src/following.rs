//! How many calls of roots are followed, where probes are held to a budget: decided again and again
//! from what the calls of the roots took, followed and not.
//!
//! Which calls are followed is drawn, so on average they would take as long as the others: what
//! they take longer is what probes cost, in this program, with its trees and caches. This file
//! decides; the agent changes the number, `exact` brings the figures.

use crate::words::several;
use std::collections::HashMap;
use std::time::Duration;

/// One call in so many is followed at first.
pub const FIRST: u32 = 100;
/// Half of the calls, at the most: the others tell what a call takes without probes.
const LEAST: u32 = 2;
const MOST: u32 = 1_000_000;

/// What is left of earlier looks at each look: of what a followed call costs, which needs many calls,
/// and of how many there are, which may change at any moment.
const OF_COST: f64 = 0.8;
const OF_LOAD: f64 = 0.5;

/// Where more was taken than is allowed, no less than this part of it is taken meanwhile.
const REPAYS: f64 = 0.5;

/// Fewer followed calls say nothing of what they cost.
const FEW: f64 = 3.0;
/// The number is changed if it is off by more than this; and if fewer are to be followed at once,
/// else little by little.
const OFF: f64 = 1.25;
const SLOWLY: f64 = 2.0;

/// What the calls of one root came to, up to a look. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    pub all: f64,
    pub time: f64,
    /// Of these, the ones that were followed.
    pub followed: f64,
    pub followed_time: f64,
    /// What following took beside the calls.
    pub beside: f64,
    /// The variance of what a followed call takes.
    pub variance: f64,
}

impl Calls {
    fn since(&self, before: &Calls) -> Calls {
        Calls {
            all: (self.all - before.all).max(0.0),
            time: (self.time - before.time).max(0.0),
            followed: (self.followed - before.followed).max(0.0),
            followed_time: (self.followed_time - before.followed_time).max(0.0),
            beside: (self.beside - before.beside).max(0.0),
            variance: self.variance,
        }
    }
}

/// All that is known at a look.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Of each root, by its id.
    pub roots: HashMap<i32, Calls>,
    /// Processor time of the program so far, without its compilers, if that is known.
    pub processor: Option<Duration>,
    /// What it costs that a call of a root is counted and timed, in nanoseconds.
    pub a_call: f64,
}

/// Sums over looks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    calls: f64,
    followed: f64,
    /// What following took, and the variance of that.
    following: f64,
    variance: f64,
    /// What it took at the least: what is measured beside the calls.
    beside: f64,
    /// What it costs to count and time all calls.
    counting: f64,
    /// What the program took without all that, by whichever clock shows less.
    program: f64,
}

impl Taken {
    fn keep(&mut self, share: f64, more: &Taken) {
        let add = |sum: &mut f64, more: f64| *sum = *sum * share + more;
        add(&mut self.calls, more.calls);
        add(&mut self.followed, more.followed);
        add(&mut self.following, more.following);
        add(&mut self.variance, more.variance);
        add(&mut self.beside, more.beside);
        add(&mut self.counting, more.counting);
        add(&mut self.program, more.program);
    }

    /// Probes, as a share of the program's own time.
    fn share(&self) -> Option<f64> {
        let probes = self.following.max(self.beside) + self.counting;
        (self.program > 0.0).then(|| probes / self.program)
    }

    /// What a followed call costs, with what nobody knows of it: a doubt is no reason to spend more.
    fn price(&self) -> f64 {
        let doubtful = self.following + self.variance.sqrt();
        doubtful.max(self.beside) / self.followed.max(1.0)
    }
}

/// What was decided: from then on one call in so many was followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    pub one_in: u32,
    /// What probes took before that, as a share of the program's own time.
    pub overhead: f64,
}

/// Holds following to a budget.
#[derive(Debug)]
pub struct Following {
    /// Probes may take this share of what the program takes without them.
    budget: f64,
    one_in: u32,
    range: (u32, u32),
    before: Look,
    cost: Taken,
    load: Taken,
    whole: Taken,
}

impl Following {
    pub fn new(budget: f64, one_in: u32) -> Self {
        let (before, taken) = (Look::default(), Taken::default());
        let range = (one_in, one_in);
        Following { budget, one_in, range, before, cost: taken, load: taken, whole: taken }
    }

    pub fn budget(&self) -> f64 {
        self.budget
    }

    pub fn one_in(&self) -> u32 {
        self.one_in
    }

    /// The least and the most that it was.
    pub fn range(&self) -> (u32, u32) {
        self.range
    }

    /// What probes took of the program's own time, on the whole.
    pub fn overhead(&self) -> Option<f64> {
        self.whole.share()
    }

    /// How that is known.
    pub fn source(&self) -> String {
        let others = (self.whole.calls - self.whole.followed).max(0.0) as u64;
        let followed = several(self.whole.followed as u64, "followed call");
        format!("{followed} beside {}", several(others, "other"))
    }

    /// Takes a look into account. What is decided, if that changes anything.
    pub fn look(&mut self, now: Look) -> Option<Decision> {
        let more = taken(&self.before, &now);
        self.before = now;
        self.cost.keep(OF_COST, &more);
        self.load.keep(OF_LOAD, &more);
        self.whole.keep(1.0, &more);
        let wanted = self.wanted()?.clamp(f64::from(LEAST), f64::from(MOST));
        let is = f64::from(self.one_in);
        if wanted < is * OFF && wanted > is / OFF {
            return None;
        }
        let wanted = (wanted.max(is / SLOWLY).ceil() as u32).clamp(LEAST, MOST);
        if wanted == self.one_in {
            return None;
        }
        self.one_in = wanted;
        self.range = (self.range.0.min(wanted), self.range.1.max(wanted));
        Some(Decision { one_in: wanted, overhead: self.load.share().unwrap_or(0.0) })
    }

    /// One in how many would take what is allowed; `None` while that is not known.
    fn wanted(&self) -> Option<f64> {
        let load = &self.load;
        if load.calls < 1.0 || load.program <= 0.0 {
            return None;
        }
        if self.cost.followed < FEW {
            // Roots that are seldom called: one in fewer.
            return Some(f64::from(self.one_in) / SLOWLY);
        }
        // What was too much before, when the load changed, is made up for.
        let whole = self.whole.share().unwrap_or(0.0).max(self.budget);
        let budget = self.budget * (self.budget / whole).max(REPAYS);
        let allowed = load.program * budget - load.counting;
        Some(if allowed > 0.0 { load.calls * self.cost.price() / allowed } else { f64::from(MOST) })
    }
}

/// What happened from one look to another.
fn taken(before: &Look, now: &Look) -> Taken {
    let none = Calls::default();
    let mut taken = Taken::default();
    let mut time = 0.0;
    for (root, calls) in &now.roots {
        let more = calls.since(before.roots.get(root).unwrap_or(&none));
        let others = more.all - more.followed;
        taken.calls += more.all;
        time += more.time;
        // Without calls of both kinds there is nothing to compare.
        if more.followed < 1.0 || others < 1.0 {
            continue;
        }
        let without = (more.time - more.followed_time).max(0.0) / others;
        taken.followed += more.followed;
        taken.following += more.followed_time - more.followed * without + more.beside;
        taken.variance += more.followed * more.variance * (1.0 + more.followed / others);
        taken.beside += more.beside;
    }
    taken.counting = taken.calls * now.a_call;
    let followed = taken.following.max(0.0);
    // Roots that wait take longer than they use a processor; and others use it, too.
    let processor = now.processor.zip(before.processor.or(Some(Duration::ZERO)));
    let processor = processor.map(|(now, before)| now.saturating_sub(before).as_nanos() as f64);
    let least = processor.map_or(time, |processor| processor.min(time));
    taken.program = (least - followed - taken.counting).max(least * 0.05);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: f64 = 1e9;

    /// A program whose root is called so often in a second, for so long; following a call takes so
    /// much more.
    struct Program {
        following: Following,
        calls: Calls,
        processor: f64,
    }

    impl Program {
        fn new(budget: f64) -> Self {
            let following = Following::new(budget, FIRST);
            Program { following, calls: Calls::default(), processor: 0.0 }
        }

        /// A second of it; the number from then on.
        fn second(&mut self, calls: f64, length: f64, more: f64) -> u32 {
            let followed = calls / f64::from(self.following.one_in());
            self.calls.all += calls;
            self.calls.followed += followed;
            self.calls.followed_time += followed * (length + more);
            self.calls.time += calls * length + followed * more;
            self.calls.variance = (length * 0.1).powi(2);
            self.processor += calls * length + followed * more;
            let roots = HashMap::from([(7, self.calls)]);
            let processor = Some(Duration::from_nanos(self.processor as u64));
            self.following.look(Look { roots, processor, a_call: 100.0 });
            self.following.one_in()
        }
    }

    /// Calls of 100 µs, of which a followed one takes ten times as long: one in 180 takes 5 %.
    #[test]
    fn the_number_fits_the_budget() {
        let mut program = Program::new(0.05);
        let last = (0..30).map(|_| program.second(5_000.0, 1e5, 9e5)).last();
        assert!(last.is_some_and(|one_in| (150..260).contains(&one_in)), "{last:?}");
        let overhead = program.following.overhead();
        assert!(overhead.is_some_and(|share| (0.03..0.06).contains(&share)), "{overhead:?}");
        assert!(program.following.source().contains("followed calls beside"));
    }

    #[test]
    fn it_goes_with_the_load() {
        let mut program = Program::new(0.05);
        // The same calls, which cost less, cost more, and cost little again.
        let cheap = (0..30).map(|_| program.second(1_000.0, 1e5, 1e4)).last();
        assert!(cheap < Some(10), "{cheap:?}");
        let dear = (0..30).map(|_| program.second(1_000.0, 1e5, 2e6)).last();
        assert!(dear > Some(300), "{dear:?}");
        let cheap = (0..40).map(|_| program.second(1_000.0, 1e5, 1e4)).last();
        assert!(cheap < Some(10), "{cheap:?}");
        let (least, most) = program.following.range();
        assert!(least < 10 && most > 300, "{least} to {most}");
    }

    /// Roots that are called three times a second are followed more often until that says enough.
    #[test]
    fn seldom_calls_are_followed_often() {
        let mut program = Program::new(0.05);
        let last = (0..40).map(|_| program.second(3.0, SECOND / 10.0, 1e5)).last();
        assert!(last < Some(10), "{last:?}");
    }

    /// Where counting alone takes what is allowed, as little as possible is followed.
    #[test]
    fn short_calls_leave_nothing() {
        let mut program = Program::new(0.05);
        let last = (0..30).map(|_| program.second(1e6, 900.0, 5_000.0)).last();
        assert_eq!(last, Some(MOST));
    }

    #[test]
    fn nothing_is_decided_where_nothing_ran() {
        let mut program = Program::new(0.05);
        assert_eq!(program.second(0.0, 0.0, 0.0), FIRST);
        assert_eq!(program.following.overhead(), None);
    }
}
