//! Types as class files and the JVM spell them, in the words of the source.

use crate::stable::stable;

/// What a type is called in source, in every run alike: `[B` is `byte[]`, `Lcom/acme/Order;` is
/// `com.acme.Order`. `None` if it is no descriptor of one type.
#[must_use]
pub fn type_name(descriptor: &str) -> Option<String> {
    let descriptor = stable(descriptor);
    first_type(&descriptor).filter(|(_, after)| after.is_empty()).map(|(name, _)| name)
}

/// The types of a method's parameters as source code spells them; `None` when it is no descriptor.
#[must_use]
pub fn parameter_names(descriptor: &str) -> Option<Vec<String>> {
    let (mut rest, returns) = descriptor.strip_prefix('(')?.split_once(')')?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (name, after) = first_type(rest)?;
        all.push(name);
        rest = after;
    }
    let is_type = |text| first_type(text).is_some_and(|(_, after)| after.is_empty());
    (returns == "V" || is_type(returns)).then_some(all)
}

/// The first type of a descriptor, and what follows it.
fn first_type(text: &str) -> Option<(String, &str)> {
    let element = text.trim_start_matches('[');
    let (name, after) = match element.chars().next()? {
        'L' => {
            let (name, after) = element[1..].split_once(';')?;
            (name.replace('/', "."), after)
        }
        c => {
            let name = match c {
                'B' => "byte",
                'C' => "char",
                'D' => "double",
                'F' => "float",
                'I' => "int",
                'J' => "long",
                'S' => "short",
                'Z' => "boolean",
                _ => return None,
            };
            (name.to_owned(), &element[1..])
        }
    };
    Some((name + &"[]".repeat(text.len() - element.len()), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_read_as_in_source() {
        let names = parameter_names("(ILjava/lang/String;[[J)V").unwrap();
        assert_eq!(names, ["int", "java.lang.String", "long[][]"]);
        assert_eq!(parameter_names("()[B"), Some(Vec::new()));
        for bad in ["", "(", "(L)V", "(Lx", "([)V", "(I", "(I)", "(I)IJ", "(Q)V"] {
            assert_eq!(parameter_names(bad), None, "{bad}");
        }
    }

    #[test]
    fn types_read_as_in_source_and_the_same_in_every_run() {
        for (descriptor, name) in [
            ("[B", Some("byte[]")),
            ("[[J", Some("long[][]")),
            ("Lcom/acme/Order;", Some("com.acme.Order")),
            ("[[Lcom/acme/Order$Line;", Some("com.acme.Order$Line[][]")),
            ("Lcom/acme/A$$Lambda$14.0x000078a01000;", Some("com.acme.A$$Lambda")),
            ("[Lcom/acme/A$$Lambda.0x000078a01000;", Some("com.acme.A$$Lambda[]")),
            ("Ljdk/proxy2/$Proxy12;", Some("jdk.proxy2.$Proxy")),
            ("I", Some("int")),
            ("", None),
            ("[", None),
            ("Lcom/acme/Order", None),
            ("IJ", None),
            ("V", None),
            ("com/acme/Order", None),
        ] {
            assert_eq!(type_name(descriptor).as_deref(), name, "{descriptor}");
        }
    }
}
