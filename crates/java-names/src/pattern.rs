//! Patterns for classes, methods and threads, as users write them: `com.acme.**`,
//! `com.acme.Orders.place`. One grammar for every flag:
//!
//! | written | stands for |
//! |---|---|
//! | `.` or `/`, `#`, `::` | the border between packages, class and method |
//! | `**` | anything |
//! | `*` | anything within one part |
//! | `?` | one character of a part |
//!
//! What is chosen for weaving fits as a whole ([`Pattern::fits_class`], [`Pattern::fits_method`]).
//! A search in what was recorded ([`Pattern::is_found_in`]) without `*` and `?` also finds a name
//! of which the pattern is a part, between borders: `Orders` finds `com.acme.Orders$Line.place`.

use std::fmt;

/// A checked pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// With dots as its only borders.
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    Empty,
    BadCharacter(char),
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Empty => write!(f, "a pattern cannot be empty"),
            PatternError::BadCharacter(c) => {
                write!(f, "{c:?} cannot stand in a pattern such as com.acme.**")
            }
        }
    }
}

impl std::error::Error for PatternError {}

/// A pattern for Java classes and methods, whose names lack some characters.
impl std::str::FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if let Some(bad) = text.chars().find(|c| c.is_whitespace() || ";[,".contains(*c)) {
            return Err(PatternError::BadCharacter(bad));
        }
        Ok(Pattern { text: with_dots(text) })
    }
}

