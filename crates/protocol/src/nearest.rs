//! The name that somebody may have meant who wrote a pattern that nothing fits.
//!
//! Names are looked at one by one and only the best is kept, so that the agent can look at all
//! classes of a JVM without keeping a list of them.

use crate::Pattern;
use std::collections::HashSet;

/// What a name that is only like another in its last part is worth, before what else is equal.
const SAME_LAST: u32 = 100;

/// Looks for the class or package whose name is nearest to a pattern's.
pub struct Nearest {
    /// Dotted, and without the parts from the first star on.
    wanted: String,
    /// What follows those parts, `**` for instance; empty if the pattern has no star.
    rest: String,
    packages: HashSet<String>,
    best: Option<Candidate>,
}

struct Candidate {
    score: u32,
    length: usize,
    /// What to write; of a package, whether the classes in it are asked for as they were.
    text: String,
    as_asked: bool,
}

impl Nearest {
    /// For a pattern of classes, as it is written.
    #[must_use]
    pub fn to_class(pattern: &str) -> Self {
        let dotted = pattern.replace('/', ".");
        let mut parts = dotted.split('.');
        let plain: Vec<&str> =
            parts.by_ref().take_while(|part| !part.contains(['*', '?'])).collect();
        let wanted = plain.join(".");
        let rest = dotted[wanted.len()..].trim_start_matches('.').to_owned();
        Nearest { wanted, rest, packages: HashSet::new(), best: None }
    }

    /// A class that there is, spelled with slashes or dots.
    pub fn look_at(&mut self, class: &str) {
        // Hidden classes have a name that nobody can write.
        if self.wanted.is_empty() || (class.contains('.') && class.contains('/')) {
            return;
        }
        let class = class.replace('/', ".");
        if self.rest.is_empty() {
            self.weigh(&class, |_| (class.clone(), true));
        }
        let Some((package, _)) = class.rsplit_once('.') else { return };
        let any = matches!(self.rest.as_str(), "" | "**");
        if any && self.packages.contains(package) {
            return;
        }
        let ends = package.match_indices('.').map(|(at, _)| at).chain([package.len()]);
        for end in ends {
            let rest = self.rest.clone();
            self.weigh(&package[..end], |name| below(name, &rest, &class));
        }
        if any {
            self.packages.insert(package.to_owned());
        }
    }

    fn weigh(&mut self, name: &str, suggestion: impl FnOnce(&str) -> (String, bool)) {
        let Some(score) = unlikeness(&self.wanted, name) else { return };
        let length = name.len();
        let rank = |best: &Candidate| (best.score, best.length, !best.as_asked);
        if self.best.as_ref().is_some_and(|best| (score, length, false) >= rank(best)) {
            return;
        }
        let (text, as_asked) = suggestion(name);
        let new = Candidate { score, length, text, as_asked };
        if self.best.as_ref().is_none_or(|best| rank(&new) < rank(best)) {
            self.best = Some(new);
        }
    }

    /// The best so far, and how unlike it is: comparable with others' for the same pattern.
    #[must_use]
    pub fn found(self) -> Option<(u32, String)> {
        self.best.map(|best| (best.score, best.text))
    }
}

/// The classes of a package: in the way they were asked for, if that fits this one, which is told,
/// too.
fn below(package: &str, rest: &str, class: &str) -> (String, bool) {
    let same = format!("{package}.{rest}");
    let fits = |text: &str| text.parse::<Pattern>().is_ok_and(|p| p.fits_class(class));
    if !rest.is_empty() && fits(&same) { (same, true) } else { (format!("{package}.**"), false) }
}

/// The one of some names that is nearest to another, if one is near.
#[must_use]
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.into_iter().filter_map(|name| Some((unlikeness(wanted, name)?, name)));
    scored.min_by_key(|(score, name)| (*score, name.len())).map(|(_, name)| name)
}

/// How unlike two names are; nothing if nobody would write one for the other.
fn unlikeness(wanted: &str, name: &str) -> Option<u32> {
    let length = wanted.chars().count();
    let most = (length / 5).max(2).min(length / 3);
    if let Some(edits) = edits(wanted, name, most) {
        return Some(edits);
    }
    if wanted.eq_ignore_ascii_case(name) {
        return Some(1);
    }
    // The same class or package elsewhere.
    let last = |text: &str| text.rsplit(['.', '$']).next().map(str::to_ascii_lowercase);
    if last(wanted) != last(name) || length < 3 {
        return None;
    }
    let equal =
        |a: &str, b: &str| a.split('.').zip(b.split('.')).take_while(|(a, b)| a == b).count();
    let more = wanted.split('.').count().abs_diff(name.split('.').count());
    Some((SAME_LAST + more as u32).saturating_sub(2 * equal(wanted, name) as u32))
}

/// Letters to change, add, leave out or exchange with their neighbour, if they are no more than
/// `most`.
fn edits(a: &str, b: &str, most: usize) -> Option<u32> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && y == a[i - 1] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        if row.iter().all(|edits| *edits > most) {
            return None;
        }
        before = std::mem::replace(&mut last, row);
    }
    let edits = *last.last()?;
    (edits <= most).then_some(edits as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: [&str; 7] = [
        "java/util/HashMap",
        "org/apache/jsp/index_jsp",
        "org/apache/jasper/Compiler",
        "com/acme/shop/Orders",
        "com/acme/shop/Orders$Line",
        "com/acme/shop/internal/OrderService",
        "com.acme.shop.Orders$$Lambda/0x0001",
    ];

    fn meant(pattern: &str) -> Option<String> {
        let mut nearest = Nearest::to_class(pattern);
        CLASSES.iter().for_each(|class| nearest.look_at(class));
        nearest.found().map(|(_, name)| name)
    }

    #[test]
    fn what_was_meant_is_found() {
        for (pattern, name) in [
            ("org.apache.jps.**", "org.apache.jsp.**"),
            ("com.acem.**", "com.acme.**"),
            ("com.acme.shop.Order", "com.acme.shop.Orders"),
            ("com.acme.shop.orders", "com.acme.shop.Orders"),
            // A package is not the classes in it.
            ("com.acme", "com.acme.**"),
            ("com.acme.shop", "com.acme.shop.**"),
            ("com.acme.*", "com.acme.**"),
            // The same elsewhere.
            ("Orders", "com.acme.shop.Orders"),
            ("com.acme.Orders", "com.acme.shop.Orders"),
            ("com.acme.internal.*", "com.acme.shop.internal.*"),
            ("com.acme.shp.Order*", "com.acme.shop.Order*"),
            ("com.acme.shop.Line", "com.acme.shop.Orders$Line"),
        ] {
            assert_eq!(meant(pattern).as_deref(), Some(name), "{pattern}");
        }
    }

    #[test]
    fn nothing_is_guessed() {
        for pattern in ["net.other.**", "**.Foo", "a", "x.y.Z", "com.example.Main"] {
            assert_eq!(meant(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn names_of_methods() {
        let names = ["place", "replace", "<init>", "lambda$place$0"];
        assert_eq!(nearest("plcae", names), Some("place"));
        assert_eq!(nearest("Place", names), Some("place"));
        assert_eq!(nearest("main", names), None);
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("place", "place", 2), Some(0));
        assert_eq!(edits("place", "plcae", 2), Some(1));
        assert_eq!(edits("place", "places", 2), Some(1));
        assert_eq!(edits("place", "palaces", 2), Some(2));
        assert_eq!(edits("place", "house", 2), None);
        assert_eq!(edits("", "ab", 2), Some(2));
    }
}
