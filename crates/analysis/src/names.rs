//! Which names a user's pattern means.

/// Which names a user means: `com.acme`, `Orders`, `Orders.place`, `com.acme.*.place`, `com.**`.
///
/// Without a star it means every name that has these words in a row, between dots or dollars. With
/// one it must fit the whole name: `*` is anything without a dot, `**` anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: &str) -> Self {
        // People copy names from stack traces and class files as well.
        Pattern(text.trim().trim_end_matches("()").replace(['/', '#'], ".").replace("::", "."))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn matches(&self, name: &str) -> bool {
        if self.0.contains('*') {
            return glob(self.0.as_bytes(), name.as_bytes());
        }
        let border = |c: Option<char>| c.is_none_or(|c| ".$(/".contains(c));
        !self.0.is_empty()
            && name.match_indices(&self.0).any(|(at, found)| {
                border(name[..at].chars().next_back())
                    && border(name[at + found.len()..].chars().next())
            })
    }

    /// Whether the name ends where the pattern does: `Orders.place` names a method, `Orders` only
    /// its class.
    pub fn matches_end(&self, name: &str) -> bool {
        self.matches(name) && (self.0.contains('*') || name.ends_with(&self.0))
    }
}

/// Linear in the length of the name for each star, never exponential.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    // The places in the pattern that could have been reached after each byte of the name.
    let close = |mut places: Vec<bool>| {
        for at in 0..pattern.len() {
            if places[at] && pattern[at] == b'*' {
                places[at + 1] = true;
            }
        }
        places
    };
    let mut start = vec![false; pattern.len() + 1];
    start[0] = true;
    let mut places = close(start);
    for &byte in name {
        let mut next = vec![false; pattern.len() + 1];
        for at in (0..pattern.len()).filter(|at| places[*at]) {
            if pattern[at] == b'*' {
                let double =
                    pattern.get(at + 1) == Some(&b'*') || at > 0 && pattern[at - 1] == b'*';
                next[at] |= double || byte != b'.';
            } else {
                next[at + 1] |= pattern[at] == byte;
            }
        }
        places = close(next);
    }
    places[pattern.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_people_mean() {
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
            "Line::place",
            "Line#place",
            "place()",
        ] {
            assert!(Pattern::new(text).matches(name), "{text}");
        }
        for text in ["acm", "Order", "com.*.place", "*", "plac", "", "com.*", "*Line*"] {
            assert!(!Pattern::new(text).matches(name), "{text}");
        }
        assert!(Pattern::new("place").matches_end(name));
        assert!(!Pattern::new("Line").matches_end(name));
    }

    #[test]
    fn a_pattern_of_many_stars_ends_soon() {
        let pattern = Pattern::new(&"*a".repeat(200));
        assert!(!pattern.matches(&"a".repeat(5000).replace("aaaaa", "aaaab")[..4000]));
    }
}
