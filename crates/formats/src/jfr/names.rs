//! Class names: JFR has them as the JVM does, a profile as Java does.

use crate::names::with_dots;

const PRIMITIVES: [(&str, &str); 8] = [
    ("Z", "boolean"),
    ("B", "byte"),
    ("C", "char"),
    ("S", "short"),
    ("I", "int"),
    ("J", "long"),
    ("F", "float"),
    ("D", "double"),
];

/// `java/lang/String` and `[Ljava/lang/String;` as `java.lang.String` and `java.lang.String[]`.
pub fn to_java(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    if dimensions == 0 {
        return with_dots(name);
    }
    let primitive = PRIMITIVES.iter().find(|(code, _)| *code == element);
    let element = match primitive {
        Some((_, name)) => (*name).to_owned(),
        None => {
            let class = element.strip_prefix('L').and_then(|class| class.strip_suffix(';'));
            with_dots(class.unwrap_or(element))
        }
    };
    element + &"[]".repeat(dimensions.min(255))
}

/// The opposite of [`to_java`].
pub fn to_jvm(name: &str) -> String {
    let element = name.trim_end_matches("[]");
    let dimensions = (name.len() - element.len()) / 2;
    let slashes = |class: &str| match class.rfind("/0x") {
        Some(number) => class[..number].replace('.', "/") + &class[number..],
        None => class.replace('.', "/"),
    };
    if dimensions == 0 {
        return slashes(element);
    }
    let primitive = PRIMITIVES.iter().find(|(_, name)| *name == element);
    let element = match primitive {
        Some((code, _)) => (*code).to_owned(),
        None => format!("L{};", slashes(element)),
    };
    "[".repeat(dimensions) + &element
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for (jvm, java) in [
            ("java/lang/String", "java.lang.String"),
            ("[B", "byte[]"),
            ("[[Ljava/lang/String;", "java.lang.String[][]"),
            ("a/B$$Lambda/0x00007f", "a.B$$Lambda/0x00007f"),
            ("Main", "Main"),
        ] {
            assert_eq!(to_java(jvm), java);
            assert_eq!(to_jvm(java), jvm);
        }
    }
}
