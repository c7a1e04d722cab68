//! The verdict as CI servers show it: Markdown for a job's summary, JUnit XML, annotations.

use super::compare::{TOGETHER, Verdict};
use crate::cli::CheckArgs;
use crate::files;
use anstream::adapter::strip_str;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// GitHub shows ten annotations of a step at most.
const ANNOTATIONS: usize = 10;

/// Tells the verdict in every way that was asked for.
pub fn tell(args: &CheckArgs, verdict: &Verdict) -> Result<()> {
    let cases = plain(verdict);
    let baseline = args.baseline.display().to_string();
    if let Some(path) = &args.summary {
        append(path, &markdown(&baseline, &cases))?;
    }
    write_junit(args, &junit(&cases, None))?;
    if args.annotations {
        let bad = cases.iter().filter_map(|(name, lines)| Some((name, lines.as_ref()?)));
        for (name, lines) in bad.take(ANNOTATIONS) {
            outln!(
                "{}",
                annotation(&baseline, &format!("{name} does more work than before"), lines)
            );
        }
    }
    Ok(())
}

/// Tells that nothing was compared, and why. A server that shows only what it is handed would
/// otherwise show the results of the run before, or none.
pub fn tell_failure(args: &CheckArgs, reason: &str) -> Result<()> {
    if let Some(path) = &args.summary {
        append(path, &format!("### tare check\n\n❌ {}\n", cell(reason)))?;
    }
    write_junit(args, &junit(&[], Some(reason)))?;
    if args.annotations {
        outln!("{}", annotation(&args.baseline.display().to_string(), "tare check failed", reason));
    }
    Ok(())
}

type Cases = Vec<(String, Option<String>)>;

/// The cases without colours; what grew over all of them is one more.
fn plain(verdict: &Verdict) -> Cases {
    let strip = |lines: &String| strip_str(lines).to_string();
    let mut cases: Cases =
        verdict.cases.iter().map(|(name, bad)| (name.clone(), bad.as_ref().map(strip))).collect();
    cases.extend(verdict.whole.as_ref().map(|lines| (TOGETHER.to_owned(), Some(strip(lines)))));
    cases
}

fn markdown(baseline: &str, cases: &Cases) -> String {
    let bad = cases.iter().filter(|(_, lines)| lines.is_some()).count();
    let mut text = "### tare check\n\n".to_owned();
    let (all, baseline) = (cases.len(), cell(baseline));
    if bad == 0 {
        let _ = writeln!(text, "✅ {all} compared with {baseline}; nothing grew.");
        return text;
    }
    let _ = writeln!(text, "❌ {bad} of {all} compared with {baseline} grew or are missing.\n");
    text += "| case | what |\n|---|---|\n";
    for (name, lines) in cases.iter().filter_map(|(name, lines)| Some((name, lines.as_ref()?))) {
        let lines: Vec<String> = lines.lines().map(|line| cell(line.trim())).collect();
        let _ = writeln!(text, "| {} | {} |", cell(name), lines.join("<br>"));
    }
    text
}

/// A text that stays within its cell, and whose names are not taken for markup.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' => out.extend(['\\', char]),
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out
}

fn junit(cases: &[(String, Option<String>)], error: Option<&str>) -> String {
    let failures = cases.iter().filter(|(_, lines)| lines.is_some()).count();
    let (errors, tests) =
        (usize::from(error.is_some()), cases.len() + usize::from(error.is_some()));
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites>\n<testsuite name=\"tare check\" tests=\"{tests}\" failures=\"{failures}\" \
         errors=\"{errors}\" skipped=\"0\">\n"
    );
    for (name, lines) in cases {
        // A method is the last part of a case's name, before its parameters.
        let end = name.find('(').unwrap_or(name.len());
        let (class, method) = match name[..end].rfind('.') {
            Some(dot) => (&name[..dot], &name[dot + 1..]),
            None => ("tare check", name.as_str()),
        };
        let _ = write!(text, "<testcase classname=\"{}\" name=\"{}\"", xml(class), xml(method));
        let _ = match lines {
            None => writeln!(text, "/>"),
            Some(lines) => {
                let first = lines.lines().next().unwrap_or_default().trim();
                let (first, lines) = (xml(first), xml(lines));
                writeln!(text, "><failure message=\"{first}\">{lines}</failure></testcase>")
            }
        };
    }
    if let Some(reason) = error {
        let reason = xml(reason);
        let _ = writeln!(
            text,
            "<testcase classname=\"tare check\" name=\"run\"><error message=\"{reason}\"/></testcase>"
        );
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// XML 1.0 has no way to write most control characters.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\n' => out.push('\n'),
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            char => out.push(char),
        }
    }
    out
}

/// A line that GitHub Actions shows beside the baseline.
fn annotation(file: &str, title: &str, lines: &str) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    format!("::error file={},title={}::{}", property(file), property(title), data(lines.trim_end()))
}

fn append(path: &Path, text: &str) -> Result<()> {
    if path.as_os_str() == "-" {
        out!("{text}");
        return Ok(());
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write the summary to {}", path.display()))
}

fn write_junit(args: &CheckArgs, text: &str) -> Result<()> {
    match &args.junit_xml {
        None => Ok(()),
        Some(path) => files::replace(path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Cases {
        let grown = "  bytecodes 100 → 130  +30.0 %\n    a.B.<init> itself, bytecodes 1 → 9\n";
        vec![
            ("a.B|Test.works(int,a.C)".to_owned(), None),
            ("a.BTest.sl\u{1}ow".to_owned(), Some(grown.to_owned())),
        ]
    }

    #[test]
    fn a_summary_names_what_grew() {
        let text = markdown("perf_1.tare", &cases());
        assert!(text.contains("❌ 1 of 2 compared with perf\\_1.tare"), "{text}");
        assert!(
            text.contains("| a.BTest.sl ow | bytecodes 100 → 130  +30.0 %<br>a.B.&lt;init&gt; ")
        );
        assert!(!text.contains("works"), "{text}");
        let good = markdown("b", &cases()[..1].to_vec());
        assert!(good.contains("✅ 1 compared with b; nothing grew"), "{good}");
    }

    #[test]
    fn junit_has_every_case() {
        let text = junit(&cases(), None);
        assert!(text.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{text}");
        let good = "<testcase classname=\"a.B|Test\" name=\"works(int,a.C)\"/>\n";
        assert!(text.contains(good), "{text}");
        assert!(text.contains("name=\"sl?ow\"><failure message=\"bytecodes 100 → 130  +30.0 %\">"));
        assert!(text.contains("a.B.&lt;init&gt; itself"), "{text}");
        let failed = junit(&[], Some("it ended with \"1\""));
        assert!(failed.contains("errors=\"1\"") && failed.contains("&quot;1&quot;"), "{failed}");
    }

    #[test]
    fn an_annotation_is_one_line() {
        let line = annotation("a,b.tare", "x: 5 % more", "one\ntwo\n");
        assert_eq!(line, "::error file=a%2Cb.tare,title=x%3A 5 %25 more::one%0Atwo");
    }
}