/// People copy names from stack traces and class files as well.
fn with_dots(text: &str) -> String {
    text.replace(['/', '#'], ".").replace("::", ".")
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Pattern {
    /// A pattern to search with, for any names: of native functions and of accounts in brackets,
    /// too. An empty one finds nothing.
    #[must_use]
    pub fn to_search(text: &str) -> Self {
        Pattern { text: with_dots(text.trim().trim_end_matches("()")) }
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a class, spelled `com/acme/Orders` or `com.acme.Orders`, fits.
    #[must_use]
    pub fn fits_class(&self, class: &str) -> bool {
        fits(self.text.as_bytes(), class.as_bytes())
    }

    /// The part for the class and the part for the method of a pattern for methods; `None` if it is
    /// for all methods of what it names.
    #[must_use]
    pub fn class_and_method(&self) -> Option<(&str, &str)> {
        self.text.rsplit_once('.').filter(|(_, of_method)| *of_method != "**")
    }

    /// Whether a method fits: the last part of the pattern is for the method's name.
    #[must_use]
    pub fn fits_method(&self, class: &str, method: &str) -> bool {
        match self.text.rsplit_once('.') {
            Some((of_class, of_method)) if of_method != "**" => {
                fits(of_class.as_bytes(), class.as_bytes())
                    && fits(of_method.as_bytes(), method.as_bytes())
            }
            _ => self.fits_class(class),
        }
    }

    /// Whether any method of a class could fit.
    #[must_use]
    pub fn fits_some_method(&self, class: &str) -> bool {
        match self.text.rsplit_once('.') {
            Some((of_class, of_method)) if of_method != "**" => {
                fits(of_class.as_bytes(), class.as_bytes())
            }
            _ => self.fits_class(class),
        }
    }

    /// Whether a search finds a whole name, `com.acme.Orders.place`. With `*` or `?` the pattern
    /// must fit all of it.
    #[must_use]
    pub fn is_found_in(&self, name: &str) -> bool {
        // Borders of native functions are those of C++.
        let dotted = name.contains("::").then(|| name.replace("::", "."));
        let name = dotted.as_deref().unwrap_or(name);
        if self.has_wildcards() {
            return glob(&self.text, name);
        }
        let border = |c: Option<char>| c.is_none_or(|c| ".$(/".contains(c));
        !self.text.is_empty()
            && name.match_indices(&self.text).any(|(at, found)| {
                border(name[..at].chars().next_back())
                    && border(name[at + found.len()..].chars().next())
            })
    }

    /// Whether a search finds a name that ends where the pattern does: `Orders.place` names a
    /// method, `Orders` only its class.
    #[must_use]
    pub fn is_found_at_end_of(&self, name: &str) -> bool {
        self.is_found_in(name) && (self.has_wildcards() || name.ends_with(&self.text))
    }

    fn has_wildcards(&self) -> bool {
        self.text.contains(['*', '?'])
    }
}

/// Whether a text as a whole fits a pattern; a dot of the pattern is a slash as well.
#[must_use]
pub fn glob(pattern: &str, text: &str) -> bool {
    fits(pattern.as_bytes(), text.as_bytes())
}

/// Matches without recursion: on a mismatch the text moves on by one behind the last star. A
/// single star that would have to swallow a dot gives way to the double star before it.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    // The address of a hidden class belongs to the name of the class.
    let separator =
        |at: usize| matches!(text.get(at), Some(b'.' | b'/')) && !text[at + 1..].starts_with(b"0x");
    // Where to resume behind the last `*` and the last `**`: (pattern, text).
    let mut single: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    let (mut p, mut t) = (0, 0);
    loop {
        if pattern[p..].starts_with(b"**") {
            double = Some((p + 2, t));
            single = None;
            p += 2;
            continue;
        }
        if pattern.get(p) == Some(&b'*') {
            single = Some((p + 1, t));
            p += 1;
            continue;
        }
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(&a), Some(&b))
                if a == b || (a == b'.' && b == b'/') || (a == b'?' && !separator(t)) =>
            {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        match (single, double) {
            (Some((at, from)), _) if from < text.len() && !separator(from) => {
                single = Some((at, from + 1));
                (p, t) = (at, from + 1);
            }
            (_, Some((at, from))) if from < text.len() => {
                double = Some((at, from + 1));
                single = None;
                (p, t) = (at, from + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn classes() {
        let check = |text: &str, yes: &[&str], no: &[&str]| {
            for class in yes {
                assert!(pattern(text).fits_class(class), "{text} should fit {class}");
            }
            for class in no {
                assert!(!pattern(text).fits_class(class), "{text} should not fit {class}");
            }
        };
        check("com.acme.**", &["com/acme/Orders", "com.acme.a.b.C"], &["com/acmeX", "org/acme/A"]);
        check("com.acme.*", &["com/acme/Orders"], &["com/acme/a/B", "com/acme"]);
        check("**Service", &["a/OrderService", "Service"], &["a/ServiceImpl"]);
        check("a.*.C*", &["a/b/C", "a/b/Cat"], &["a/b/c/C", "a/b/D"]);
        check("**.*Impl", &["a/b/XImpl"], &["XImpl2", "a/b/Impl/X"]);
        check("a?c", &["abc"], &["ac", "abbc"]);
        check("**", &["anything", "a/b"], &[]);
        check("com/acme/Orders", &["com.acme.Orders"], &["com.acme.OrdersX"]);
    }

    #[test]
    fn methods() {
        assert!(pattern("com.acme.Orders.place").fits_method("com/acme/Orders", "place"));
        assert!(!pattern("com.acme.Orders.place").fits_method("com/acme/Orders", "replace"));
        assert!(pattern("com.acme.**.place*").fits_method("com/acme/x/Orders", "placeAll"));
        assert!(pattern("com.acme.**").fits_method("com/acme/x/Orders", "anything"));
        assert!(pattern("com.acme.Orders.place").fits_some_method("com/acme/Orders"));
        assert!(!pattern("com.acme.Orders.place").fits_some_method("com/acme/Other"));
    }

    #[test]
    fn borders_can_be_written_in_several_ways() {
        for text in ["com.acme.Orders.place", "com/acme/Orders#place", "com.acme.Orders::place"] {
            assert!(pattern(text).fits_method("com/acme/Orders", "place"), "{text}");
        }
    }

    #[test]
    fn addresses_of_hidden_classes_are_no_parts() {
        assert!(pattern("a.*").fits_class("a/B.0x00007f12"));
        assert!(Pattern::to_search("a.*.run").is_found_in("a.B$$Lambda/0x00007f12.run"));
    }

    #[test]
    fn searches_find_what_people_mean() {
        let name = "com.acme.Orders$Line.place";
        for text in [
            "com.acme",
            "Orders",
            "Line",
            "Orders$Line.place",
            "place",
            "com/acme/Orders",
            name,
            "com.**",
            "**.place",
            "com.*.*.place",
            "**Line.*",
            "com.acme.Orders?Line.plac?",
            "Line::place",
            "Line#place",
            "place()",
        ] {
            assert!(Pattern::to_search(text).is_found_in(name), "{text}");
        }
        for text in ["acm", "Order", "com.*.place", "*", "plac", "", "com.*", "*Line*", "plac?"] {
            assert!(!Pattern::to_search(text).is_found_in(name), "{text}");
        }
        assert!(Pattern::to_search("place").is_found_at_end_of(name));
        assert!(!Pattern::to_search("Line").is_found_at_end_of(name));
        assert!(!Pattern::to_search("CodeCache::find").is_found_in("CodeCache::find_blob"));
        assert!(Pattern::to_search("CodeCache::find").is_found_in("CodeCache::find"));
        assert!(Pattern::to_search("[no stack]").is_found_in("[no stack]"));
    }

    #[test]
    fn a_pattern_of_many_stars_ends_soon() {
        let pattern = Pattern::to_search(&"*a".repeat(200));
        assert!(!pattern.is_found_in(&"a".repeat(5000).replace("aaaaa", "aaaab")[..4000]));
    }

    /// All texts of up to five letters against patterns of up to five, compared with what the
    /// grammar says.
    #[test]
    fn the_matcher_does_what_the_grammar_says() {
        fn says(pattern: &[u8], text: &[u8]) -> bool {
            match pattern {
                [] => text.is_empty(),
                [b'*', b'*', rest @ ..] => (0..=text.len()).any(|at| says(rest, &text[at..])),
                [b'*', rest @ ..] => (0..=text.len())
                    .take_while(|at| !text[..*at].contains(&b'.'))
                    .any(|at| says(rest, &text[at..])),
                [one, rest @ ..] => {
                    text.first().is_some_and(|b| b == one || (*one == b'?' && *b != b'.'))
                        && says(rest, &text[1..])
                }
            }
        }
        let words = |letters: &[u8], most: u32| -> Vec<Vec<u8>> {
            let base = letters.len();
            let word = |length: u32, n: usize| -> Vec<u8> {
                (0..length).map(|at| letters[n / base.pow(at) % base]).collect()
            };
            (0..=most)
                .flat_map(|l| (0..base.pow(l)).map(move |n| (l, n)))
                .map(|(l, n)| word(l, n))
                .collect()
        };
        let texts = words(b"ab.", 5);
        for pattern in words(b"a.*?", 5) {
            for text in &texts {
                let found = fits(&pattern, text);
                let [p, t] = [&pattern, text].map(|bytes| String::from_utf8_lossy(bytes));
                assert_eq!(found, says(&pattern, text), "{p} and {t}");
            }
        }
    }

    #[test]
    fn bad_patterns_are_named() {
        assert_eq!("".parse::<Pattern>(), Err(PatternError::Empty));
        assert_eq!("a b".parse::<Pattern>(), Err(PatternError::BadCharacter(' ')));
    }
}
