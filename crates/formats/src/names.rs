//! From the text of a frame back to what it names. Formats of plain text keep neither the kind of a
//! frame nor where the class ends; the shape of the text tells most of it.

use tare_profile::{Execution, Frame, FrameId, Method, MethodKind, Profile};

/// The frame that a text such as `com.acme.Orders.place` stands for.
///
/// The endings `_[j]`, `_[i]`, `_[0]`, `_[1]` and `_[k]` are those of async-profiler and perf's
/// scripts: compiled, inlined, interpreted, compiled by C1, kernel.
pub fn frame(profile: &mut Profile, text: &str) -> FrameId {
    let (text, execution) = match split_ending(text) {
        Some((rest, execution)) => (rest, execution),
        None => (text, Execution::Unknown),
    };
    let kind = if execution == Execution::Kernel { MethodKind::Kernel } else { kind_of(text) };
    let method = method(profile, kind, text);
    let method = profile.methods.intern(method);
    profile.frames.intern(Frame { execution, ..Frame::of(method) })
}

/// A method whose kind is known, from its whole name.
pub fn method(profile: &mut Profile, kind: MethodKind, text: &str) -> Method {
    let (class, name) = match kind {
        MethodKind::Java => text.rsplit_once('.').unwrap_or(("", text)),
        MethodKind::Class => (text, ""),
        MethodKind::Native | MethodKind::Kernel | MethodKind::Special => ("", text),
    };
    let class = match kind {
        // Class names as the JVM writes them. The `/` of a hidden class's number stays.
        MethodKind::Java | MethodKind::Class => with_dots(class),
        _ => class.to_owned(),
    };
    let (class, name) = (profile.strings.intern(&class), profile.strings.intern(name));
    Method { kind, class, name, ..Method::default() }
}

/// A class name with dots. In `a/B$$Lambda/0x1c` the last slash belongs to the name.
pub fn with_dots(class: &str) -> String {
    match class.rfind("/0x") {
        Some(number) => class[..number].replace('/', ".") + &class[number..],
        None => class.replace('/', "."),
    }
}

fn split_ending(text: &str) -> Option<(&str, Execution)> {
    let rest = text.strip_suffix(']')?;
    let (rest, ending) = rest.split_at_checked(rest.len().checked_sub(3)?)?;
    let execution = match ending {
        "_[k" => Execution::Kernel,
        "_[i" => Execution::Inlined,
        "_[j" => Execution::Compiled { tier: 0 },
        "_[1" => Execution::Compiled { tier: 1 },
        "_[0" => Execution::Interpreted,
        _ => return None,
    };
    (!rest.is_empty()).then_some((rest, execution))
}

/// What a text looks like.
pub fn kind_of(text: &str) -> MethodKind {
    if text.starts_with('[') && text.ends_with(']') && !text.ends_with("[]") {
        return MethodKind::Special;
    }
    let Some((class, name)) = text.rsplit_once('.') else {
        let is_array = text.ends_with("[]") && is_class(text.trim_end_matches("[]"));
        return if is_array { MethodKind::Class } else { MethodKind::Native };
    };
    let library = class.starts_with("lib") && (name == "so" || class.contains(".so"));
    if library || !is_class(class) {
        return MethodKind::Native;
    }
    // `java.lang.String` and `byte[][]` are classes, `java.lang.String.length` is not: packages
    // begin with small letters and classes with capital ones, by a custom that few break.
    let begins_small = |part: &str| part.starts_with(|c: char| c.is_lowercase());
    let bare = name.trim_end_matches("[]");
    let class_name = bare.starts_with(char::is_uppercase)
        && class.split(['.', '/']).all(begins_small)
        && is_identifier(bare);
    if bare.len() < name.len() || class_name {
        return if is_identifier(bare) { MethodKind::Class } else { MethodKind::Native };
    }
    let is_name = matches!(name, "<init>" | "<clinit>") || is_identifier(name);
    if is_name { MethodKind::Java } else { MethodKind::Native }
}

fn is_class(text: &str) -> bool {
    let mut parts = text.split(['.', '/']);
    // The number of a hidden class begins with a digit.
    parts.all(|part| is_identifier(part) || (part.starts_with("0x") && part.len() > 2))
}

/// Letters and what compilers of JVM languages put into names besides.
fn is_identifier(text: &str) -> bool {
    let rest = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '+' | '=');
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$')) && chars.all(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_tell_kinds() {
        let check = |kind, texts: &[&str]| {
            for text in texts {
                assert_eq!(kind_of(text), kind, "{text}");
            }
        };
        check(
            MethodKind::Java,
            &[
                "com.acme.Orders.place",
                "java/lang/Thread.run",
                "Main.main",
                "a.B.<init>",
                "a.B$$Lambda/0x00007f.run",
                "a.B$$Lambda.0x00007f.run",
                "k.T.copy-impl",
            ],
        );
        check(MethodKind::Class, &["byte[]", "java.lang.String", "java.lang.String[][]"]);
        check(
            MethodKind::Native,
            &["memcpy", "libc.so.6", "std::vector<int>::push_back", "main.(*T).run", "a b.c d"],
        );
        check(MethodKind::Special, &["[dropped]", "[unknown: no frame pointer]"]);
    }

    #[test]
    fn endings_tell_how_it_ran() {
        let mut profile = Profile::new();
        let mut check = |text: &str, name: &str, kind, execution| {
            let id = frame(&mut profile, text);
            let found = *profile.frames.get(id);
            assert_eq!(profile.method_name(found.method), name);
            assert_eq!((profile.method_of(id).kind, found.execution), (kind, execution), "{text}");
        };
        check("do_futex_[k]", "do_futex", MethodKind::Kernel, Execution::Kernel);
        check("a/B.c_[j]", "a.B.c", MethodKind::Java, Execution::Compiled { tier: 0 });
        check("a/B.c_[0]", "a.B.c", MethodKind::Java, Execution::Interpreted);
        check("_[k]", "_[k]", MethodKind::Native, Execution::Unknown);
        check("ü_[k]", "ü", MethodKind::Kernel, Execution::Kernel);
        check("]", "]", MethodKind::Native, Execution::Unknown);
    }
}
