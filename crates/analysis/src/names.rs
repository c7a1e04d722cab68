//! What names tell: the package, whether it is the JDK, whether a user's pattern means it.

/// `com.acme` of `com.acme.Orders$Line`; empty for a class without a package.
pub fn package_of(class: &str) -> &str {
    // A hidden class carries an address after a slash, a lambda form dots in it.
    let class = class.split(['/', '[', '(']).next().unwrap_or_default();
    class.rfind('.').map_or("", |dot| &class[..dot])
}

/// Whether a class came with the JDK. `com.sun.` alone is not enough: javac and others live there
/// too, and come with the JDK as well.
pub fn is_jdk_class(class: &str) -> bool {
    const PREFIXES: [&str; 11] = [
        "java.",
        "javax.",
        "jdk.",
        "sun.",
        "com.sun.",
        "jakarta.internal.",
        "netscape.javascript.",
        "org.ietf.jgss.",
        "org.jcp.xml.",
        "org.w3c.dom.",
        "org.xml.sax.",
    ];
    PREFIXES.iter().any(|prefix| class.starts_with(prefix))
}

/// A name without the numbers and words that the JVM, or a library that makes classes as it runs, makes
/// up anew in every run.
pub fn stable(name: &str) -> String {
    const NUMBERED: [&str; 4] =
        ["$Proxy", "GeneratedMethodAccessor", "GeneratedConstructorAccessor", "LambdaForm$"];
    // Followed by a dollar and a word: Byte Buddy's, and what Mockito and Hibernate make with it.
    const LETTERED: [&str; 4] = ["$MockitoMock", "$auxiliary", "$ByteBuddy", "$HibernateProxy"];
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("$$Lambda") {
            out.push_str("$$Lambda");
            // `$$Lambda$14/0x000…` and, from 21 on, `$$Lambda/0x000…`.
            rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit() || "$/x+".contains(c));
        } else if let Some(after) = after_address(rest) {
            rest = after;
        } else if let Some(known) = NUMBERED.iter().find(|known| rest.starts_with(**known)) {
            out.push_str(known);
            rest = rest[known.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        } else if let Some(known) = LETTERED.iter().find(|known| rest.starts_with(**known)) {
            out.push_str(known);
            rest = &rest[known.len()..];
            if let Some(word) = rest.strip_prefix('$') {
                rest = word.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            }
        } else {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    out
}

/// What follows the address of a hidden class: `/0x…`, `+0x…` or `.0x…`, on 17 with a number after it.
fn after_address(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['/', '+', '.'])?.strip_prefix("0x")?;
    let after = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    let number = after.strip_prefix(['/', '.']).filter(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && matches!(rest.as_bytes().get(digits), None | Some(b'.'))
    });
    Some(number.map_or(after, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit())))
}

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
    fn packages() {
        for (class, package) in [
            ("com.acme.Orders$Line", "com.acme"),
            ("Main", ""),
            ("com.acme.Orders$$Lambda/0x00007f.12", "com.acme"),
            ("java.lang.String[]", "java.lang"),
        ] {
            assert_eq!(package_of(class), package, "{class}");
        }
    }

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

    #[test]
    fn made_up_numbers_are_dropped() {
        for (name, expected) in [
            ("a.B$$Lambda$14/0x00000008.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda/0x00007f1204.run", "a.B$$Lambda.run"),
            ("jdk.proxy2.$Proxy12.call", "jdk.proxy2.$Proxy.call"),
            ("sun.GeneratedMethodAccessor7.invoke", "sun.GeneratedMethodAccessor.invoke"),
            ("java.LambdaForm$MH+0x00007fc60c01c800.361695049.invoke", "java.LambdaForm$MH.invoke"),
            ("java.LambdaForm$MH.0x0000000047059400.invoke", "java.LambdaForm$MH.invoke"),
            ("java.LambdaForm$DMH/0x0000000047059400.1x", "java.LambdaForm$DMH.1x"),
            ("a.B1.c2", "a.B1.c2"),
            ("a.B$MockitoMock$YoMD7QPy$auxiliary$gwXAOuef.call", "a.B$MockitoMock$auxiliary.call"),
            ("a.B$ByteBuddy$0SIepMqh.<init>", "a.B$ByteBuddy.<init>"),
            ("a.B$auxiliaryTable.put", "a.B$auxiliaryTable.put"),
        ] {
            assert_eq!(stable(name), expected);
        }
    }
}
