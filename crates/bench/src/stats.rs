//! Medians, spread and confidence: what turns iterations of several JVMs into a figure.
//!
//! A JVM decides once in its life how it compiles a program, so the launches are the sample, not
//! the iterations: each launch gives one number, and confidence comes from drawing launches anew.

/// The middle of the values; of an even number of them, the mean of both in the middle.
/// `None` of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The distance of the smallest and the largest value, as a share of the median: honest about
/// outliers, which matter with as few values as we have.
pub fn spread(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = median(values).filter(|m| *m > 0.0)?;
    Some((sorted.last()? - sorted.first()?) / middle)
}

/// The mean that suits ratios. `None` of no values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A ratio of medians, and between which bounds 95 % of the ratios of launches drawn anew lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// How often launches are drawn anew.
const ROUNDS: usize = 4000;

/// The same in every run, so that the same measurements give the same bounds.
const SEED: u64 = 0x7a6e_1d0c_94f3_b825;

/// The median of `profiled` over that of `plain`. With one launch each there is nothing to draw
/// from, and the bounds are the value itself.
pub fn ratio(profiled: &[f64], plain: &[f64]) -> Option<Ratio> {
    let value = median(profiled)? / median(plain).filter(|m| *m > 0.0)?;
    let mut random = Random(SEED);
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .filter_map(|_| {
            let above = median(&random.redraw(profiled))?;
            Some(above / median(&random.redraw(plain))?)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    Some(Ratio { value, low: quantile(&ratios, 0.025)?, high: quantile(&ratios, 0.975)? })
}

/// The ratio of pairs: each measurement beside another that was taken under the same conditions.
pub fn beside(one: &[f64], other: &[f64]) -> Option<Ratio> {
    let ratios: Vec<f64> =
        one.iter().zip(other).filter(|(_, b)| **b > 0.0).map(|(a, b)| a / b).collect();
    ratio(&ratios, &[1.0])
}

/// A ratio and its bounds, for a table.
pub fn shown(ratio: Option<Ratio>) -> String {
    ratio.map_or("–".to_owned(), |r| format!("{:.3} ({:.3}–{:.3})", r.value, r.low, r.high))
}

/// The value below which that share of the sorted values lies.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((share * last as f64).round() as usize).copied()
}

/// xorshift64*: small, and good enough for drawing among a handful.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap_or(0) % bound
    }

    fn redraw(&mut self, values: &[f64]) -> Vec<f64> {
        values.iter().map(|_| values[self.below(values.len())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_needs_no_order() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(median(&[9.0, 1.0, 4.0, 2.0]), Some(3.0));
    }

    #[test]
    fn spread_is_relative_to_the_median() {
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[2.0]), Some(0.0));
        assert_eq!(spread(&[3.0, 2.0, 1.0]), Some(1.0));
    }

    #[test]
    fn a_ratio_lies_within_its_bounds() {
        let r = ratio(&[20.0, 22.0, 21.0], &[10.0, 10.5, 9.5]).unwrap();
        assert_eq!(r.value, 2.1);
        assert!(r.low < r.value && r.value < r.high, "{r:?}");
        // No drawing can leave what was measured.
        assert!(r.low >= 20.0 / 10.5 && r.high <= 22.0 / 9.5, "{r:?}");
        assert_eq!(ratio(&[20.0, 22.0, 21.0], &[10.0, 10.5, 9.5]), Some(r), "not repeatable");
    }

    #[test]
    fn steady_launches_give_narrower_bounds_than_unsteady_ones() {
        let width = |values: &[f64]| {
            let r = ratio(values, &[1.0, 1.0, 1.0]).unwrap();
            r.high - r.low
        };
        assert!(width(&[2.0, 2.01, 1.99]) < 0.05);
        assert!(width(&[2.0, 3.0, 1.0]) > 1.0);
    }

    #[test]
    fn pairs_are_compared_with_each_other() {
        // The second round was twice as slow for everybody.
        let r = beside(&[11.0, 22.0], &[10.0, 20.0]).unwrap();
        assert!((r.value - 1.1).abs() < 1e-9 && (r.high - r.low).abs() < 1e-9, "{r:?}");
        assert_eq!(beside(&[1.0], &[0.0]), None);
        assert_eq!(shown(None), "–");
        assert_eq!(shown(Some(r)), "1.100 (1.100–1.100)");
    }

    #[test]
    fn one_launch_has_no_bounds_and_none_has_no_ratio() {
        assert_eq!(ratio(&[4.0], &[2.0]), Some(Ratio { value: 2.0, low: 2.0, high: 2.0 }));
        assert_eq!(ratio(&[], &[2.0]), None);
        assert_eq!(ratio(&[4.0], &[]), None);
        assert_eq!(ratio(&[4.0], &[0.0]), None);
    }
}
