//! Patterns for classes and methods, as users write them: `com.acme.**`, `com.acme.Orders.place`.
//!
//! `**` stands for anything, `*` for anything without a dot, `?` for one character. A class may be
//! written with dots or slashes.

use std::fmt;

/// A checked pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
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

impl std::str::FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if let Some(bad) = text.chars().find(|c| c.is_whitespace() || ";[,".contains(*c)) {
            return Err(PatternError::BadCharacter(bad));
        }
        Ok(Pattern { text: text.replace('/', ".") })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Pattern {
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
}

/// Matches without recursion: on a mismatch the text moves on by one behind the last star. A
/// single star that would have to swallow a dot gives way to the double star before it.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let separator = |byte: u8| byte == b'.' || byte == b'/';
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
            (Some(&a), Some(&b)) if a == b'?' || a == b || (a == b'.' && separator(b)) => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        match (single, double) {
            (Some((at, from)), _) if text.get(from).is_some_and(|&b| !separator(b)) => {
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
    fn bad_patterns_are_named() {
        assert_eq!("".parse::<Pattern>(), Err(PatternError::Empty));
        assert_eq!("a b".parse::<Pattern>(), Err(PatternError::BadCharacter(' ')));
    }
}
