//! The formats that can be written, and the endings of file names that ask for them.

use std::path::Path;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Collapsed,
    Html,
    Pprof,
    Jfr,
    Speedscope,
    Firefox,
    Chrome,
    Otlp,
    Callgrind,
}

impl Format {
    pub const ALL: [Format; 9] = [
        Format::Collapsed,
        Format::Html,
        Format::Pprof,
        Format::Jfr,
        Format::Speedscope,
        Format::Firefox,
        Format::Chrome,
        Format::Otlp,
        Format::Callgrind,
    ];

    /// The endings that ask for it, the customary one first.
    pub fn endings(self) -> &'static [&'static str] {
        match self {
            Format::Collapsed => &[".collapsed", ".folded", ".txt"],
            Format::Html => &[".html", ".htm"],
            Format::Pprof => &[".pb.gz", ".pprof", ".pb"],
            Format::Jfr => &[".jfr"],
            Format::Speedscope => &[".speedscope.json", ".speedscope"],
            Format::Firefox => &[".firefox.json", ".firefox.json.gz"],
            Format::Chrome => &[".trace.json", ".trace.json.gz"],
            Format::Otlp => &[".otlp"],
            Format::Callgrind => &[".callgrind", ".callgrind.out"],
        }
    }

    /// What opens it.
    pub fn about(self) -> &'static str {
        match self {
            Format::Collapsed => {
                "collapsed stacks, one per line, for scripts and flame graph tools"
            }
            Format::Html => "interactive flame graph in one file, for any browser",
            Format::Pprof => "for `go tool pprof` and continuous profilers",
            Format::Jfr => {
                "for JDK Mission Control, `jfr` and everything that reads Flight Recorder"
            }
            Format::Speedscope => "for speedscope",
            Format::Firefox => "for the Firefox Profiler",
            Format::Chrome => "timeline for Perfetto and chrome://tracing",
            Format::Otlp => "OpenTelemetry profiles (v1development), protobuf",
            Format::Callgrind => "for KCachegrind, QCachegrind and callgrind_annotate",
        }
    }

    /// Whether [`crate::open`] reads it too.
    pub fn is_read(self) -> bool {
        matches!(self, Format::Collapsed | Format::Pprof | Format::Jfr)
    }

    /// The format of a file by its name, and whether it is to be packed by gzip. Any ending may be
    /// followed by `.gz`.
    pub fn of_path(path: &Path) -> Option<(Format, bool)> {
        let name = path.file_name()?.to_str()?.to_lowercase();
        if name.starts_with("callgrind.out") {
            return Some((Format::Callgrind, false));
        }
        let ask = |name: &str| {
            Format::ALL
                .into_iter()
                .find(|format| format.endings().iter().any(|ending| name.ends_with(ending)))
        };
        match name.strip_suffix(".gz") {
            Some(rest) => ask(rest).map(|format| (format, true)),
            // pprof is always packed, unless it is asked for by `.pb`.
            None if name.ends_with(".pprof") => Some((Format::Pprof, true)),
            None => ask(&name).map(|format| (format, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_ask_for_formats() {
        let check = |name: &str, expected| {
            assert_eq!(Format::of_path(Path::new(name)), expected, "{name}");
        };
        check("a/x.pb.gz", Some((Format::Pprof, true)));
        check("x.pprof", Some((Format::Pprof, true)));
        check("x.pb", Some((Format::Pprof, false)));
        check("X.HTML", Some((Format::Html, false)));
        check("x.collapsed.gz", Some((Format::Collapsed, true)));
        check("x.firefox.json.gz", Some((Format::Firefox, true)));
        check("x.trace.json", Some((Format::Chrome, false)));
        check("callgrind.out.4711", Some((Format::Callgrind, false)));
        check("x.json", None);
        check("x", None);
    }

    #[test]
    fn every_customary_ending_leads_back() {
        for format in Format::ALL {
            for ending in format.endings() {
                let name = format!("x{ending}");
                assert_eq!(Format::of_path(Path::new(&name)).unwrap().0, format, "{name}");
            }
        }
    }
}
