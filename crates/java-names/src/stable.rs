//! What a class is called in every run alike.

/// A name without the numbers and words that the JVM, or a library that makes classes as it runs,
/// makes up anew in every run.
#[must_use]
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

/// What follows the address of a hidden class: `/0x…`, `+0x…` or `.0x…`, on 17 with a number after
/// it.
fn after_address(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['/', '+', '.'])?.strip_prefix("0x")?;
    let after = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    let number = after.strip_prefix(['/', '.']).filter(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && matches!(rest.as_bytes().get(digits), None | Some(b'.'))
    });
    Some(number.map_or(after, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;

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
