//! What `tare check` compares with: a text that people can read, and that git merges and shows
//! well. One line for each case, and for what of it or of the whole is large; in the order of their
//! names, nothing that changes by itself. How long it can get is bounded by the floors below,
//! whatever the program.

use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The version of the format below. Version 1 had lines of their own for the figures of a case, and
/// no methods of the whole; it is still read.
const FORMAT: u64 = 2;

const HEAD: &str = "\
# What `tare check` compares with. `tare check --update` writes it; it belongs into version control.
";

/// A method has a line in a case if it has at least this share of the case, …
const OF_CASE: f64 = 0.01;
/// … and this share of everything: so there are five hundred such lines at most.
const OF_ALL: f64 = 0.002;
/// A method has a line of its own among those of all cases from this share of everything on: a
/// thousand at most. The others are the rest, in one line.
const OF_METHODS: f64 = 0.001;

/// What is measured of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    pub calls: u64,
    pub bytecodes: u64,
    pub objects: u64,
    pub bytes: u64,
    /// All its methods by name, when it was measured; in a baseline those above the floors.
    pub methods: BTreeMap<String, Own>,
}

/// What a method executed itself, within a case or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    pub bytecodes: u64,
    pub calls: u64,
}

impl Own {
    pub fn add(&mut self, other: Own) {
        self.bytecodes += other.bytecodes;
        self.calls += other.calls;
    }
}

/// The methods of all cases, each with the sum of what it executed itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// Those above the floor.
    pub methods: BTreeMap<String, Own>,
    /// The sum of the others.
    pub rest: Own,
}

/// All cases, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The Java version, `17`: the JDK's share in a profile depends on it.
    pub java: String,
    pub cases: BTreeMap<String, Case>,
    /// Of a file; what was measured has it in its cases.
    pub whole: Option<Whole>,
}

impl Case {
    /// The figures that are compared, with their names.
    pub fn figures(&self) -> [(&'static str, u64); 3] {
        [("bytecodes", self.bytecodes), ("objects", self.objects), ("bytes", self.bytes)]
    }
}

impl Baseline {
    pub fn bytecodes(&self) -> u64 {
        self.cases.values().map(|case| case.bytecodes).sum()
    }

    /// The sums of all methods over cases with these names.
    pub fn sums(&self, chosen: impl Fn(&str) -> bool) -> BTreeMap<&str, Own> {
        let mut sums: BTreeMap<&str, Own> = BTreeMap::new();
        for (_, case) in self.cases.iter().filter(|(name, _)| chosen(name)) {
            for (method, own) in &case.methods {
                sums.entry(method).or_default().add(*own);
            }
        }
        sums
    }

    /// As much of what was measured as a file has.
    pub fn folded(&self) -> Self {
        let all = self.bytecodes() as f64;
        let mut whole = Whole::default();
        for (name, own) in self.sums(|_| true) {
            if own.bytecodes as f64 >= all * OF_METHODS {
                whole.methods.insert(name.to_owned(), own);
            } else {
                whole.rest.add(own);
            }
        }
        let mut cases = self.cases.clone();
        for case in cases.values_mut() {
            let least = (case.bytecodes as f64 * OF_CASE).max(all * OF_ALL).max(1.0);
            case.methods.retain(|_, own| own.bytecodes as f64 >= least);
        }
        Baseline { java: self.java.clone(), cases, whole: Some(whole) }
    }

    pub fn to_text(&self) -> String {
        let mut out = HEAD.to_owned();
        let _ = writeln!(out, "format {FORMAT}\njava {}\n", self.java);
        let method = |out: &mut String, name: &str, own: &Own| {
            let Own { bytecodes, calls } = own;
            let _ = writeln!(out, "  method {name}  bytecodes {bytecodes}  calls {calls}");
        };
        for (name, case) in &self.cases {
            let Case { calls, bytecodes, objects, bytes, methods } = case;
            let _ = writeln!(
                out,
                "case {name}  calls {calls}  bytecodes {bytecodes}  objects {objects}  bytes {bytes}"
            );
            methods.iter().for_each(|(name, own)| method(&mut out, name, own));
        }
        if let Some(whole) = &self.whole {
            let Own { bytecodes, calls } = whole.rest;
            let _ = writeln!(out, "\nwhole  rest bytecodes {bytecodes}  calls {calls}");
            whole.methods.iter().for_each(|(name, own)| method(&mut out, name, own));
        }
        out
    }

