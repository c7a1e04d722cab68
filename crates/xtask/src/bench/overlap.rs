//! How far two profiles of the same program agree: the sum, over all methods, of the smaller of their
//! two shares. Equal profiles give 100 %, profiles that share nothing 0.
//!
//! Methods are those in which samples were taken: the innermost Java method of each stack, since tools
//! name native code differently. Both come as collapsed stacks.

use std::collections::HashMap;

/// Shares of the methods in which samples were taken.
pub struct Leaves {
    shares: HashMap<String, f64>,
}

impl Leaves {
    pub fn of_collapsed(text: &str) -> Self {
        let mut shares: HashMap<String, f64> = HashMap::new();
        let mut total = 0.0;
        for line in text.lines() {
            let Some((stack, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let leaf = stack.rsplit(';').find_map(java_name);
            *shares.entry(leaf.unwrap_or_else(|| "no Java".to_owned())).or_default() += value;
            total += value;
        }
        shares.values_mut().for_each(|value| *value /= total);
        Leaves { shares }
    }

    /// Between 0 and 1.
    pub fn overlap(&self, other: &Leaves) -> f64 {
        let common = self.shares.iter().filter_map(|(name, share)| {
            let theirs = other.shares.get(name)?;
            Some(share.min(*theirs))
        });
        common.sum()
    }

    /// The methods that differ most: name, ours, theirs.
    pub fn differences(&self, other: &Leaves, most: usize) -> Vec<(String, f64, f64)> {
        let names =
            self.shares.keys().chain(other.shares.keys().filter(|n| !self.shares.contains_key(*n)));
        let share = |of: &Leaves, name: &str| of.shares.get(name).copied().unwrap_or(0.0);
        let mut all: Vec<(String, f64, f64)> =
            names.map(|name| (name.clone(), share(self, name), share(other, name))).collect();
        all.sort_by(|a, b| (b.1 - b.2).abs().total_cmp(&(a.1 - a.2).abs()));
        all.truncate(most);
        all
    }
}

/// `com.acme.Orders.place` of a frame that is a Java method, without the numbers that a JVM makes up
/// for lambdas and without what a tool appends.
fn java_name(frame: &str) -> Option<String> {
    let kernel = frame.ends_with("_[k]");
    let frame = frame.split("_[").next().unwrap_or(frame);
    let native = kernel || frame.starts_with('[') || frame.contains("::") || frame.contains(".so");
    if native || !frame.contains('.') {
        return None;
    }
    let name = frame.replace('/', ".");
    let Some((class, rest)) = name.split_once("$$Lambda") else { return Some(name) };
    let method = rest.rsplit('.').next().unwrap_or_default();
    Some(format!("{class}$$Lambda.{method}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_java_method_counts() {
        for (frame, expected) in [
            ("java/lang/String.hashCode_[j]", Some("java.lang.String.hashCode")),
            ("a.B$$Lambda.0x0001.apply", Some("a.B$$Lambda.apply")),
            ("a/B$$Lambda/0x0001.apply", Some("a.B$$Lambda.apply")),
            ("Fib.fib", Some("Fib.fib")),
            ("G1ParScanThreadState::trim", None),
            ("libc.so.6+0x77", None),
            ("[unknown_Java]", None),
            ("memcpy", None),
            ("finish_task_switch.isra.0_[k]", None),
        ] {
            assert_eq!(java_name(frame).as_deref(), expected, "{frame}");
        }
    }

    #[test]
    fn equal_profiles_agree_and_others_as_far_as_they_are_equal() {
        let ours = Leaves::of_collapsed("m;A.a 30\nm;A.b;memcpy 70\n");
        assert!((ours.overlap(&ours) - 1.0).abs() < 1e-9);
        let theirs = Leaves::of_collapsed("x;A.a 5\nx;A.b 4\ngc_thread 1\n");
        assert!((ours.overlap(&theirs) - 0.7).abs() < 1e-9);
        let (name, a, b) = ours.differences(&theirs, 1).remove(0);
        assert_eq!(name, "A.b");
        assert!((a - 0.7).abs() < 1e-9 && (b - 0.4).abs() < 1e-9);
        assert_eq!(ours.overlap(&Leaves::of_collapsed("")), 0.0);
    }
}
