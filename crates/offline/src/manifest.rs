//! Manifests of jars: an entry of the class path is added, all else stays as it is.

/// A line of a manifest has no more bytes than this; longer values go on in the next.
const WIDTH: usize = 72;

const CLASS_PATH: &str = "Class-Path";

/// A manifest that names a jar beside it; `None` if it does already.
pub fn with_class_path(manifest: &[u8], jar: &str) -> Option<Vec<u8>> {
    let end = main_section(manifest);
    let (section, rest) = manifest.split_at_checked(end)?;
    let mut out = Vec::with_capacity(manifest.len() + 64);
    let mut done = false;
    for line in logical_lines(section) {
        let known = line.text.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(CLASS_PATH));
        match known {
            Some((_, value)) if value.split(' ').any(|entry| entry == jar) => return None,
            Some((name, value)) => {
                fold(&format!("{name}: {} {jar}", value.trim_end()), &mut out);
                done = true;
            }
            None => out.extend_from_slice(line.raw),
        }
    }
    if out.is_empty() {
        fold("Manifest-Version: 1.0", &mut out);
    } else if !out.ends_with(b"\n") {
        out.extend_from_slice(b"\r\n");
    }
    if !done {
        fold(&format!("{CLASS_PATH}: {jar}"), &mut out);
    }
    if rest.is_empty() {
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// Where the first section ends, before the empty line.
fn main_section(manifest: &[u8]) -> usize {
    let mut at = 0;
    for line in manifest.split_inclusive(|&b| b == b'\n') {
        if line.iter().all(|&b| b == b'\n' || b == b'\r') {
            return at;
        }
        at += line.len();
    }
    at
}

struct Logical<'a> {
    raw: &'a [u8],
    /// Without its line ends and folds. Only for reading: bytes that are no UTF-8 are replaced.
    text: String,
}

/// Lines, each with those that go on after it.
fn logical_lines(section: &[u8]) -> Vec<Logical<'_>> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut text: Vec<u8> = Vec::new();
    let mut at = 0;
    for line in section.split_inclusive(|&b| b == b'\n') {
        let goes_on = line.starts_with(b" ");
        if !goes_on && at > start {
            lines.push((start..at, std::mem::take(&mut text)));
            start = at;
        }
        let visible = line.strip_suffix(b"\n").unwrap_or(line);
        let visible = visible.strip_suffix(b"\r").unwrap_or(visible);
        text.extend_from_slice(if goes_on { visible.get(1..).unwrap_or(&[]) } else { visible });
        at += line.len();
    }
    if at > start {
        lines.push((start..at, text));
    }
    let whole = |(range, text): (std::ops::Range<usize>, Vec<u8>)| Logical {
        raw: section.get(range).unwrap_or(&[]),
        text: String::from_utf8_lossy(&text).into_owned(),
    };
    lines.into_iter().map(whole).collect()
}

/// Writes a line, in as many pieces as it takes; a character is not divided.
fn fold(line: &str, out: &mut Vec<u8>) {
    let mut width = 0;
    for character in line.chars() {
        if width + character.len_utf8() > WIDTH - 2 {
            out.extend_from_slice(b"\r\n ");
            width = 1;
        }
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        width += character.len_utf8();
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifest: &str, expected: &str) {
        let out = with_class_path(manifest.as_bytes(), "r.jar");
        let out = out.map(|out| String::from_utf8(out).expect("text"));
        assert_eq!(out.as_deref().unwrap_or("as it was"), expected, "{manifest:?}");
    }

    #[test]
    fn the_class_path_gets_longer() {
        check("", "Manifest-Version: 1.0\r\nClass-Path: r.jar\r\n\r\n");
        check("A: b\n", "A: b\nClass-Path: r.jar\r\n\r\n");
        check("A: b", "A: b\r\nClass-Path: r.jar\r\n\r\n");
        check("A: b\r\n\r\nName: x\r\n", "A: b\r\nClass-Path: r.jar\r\n\r\nName: x\r\n");
        check(
            "A: b\nclass-path: x.jar\n  y.jar\nC: d\n\n",
            "A: b\nclass-path: x.jar y.jar r.jar\r\nC: d\n\n",
        );
        check("Class-Path: x.jar r.jar\n\n", "as it was");
    }

    #[test]
    fn long_lines_are_folded_as_java_reads_them() {
        let many = format!("Class-Path: {}\n\n", "lib/some-library.jar ".repeat(20));
        let out = with_class_path(many.as_bytes(), "r.jar").expect("changed");
        assert!(out.split(|&b| b == b'\n').all(|line| line.len() <= WIDTH));
        let lines = logical_lines(&out[..main_section(&out)]);
        assert_eq!(lines.len(), 1);
        let path = lines[0].text.strip_prefix("Class-Path: ").expect("the path");
        assert_eq!(path.split_whitespace().count(), 21);
        assert!(path.ends_with("some-library.jar r.jar"), "{path}");
    }
}
