//! From launches to figures: each a ratio against the plain launches of the same run.

use super::config::Config;
use super::launch::Launch;
use super::stats::{self, Ratio, median, ratio};
use serde_json::{Value, json};

/// All launches of one workload on one JDK in one configuration.
pub struct Row {
    pub workload: &'static str,
    pub jdk: u32,
    pub config: Config,
    pub launches: Vec<Launch>,
}

/// What a reader wants to know of a row.
pub struct Figures {
    /// Time of an iteration in the steady state.
    pub steady: Option<Ratio>,
    /// The same on a processor, of the thread that does the work.
    pub cpu: Option<Ratio>,
    /// How far the launches lie apart.
    pub spread: Option<f64>,
    /// From the start of the process to `main`.
    pub startup: Option<Ratio>,
    /// From the start of the process to the end of the first iteration.
    pub first: Option<Ratio>,
    pub memory: Option<Ratio>,
    /// How long it took to attach and weave, and to restore and leave, in plain iterations.
    pub attach: Option<f64>,
    pub detach: Option<f64>,
    /// The longest pause and all pauses together, in plain iterations.
    pub longest_pause: Option<f64>,
    pub all_pauses: Option<f64>,
    /// Speed after leaving beside that before attaching, in the same JVMs.
    pub after: Option<Ratio>,
    pub after_cpu: Option<Ratio>,
    pub target: Option<f64>,
    pub full: bool,
}

impl Row {
    /// One number per launch: the median of its iterations.
    fn steady(&self) -> Vec<f64> {
        self.launches.iter().filter_map(|launch| median(&launch.iterations.wall)).collect()
    }

    fn of(&self, get: impl Fn(&Launch) -> Option<f64>) -> Vec<f64> {
        self.launches.iter().filter_map(get).collect()
    }

    pub fn figures(&self, plain: &Row) -> Figures {
        let steady = self.steady();
        let plain_steady = plain.steady();
        let against = |get: fn(&Launch) -> Option<f64>| ratio(&self.of(get), &plain.of(get));
        let in_iterations = |get: fn(&Launch) -> Option<f64>| {
            Some(median(&self.of(get))? / median(&plain_steady).filter(|m| *m > 0.0)?)
        };
        // Each JVM is its own baseline, so launches are drawn in pairs.
        let after_cpu = self.of(|l| Some(median(&l.after.cpu)? / median(&l.before.cpu)?));
        let after = self.of(|l| Some(median(&l.after.wall)? / median(&l.before.wall)?));
        Figures {
            steady: ratio(&steady, &plain_steady),
            cpu: against(|l| median(&l.iterations.cpu)),
            spread: stats::spread(&steady),
            startup: against(|l| l.startup),
            first: against(|l| l.first),
            memory: against(|l| Some(l.peak_memory as f64)),
            attach: in_iterations(|l| l.attach),
            detach: in_iterations(|l| l.detach),
            longest_pause: in_iterations(|l| Some(l.pauses?.longest)),
            all_pauses: in_iterations(|l| Some(l.pauses?.total)),
            after: ratio(&after, &[1.0]),
            after_cpu: ratio(&after_cpu, &[1.0]),
            target: self.config.target(self.workload, self.jdk),
            full: self.launches.iter().any(|launch| launch.full),
        }
    }

    /// Everything that was measured, and the figures made of it.
    pub fn json(&self, plain: &Row) -> Value {
        let figures = self.figures(plain);
        let launches: Vec<Value> = self.launches.iter().map(launch_json).collect();
        json!({
            "workload": self.workload,
            "jdk": self.jdk,
            "configuration": self.config.name(),
            "steady": figures.steady.map(ratio_json),
            "cpu": figures.cpu.map(ratio_json),
            "spread": figures.spread,
            "startup": figures.startup.map(ratio_json),
            "first_iteration": figures.first.map(ratio_json),
            "peak_memory": figures.memory.map(ratio_json),
            "attach_in_iterations": figures.attach,
            "detach_in_iterations": figures.detach,
            "longest_pause_in_iterations": figures.longest_pause,
            "all_pauses_in_iterations": figures.all_pauses,
            "after_detach": figures.after.map(ratio_json),
            "after_detach_cpu": figures.after_cpu.map(ratio_json),
            "target": figures.target,
            "trees_full": figures.full,
            "launches": launches,
        })
    }
}

