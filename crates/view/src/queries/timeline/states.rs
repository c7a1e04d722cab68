//! What threads did, where samples by the wall clock tell it: the state that each was mostly in, by
//! cells of time.

use super::Axis;
use crate::source::Loaded;
use serde_json::{Value, json};
use std::collections::HashMap;
use tare_profile::{Series, TimeAxis, ValueKind};

/// Names of states, and for each thread (by its row) the number of its state in each cell; −1 where
/// nothing was seen.
pub struct States {
    pub names: Vec<String>,
    pub threads: HashMap<u32, Vec<i8>>,
}

impl States {
    /// The series of states stand beside the one of all samples, by the same clock.
    pub fn of(loaded: &Loaded, axis: &Axis) -> Option<Self> {
        let profile = &loaded.profile;
        let shown = profile.series(loaded.metrics[0]).info();
        if shown.kind != ValueKind::WallTime || shown.time != TimeAxis::Exact {
            return None;
        }
        let is_state = |one: &Series| {
            let info = one.info();
            let alike =
                (&info.kind, info.time, info.period) == (&shown.kind, shown.time, shown.period);
            alike && info.name != shown.name && !one.is_empty()
        };
        let series: Vec<&Series> =
            profile.all_series().map(|(_, one)| one).filter(|one| is_state(one)).collect();
        if series.is_empty() {
            return None;
        }
        let mut sums: HashMap<u32, Vec<Vec<f64>>> = HashMap::new();
        for (number, one) in series.iter().enumerate() {
            for row in one.rows() {
                let cells = sums
                    .entry(row.thread.raw())
                    .or_insert_with(|| vec![vec![0.0; axis.cells]; series.len()]);
                axis.put(&mut cells[number], one.info(), row.time, row.value as f64);
            }
        }
        let mostly = |states: &Vec<Vec<f64>>| {
            let cell = |cell: usize| {
                let more = |a: &usize, b: &usize| states[*a][cell].total_cmp(&states[*b][cell]);
                let seen = (0..states.len()).max_by(more).filter(|at| states[*at][cell] > 0.0);
                seen.and_then(|state| i8::try_from(state).ok()).unwrap_or(-1)
            };
            (0..axis.cells).map(cell).collect()
        };
        let threads = sums.iter().map(|(row, states)| (*row, mostly(states))).collect();
        let names = series.iter().map(|one| one.info().name.replace('-', " ")).collect();
        Some(States { names, threads })
    }

    pub fn thread(&self, row: u32) -> Value {
        self.threads.get(&row).map_or(Value::Null, |cells| json!(cells))
    }
}
