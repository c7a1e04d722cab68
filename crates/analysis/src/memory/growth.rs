//! How what lives grew from collection to collection.

/// Points of time that a recording is cut to, so that many collections cost no memory.
pub const POINTS: usize = 32;

/// Fewer collections than this tell nothing of growth.
const FEWEST: usize = 8;

/// A leak has so much of the most that it ever had.
const STAYS: f64 = 0.8;

/// Growth of what lives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Growth {
    /// Bytes, by a line through all points.
    pub per_minute: f64,
    /// It grew in every quarter of the collections, did not slow down, and is still there.
    pub steady: bool,
}

/// When sweeps told what lives, in at most [`POINTS`] points.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sweeps {
    /// The last moment of each point, ascending.
    ends: Vec<u64>,
}

impl Sweeps {
    pub fn of(times: impl Iterator<Item = u64>) -> Self {
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        times.dedup();
        let points = times.len().min(POINTS);
        let end = |point: usize| times[(point + 1) * times.len() / points - 1];
        Sweeps { ends: (0..points).map(end).collect() }
    }

    pub fn point(&self, time: u64) -> Option<usize> {
        Some(self.ends.partition_point(|end| *end < time)).filter(|point| *point < self.ends.len())
    }

    /// `steps` say how much more lived at each point than before.
    pub fn growth(&self, steps: &[i64]) -> Option<Growth> {
        let count = self.ends.len();
        if count < FEWEST {
            return None;
        }
        let levels: Vec<f64> = steps[..count]
            .iter()
            .scan(0.0, |level, step| {
                *level += *step as f64;
                Some(*level)
            })
            .collect();
        // The first quarter of the points is of what lived before as well.
        let minutes: Vec<f64> = self.ends.iter().map(|end| *end as f64 / 60e9).collect();
        let from = count / 4;
        let per_minute = slope(&minutes[from..], &levels[from..])?;
        let quarter = |number: usize| {
            let points = &levels[number * count / 4..(number + 1) * count / 4];
            points.iter().sum::<f64>() / points.len() as f64
        };
        let quarters = [0, 1, 2, 3].map(quarter);
        let rises = quarters.windows(2).all(|pair| pair[1] > pair[0]);
        let (grown, last) = (quarters[3] - quarters[0], quarters[3] - quarters[2]);
        // What fills up slows down; what is large and hardly grows is no concern, nor is what was
        // emptied at last.
        let most = levels.iter().copied().fold(0.0, f64::max);
        let stays = levels[count - 1] >= most * STAYS;
        let steady = rises && stays && last * 3.0 >= grown / 2.0 && grown >= quarters[3] / 5.0;
        Some(Growth { per_minute, steady })
    }
}

/// The slope of the line that fits best.
fn slope(x: &[f64], y: &[f64]) -> Option<f64> {
    let count = x.len() as f64;
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / count, y.iter().sum::<f64>() / count);
    let square: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let product: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (square > 0.0).then(|| product / square)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn growth(levels: impl Fn(u64) -> i64) -> Option<Growth> {
        let sweeps = Sweeps::of((0..100).map(|n| n * SECOND));
        let mut steps = vec![0; POINTS];
        for n in 0..100 {
            let step = levels(n) - if n == 0 { 0 } else { levels(n - 1) };
            steps[sweeps.point(n * SECOND).unwrap()] += step;
        }
        sweeps.growth(&steps)
    }

    #[test]
    fn a_leak_is_steady_and_a_cache_that_fills_is_not() {
        let leak = growth(|n| 1000 * n as i64).unwrap();
        assert!(leak.steady && (leak.per_minute - 60_000.0).abs() < 1.0, "{leak:?}");
        let cache = growth(|n| 1000 * n.min(40) as i64).unwrap();
        assert!(!cache.steady, "{cache:?}");
        let flat = growth(|n| 1_000_000 + n as i64).unwrap();
        assert!(!flat.steady && (flat.per_minute - 60.0).abs() < 1.0, "{flat:?}");
        let saw = growth(|n| 1000 * (n % 10) as i64).unwrap();
        assert!(!saw.steady, "{saw:?}");
        let emptied = growth(|n| if n < 97 { 1000 * n as i64 } else { 500 * n as i64 }).unwrap();
        assert!(!emptied.steady && emptied.per_minute > 0.0, "{emptied:?}");
    }

    #[test]
    fn few_collections_tell_nothing() {
        let sweeps = Sweeps::of((0..7).map(|n| n * SECOND));
        assert_eq!(sweeps.growth(&[1; POINTS]), None);
        assert_eq!(Sweeps::default().point(5), None);
        assert_eq!((sweeps.point(0), sweeps.point(6 * SECOND)), (Some(0), Some(6)));
        assert_eq!(sweeps.point(7 * SECOND), None);
    }
}
