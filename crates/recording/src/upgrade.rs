//! What files of earlier versions say in other words.
//!
//! In version 1 there were no facts: all that was known of a run stood among its options, as text
//! for people. What is a fact now is found there by its phrase, here and nowhere else. What cannot
//! be read stays an option.

use std::time::Duration;
use tare_profile::RunInfo;
use tare_profile::facts::{FactType, Facts, Key, Mark, ProbeCost, RowType, SequenceCost, keys};

/// Turns what was read of a run into what the present version would have.
pub fn run_of(version: u16, run: &mut RunInfo) {
    if version < 2 {
        let facts = &mut run.facts;
        run.options.retain(|(name, value)| {
            let taken = take(facts, name, value).is_some();
            !taken || STILL_OPTIONS.contains(&name.as_str())
        });
    }
}

/// These were asked for, too.
const STILL_OPTIONS: [&str; 1] = ["every"];

/// `None` if it is no fact, or cannot be read.
fn take(facts: &mut Facts, name: &str, value: &str) -> Option<()> {
    let facts = &mut Taken(facts);
    match name {
        "engine" => facts.set(keys::ENGINE, Some(value.to_owned())),
        "interval" => facts.set(keys::INTERVAL, time(value)),
        "interval got" => facts.set(keys::INTERVAL_GOT, time(value)),
        "samples" => facts.set(keys::SAMPLES, value.parse().ok()),
        "weight" => facts.set(keys::SAMPLED_TIME, nanos(value)),
        "taken by the sampler" => facts.set(keys::SAMPLER_TIME, nanos(value)),
        "overruns" => facts.set(keys::OVERRUNS, value.parse().ok()),
        "threads seen" => facts.set(keys::THREADS_SAMPLED, value.parse().ok()),
        "samples of idle threads" => {
            facts.set(keys::CLOCK, Some("wall".to_owned()))?;
            facts.set(keys::IDLE_SAMPLES, value.parse().ok())
        }
        "samples without a method that fits" => {
            facts.set(keys::UNMATCHED_SAMPLES, value.parse().ok())
        }
        // The same as the weight, in words.
        "sampled CPU time" => facts.set(keys::CLOCK, Some("cpu".to_owned())),
        "CPU time of the process" => facts.set(keys::PROCESS_CPU_TIME, time(value)),
        "note" => facts.add(keys::NOTES, Some(value.to_owned())),
        "kept" => facts.set(keys::KEPT, time(value)),
        "sampled before" => facts.set(keys::SAMPLED_BEFORE, nanos(value)),
        "called while sampled" => facts.add(keys::MARKS, mark(value)),
        "woven-after" => facts.set(keys::WOVEN_AFTER, nanos(value)),
        "calibration" => facts.set(keys::CALIBRATION, Some(ProbeCost::of_lines(value.split(';')))),
        "sequences" => {
            let table = value.split("; ").filter_map(sequence).collect();
            facts.set(keys::SEQUENCES, Some(table))
        }
        "events" => facts.set(keys::TRACE_EVENTS, value.parse().ok()),
        "waited for room" => facts.set(keys::TRACE_WAITED, time(value)),
        "overhead budget" => facts.set(keys::OVERHEAD_BUDGET, percent(value)),
        "overhead" => facts.set(keys::OVERHEAD, percent(value)),
        "overhead of counting" => facts.set(keys::OVERHEAD_OF_COUNTING, percent(value)),
        "overhead of timing" => facts.set(keys::OVERHEAD_OF_TIMING, percent(value)),
        "overhead told by" => facts.set(keys::OVERHEAD_SOURCE, Some(value.to_owned())),
        "reached" => {
            let [reached, woven, idle] = reached(value)?;
            facts.set(keys::METHODS_REACHED, Some(reached))?;
            facts.set(keys::METHODS_WOVEN, Some(woven))?;
            facts.set(keys::METHODS_RUN, woven.checked_sub(idle))
        }
        "skip-trivial" => facts.set(keys::SKIPS_TRIVIAL, yes(value)),
        "chance-fixed" => facts.set(keys::CHANCE_FIXED, yes(value)),
        "every" => facts.set(keys::BYTECODES_PER_SAMPLE, value.parse().ok()),
        "target" => facts.set(keys::TARGET, Some(value.to_owned())),
        _ => None,
    }
}

/// Facts in the making.
struct Taken<'f>(&'f mut Facts);

impl Taken<'_> {
    fn set<T: FactType>(&mut self, key: Key<T>, value: Option<T>) -> Option<()> {
        self.0.set(key, &value?);
        Some(())
    }

    fn add<R: RowType>(&mut self, key: Key<Vec<R>>, row: Option<R>) -> Option<()> {
        let mut rows = self.0.rows(key);
        rows.push(row?);
        self.0.set(key, &rows);
        Some(())
    }
}