fn ratio_json(ratio: Ratio) -> Value {
    json!({ "ratio": ratio.value, "low": ratio.low, "high": ratio.high })
}

fn launch_json(launch: &Launch) -> Value {
    let pauses = launch
        .pauses
        .map(|p| json!({ "count": p.count, "total_ms": p.total, "longest_ms": p.longest }));
    json!({
        "startup_ms": launch.startup,
        "first_iteration_ms": launch.first,
        "iterations_ms": launch.iterations.wall,
        "iterations_cpu_ms": launch.iterations.cpu,
        "before_ms": launch.before.wall,
        "before_cpu_ms": launch.before.cpu,
        "after_ms": launch.after.wall,
        "after_cpu_ms": launch.after.cpu,
        "attach_ms": launch.attach,
        "detach_ms": launch.detach,
        "pauses": pauses,
        "peak_memory_kib": launch.peak_memory,
        "result": launch.result,
        "recorded": launch.recorded,
    })
}

/// The rows of a workload on a JDK, the plain one first; a group without it has no baseline.
pub fn groups(rows: &[Row]) -> Vec<(&Row, Vec<&Row>)> {
    let plain = rows.iter().filter(|row| row.config == Config::Plain && !row.launches.is_empty());
    plain
        .map(|plain| {
            let same = |row: &&Row| {
                row.workload == plain.workload && row.jdk == plain.jdk && !row.launches.is_empty()
            };
            (plain, rows.iter().filter(same).collect())
        })
        .collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::config::{Jfr, Mode};
    use crate::launch::Pauses;
    use crate::program::Times;

    /// A row whose launches have these medians.
    pub fn row(config: Config, medians: &[f64]) -> Row {
        let launch = |m: &f64| Launch {
            startup: Some(40.0),
            iterations: Times { wall: vec![m * 0.9, *m, m * 5.0], cpu: vec![m + 10.0] },
            before: Times { wall: vec![10.0], cpu: vec![8.0] },
            after: Times { wall: vec![11.0], cpu: vec![10.0] },
            attach: Some(20.0),
            detach: Some(5.0),
            pauses: Some(Pauses { count: 1.0, total: 30.0, longest: 5.0 }),
            peak_memory: (m * 10.0) as u64,
            ..Launch::default()
        };
        Row { workload: "fib", jdk: 17, config, launches: medians.iter().map(launch).collect() }
    }

    #[test]
    fn figures_are_ratios_of_medians_of_launches() {
        let plain = row(Config::Plain, &[10.0, 10.0, 12.0]);
        let figures = row(Config::Launched(Mode::Count), &[20.0, 21.0, 22.0]).figures(&plain);
        assert_eq!(figures.steady.unwrap().value, 2.1);
        assert_eq!(figures.cpu.unwrap().value, 31.0 / 20.0);
        assert_eq!(figures.after_cpu.unwrap().value, 1.25);
        assert_eq!(figures.memory.unwrap().value, 2.1);
        assert_eq!(figures.startup.unwrap().value, 1.0);
        assert_eq!((figures.attach, figures.detach), (Some(2.0), Some(0.5)));
        assert_eq!((figures.longest_pause, figures.all_pauses), (Some(0.5), Some(3.0)));
        assert_eq!(figures.after.unwrap().value, 1.1);
        assert_eq!(figures.target, Some(2.2));
        assert_eq!(figures.first, None);
    }

    #[test]
    fn rows_are_grouped_with_their_own_baseline() {
        let mut other = row(Config::Plain, &[1.0]);
        other.jdk = 25;
        let rows = [
            row(Config::Plain, &[1.0]),
            row(Config::Jfr(Jfr::Profile), &[1.0]),
            row(Config::AsyncProfiler, &[]),
            other,
        ];
        let sizes: Vec<_> = groups(&rows).iter().map(|(p, same)| (p.jdk, same.len())).collect();
        assert_eq!(sizes, [(17, 2), (25, 1)]);
    }
}