    pub fn parse(text: &str) -> Result<Self> {
        let mut baseline = Baseline::default();
        let mut at = At::Head;
        let mut format = None;
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let odd = || anyhow::anyhow!("line {number} is not understood: {line:?}");
            let value = |word: &str| word.parse::<u64>().map_err(|_| odd());
            let own = |bytecodes: &str, calls: &str| -> Result<Own> {
                Ok(Own { bytecodes: value(bytecodes)?, calls: value(calls)? })
            };
            match (words.as_slice(), &mut at) {
                ([] | [_, ..], _) if line.starts_with('#') || words.is_empty() => {}
                (["format", version], At::Head) => format = Some(value(version)?),
                (["java", version], At::Head) => (*version).clone_into(&mut baseline.java),
                (["case", name, figures @ ..], _) => {
                    let case = baseline.cases.entry((*name).to_owned()).or_default();
                    for pair in figures.chunks(2) {
                        let [what, n] = pair else { return Err(odd()) };
                        *figure(case, what).ok_or_else(odd)? = value(n)?;
                    }
                    at = At::Case(case);
                }
                (["whole", "rest", "bytecodes", bytecodes, "calls", calls], _) => {
                    let whole = baseline.whole.get_or_insert_default();
                    whole.rest = own(bytecodes, calls)?;
                    at = At::Whole(whole);
                }
                (
                    ["method", name, "bytecodes", bytecodes, "calls", calls],
                    At::Case(Case { methods, .. }) | At::Whole(Whole { methods, .. }),
                ) => {
                    methods.insert((*name).to_owned(), own(bytecodes, calls)?);
                }
                ([what, n], At::Case(case)) => *figure(case, what).ok_or_else(odd)? = value(n)?,
                _ => return Err(odd()),
            }
        }
        match format {
            Some(1 | FORMAT) => Ok(baseline),
            Some(version) => bail!("its format is {version}; this version of Tare knows {FORMAT}"),
            None => bail!("it has no line `format {FORMAT}`"),
        }
    }
}

/// What the lines belong to while a file is read.
enum At<'b> {
    Head,
    Case(&'b mut Case),
    Whole(&'b mut Whole),
}

/// A figure of a case, by its name in the file.
fn figure<'c>(case: &'c mut Case, what: &str) -> Option<&'c mut u64> {
    Some(match what {
        "calls" => &mut case.calls,
        "bytecodes" => &mut case.bytecodes,
        "objects" => &mut case.objects,
        "bytes" => &mut case.bytes,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(methods: &[(&str, u64)]) -> Case {
        let own = |bytecodes| Own { bytecodes, calls: 3 };
        Case {
            calls: 1,
            bytecodes: methods.iter().map(|m| m.1).sum(),
            objects: 20,
            bytes: 480,
            methods: methods.iter().map(|m| (m.0.to_owned(), own(m.1))).collect(),
        }
    }

    fn sample() -> Baseline {
        let case = case(&[("a.B.hot", 900), ("a.B.cold", 9)]);
        let cases = [("a.BTest.works".to_owned(), case)].into();
        Baseline { java: "17".to_owned(), cases, whole: None }
    }

    #[test]
    fn what_was_written_is_read() {
        let baseline = sample().folded();
        let text = baseline.to_text();
        let line = "case a.BTest.works  calls 1  bytecodes 909  objects 20  bytes 480\n";
        assert!(text.contains(line), "{text}");
        assert_eq!(Baseline::parse(&text).unwrap(), baseline);
    }

    /// However many tests and methods there are, the file has a line for each test and a bounded
    /// number of others, and the sums stay.
    #[test]
    fn small_parts_are_folded() {
        let mut all = Baseline { java: "17".to_owned(), ..Baseline::default() };
        for test in 0..3000 {
            let small: Vec<(String, u64)> = (0..30).map(|m| (format!("a.B.m{m}"), 40)).collect();
            let mut methods: Vec<(&str, u64)> = small.iter().map(|m| (&*m.0, m.1)).collect();
            let own = format!("a.B.only{test}");
            methods.push((&own, 60));
            if test == 7 {
                methods.push(("a.B.large", 50_000));
            }
            all.cases.insert(format!("a.Test.t{test}"), case(&methods));
        }
        let folded = all.folded();
        let text = folded.to_text();
        assert!(text.lines().count() < 3000 + 40, "{} lines", text.lines().count());
        assert!(folded.cases["a.Test.t7"].methods.contains_key("a.B.large"));
        let whole = folded.whole.clone().unwrap();
        assert_eq!((whole.methods.len(), whole.methods["a.B.m3"].bytecodes), (31, 3000 * 40));
        let kept: u64 = whole.methods.values().map(|own| own.bytecodes).sum();
        assert_eq!((whole.rest.bytecodes, kept + 180_000), (180_000, all.bytecodes()));
        assert_eq!(Baseline::parse(&text).unwrap(), folded);
    }

    #[test]
    fn the_first_format_is_read() {
        let text = "format 1\njava 17\n\ncase a.BTest.works\n  calls 1\n  bytecodes 909\n  objects 20\n  \
                    bytes 480\n  method a.B.cold  bytecodes 9  calls 3\n  method a.B.hot  bytecodes 900  calls 3\n";
        assert_eq!(Baseline::parse(text).unwrap(), sample());
    }

    #[test]
    fn damage_is_named_by_its_line() {
        let text = sample().folded().to_text();
        for (good, bad) in [("objects 20", "objects many"), ("bytes 480", "bytes"), ("calls", "x")]
        {
            let text = text.replacen(good, bad, 1);
            assert!(Baseline::parse(&text).unwrap_err().to_string().contains("line 5"), "{text}");
        }
        assert!(Baseline::parse("<<<<<<< HEAD\n").is_err());
        assert!(Baseline::parse("").unwrap_err().to_string().contains("format"));
        assert!(Baseline::parse("format 7\n").unwrap_err().to_string().contains("7"));
    }
}