fn nanos(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_nanos)
}

fn yes(text: &str) -> Option<bool> {
    (text == "yes").then_some(true)
}

/// `5.0 %`
fn percent(text: &str) -> Option<f64> {
    text.strip_suffix(" %")?.parse().ok().map(|percent: f64| percent / 100.0)
}

/// `2.34 s`, `3 min 5 s`
fn time(text: &str) -> Option<Duration> {
    let words: Vec<&str> = text.split(' ').collect();
    let mut sum = Duration::ZERO;
    for pair in words.chunks(2) {
        let &[number, unit] = pair else { return None };
        let seconds = match unit {
            "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        sum = sum.checked_add(part)?;
    }
    Some(sum)
}

/// A method, its calls, and how far they scatter: `a.B.c 4000 0.512`
fn mark(text: &str) -> Option<Mark> {
    let mut words = text.split(' ');
    let method = words.next()?.to_owned();
    Some(Mark { method, calls: words.next()?.parse().ok()?, spread: words.next()?.parse().ok()? })
}

/// `calibrated tier 4, entry, tier 4, exit, tier 4: 21500`
fn sequence(line: &str) -> Option<SequenceCost> {
    let (kind, rest) = line.split_once(' ')?;
    let (names, picos) = rest.rsplit_once(": ")?;
    let names: Vec<String> = names.split(", ").map(str::to_owned).collect();
    let calibrated = match kind {
        "calibrated" => true,
        "seen" => false,
        _ => return None,
    };
    Some(SequenceCost { calibrated, sequence: names.try_into().ok()?, picos: picos.parse().ok()? })
}

/// `1,200 methods, 30 woven, 7 of them never ran below a root`
fn reached(text: &str) -> Option<[u64; 3]> {
    let (rest, idle) = text.rsplit_once(", ")?;
    let (reached, woven) = rest.rsplit_once(", ")?;
    let number = |text: &str| -> Option<u64> {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    Some([number(reached)?, number(woven)?, number(idle)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::facts::Cost;

    fn upgraded(options: &[(&str, &str)]) -> RunInfo {
        let options = options.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let mut run = RunInfo { options: options.collect(), ..RunInfo::default() };
        run_of(1, &mut run);
        run
    }

    #[test]
    fn what_was_text_becomes_facts_and_the_rest_stays() {
        let run = upgraded(&[
            ("kind", "exact"),
            ("every", "10000"),
            ("interval", "1.02 ms"),
            ("weight", "2340000000"),
            ("sampled CPU time", "2.34 s"),
            ("CPU time of the process", "3.00 s"),
            ("kept", "3 min 5 s"),
            ("overhead budget", "5.0 %"),
            ("reached", "1,200 methods, 30 woven, 7 of them never ran below a root"),
            ("called while sampled", "a.B.c 4000 0.5"),
            ("called while sampled", "a.B.d 9 1"),
            ("calibration", "counted 1100; clock 5000; narrow 600 9700 9500"),
            ("sequences", "calibrated tier 4, entry, tier 4, exit, tier 4: 8; seen nonsense: 1"),
        ]);
        let options = [("kind", "exact"), ("every", "10000")];
        assert_eq!(run.options, options.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let facts = run.facts;
        assert_eq!(facts.get(keys::BYTECODES_PER_SAMPLE), Some(10_000));
        assert_eq!(facts.get(keys::INTERVAL), Some(Duration::from_micros(1020)));
        assert_eq!(facts.get(keys::SAMPLED_TIME), Some(Duration::from_millis(2340)));
        assert_eq!(facts.get(keys::CLOCK).as_deref(), Some("cpu"));
        assert_eq!(facts.get(keys::PROCESS_CPU_TIME), Some(Duration::from_secs(3)));
        assert_eq!(facts.get(keys::KEPT), Some(Duration::from_secs(185)));
        assert_eq!(facts.get(keys::OVERHEAD_BUDGET), Some(0.05));
        let methods = [keys::METHODS_REACHED, keys::METHODS_WOVEN, keys::METHODS_RUN];
        assert_eq!(methods.map(|key| facts.get(key)), [Some(1200), Some(30), Some(23)]);
        assert_eq!(
            facts.rows(keys::MARKS)[1],
            Mark { method: "a.B.d".into(), calls: 9, spread: 1.0 }
        );
        let costs = facts.rows(keys::CALIBRATION);
        let narrow = Cost::AroundBody { body: 600, inside: 9700, outside: 9500 };
        assert_eq!((costs.len(), costs[2].cost), (3, narrow));
        assert_eq!(facts.rows(keys::SEQUENCES).len(), 1);
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        let odd =
            [("interval", "often"), ("kept", "3 min 5"), ("overhead", "much"), ("reached", "")];
        let run = upgraded(&odd);
        assert_eq!((run.options.len(), run.facts.iter().count()), (4, 0));
    }
}
