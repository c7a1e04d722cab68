//! How far two profiles of the same program agree: the sum, over all methods, of the smaller of
//! their two shares. Equal profiles give 100 %, profiles that share nothing 0.
//!
//! Methods are those in which samples were taken: the innermost Java method of each stack, since
//! tools name native code differently. Sampled profiles come as collapsed stacks.

use std::collections::HashMap;

/// Shares of the methods in which samples were taken.
pub struct Leaves {
    shares: HashMap<String, f64>,
    total: f64,
}

impl Leaves {
    /// Stacks without Java do not count: what collectors and compilers do changes in a JVM's life.
    pub fn of_collapsed(text: &str) -> Self {
        Self::by(text, |stack| stack.rsplit(';').find_map(java_name))
    }

    /// The innermost method whose name begins like one of these; stacks without one do not count.
    pub fn within(text: &str, places: &[String]) -> Self {
        let inside = |name: &String| places.iter().any(|place| name.starts_with(place.as_str()));
        let named = |frame: &str| java_name(frame).filter(inside);
        Self::by(text, |stack| stack.rsplit(';').find_map(named))
    }

    fn by(text: &str, name: impl Fn(&str) -> Option<String>) -> Self {
        Self::of_values(text.lines().filter_map(|line| {
            let (stack, value) = line.rsplit_once(' ')?;
            Some((name(stack)?, value.parse().ok()?))
        }))
    }

    pub fn of_values(values: impl Iterator<Item = (String, f64)>) -> Self {
        let mut shares: HashMap<String, f64> = HashMap::new();
        let mut total = 0.0;
        for (name, value) in values {
            *shares.entry(name).or_default() += value;
            total += value;
        }
        shares.values_mut().for_each(|value| *value /= total);
        Leaves { shares, total }
    }

    /// The sum of all values.
    pub fn total(&self) -> f64 {
        self.total
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

/// The sum of all values of a collapsed profile, Java's or not.
pub fn sum(text: &str) -> f64 {
    let value = |line: &str| line.rsplit_once(' ')?.1.parse::<f64>().ok();
    // The sum of nothing is a negative zero.
    text.lines().filter_map(value).sum::<f64>() + 0.0
}

/// `com.acme.Orders.place` of a frame that is a Java method, without the numbers that a JVM makes
/// up for lambdas and without what a tool appends.
fn java_name(frame: &str) -> Option<String> {
    let kernel = frame.ends_with("_[k]");
    let frame = frame.split("_[").next().unwrap_or(frame);
    let marks = ["::", ".so", "@"];
    let native = kernel || frame.starts_with('[') || marks.iter().any(|mark| frame.contains(mark));
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
            ("pthread_mutex_lock@@GLIBC_2.2.5", None),
            ("finish_task_switch.isra.0_[k]", None),
        ] {
            assert_eq!(java_name(frame).as_deref(), expected, "{frame}");
        }
    }

    #[test]
    fn equal_profiles_agree_and_others_as_far_as_they_are_equal() {
        let ours = Leaves::of_collapsed("m;A.a 30\nm;A.b;memcpy 70\n");
        assert!((ours.overlap(&ours) - 1.0).abs() < 1e-9);
        let theirs = Leaves::of_collapsed("x;A.a 6\nx;A.b 4\ngc_thread 5\n");
        assert!((ours.overlap(&theirs) - 0.7).abs() < 1e-9);
        let (_, a, b) = ours.differences(&theirs, 1).remove(0);
        assert!(((a - b).abs() - 0.3).abs() < 1e-9);
        // Of those below a package, each stack's innermost.
        let woven = Leaves::within(
            "m;p.A.a;p.A.b;q.C.c 3\nm;p.A.a;q.C.c 1\nm;q.C.c 9\n",
            &["p.".to_owned()],
        );
        assert_eq!((woven.total(), woven.shares.get("p.A.b").copied()), (4.0, Some(0.75)));
        assert_eq!(ours.overlap(&Leaves::of_collapsed("")), 0.0);
        assert_eq!(sum("x;A.a 6\nx;A.b 4\ngc_thread 5\nno value\n"), 15.0);
    }
}
