//! What `tare check` compares with: a text that people can read, and that git merges and shows well.
//! One line per figure, cases and methods in the order of their names, nothing that changes by itself.

use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The version of the format below.
const FORMAT: u32 = 1;

const HEAD: &str = "\
# What `tare check` compares with. `tare check --update` writes it; it belongs into version control.
";

/// What is measured of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    pub calls: u64,
    pub bytecodes: u64,
    pub objects: u64,
    pub bytes: u64,
    /// The methods that have a part in it that matters, by name.
    pub methods: BTreeMap<String, Own>,
}

/// What a method executed itself, within a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    pub bytecodes: u64,
    pub calls: u64,
}

/// All cases, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The Java version, `17`: the JDK's share in a profile depends on it.
    pub java: String,
    pub cases: BTreeMap<String, Case>,
}

impl Case {
    /// The figures that are compared, with their names.
    pub fn figures(&self) -> [(&'static str, u64); 3] {
        [("bytecodes", self.bytecodes), ("objects", self.objects), ("bytes", self.bytes)]
    }
}

impl Baseline {
    pub fn to_text(&self) -> String {
        let mut out = HEAD.to_owned();
        let _ = writeln!(out, "format {FORMAT}\njava {}", self.java);
        for (name, case) in &self.cases {
            let _ = writeln!(out, "\ncase {name}\n  calls {}", case.calls);
            for (what, value) in case.figures() {
                let _ = writeln!(out, "  {what} {value}");
            }
            for (name, own) in &case.methods {
                let Own { bytecodes, calls } = own;
                let _ = writeln!(out, "  method {name}  bytecodes {bytecodes}  calls {calls}");
            }
        }
        out
    }

    pub fn parse(text: &str) -> Result<Self> {
        let mut baseline = Baseline::default();
        let mut case: Option<&mut Case> = None;
        let mut format = None;
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let odd = || anyhow::anyhow!("line {number} is not understood: {line:?}");
            let value = |word: &str| word.parse::<u64>().map_err(|_| odd());
            match (words.as_slice(), &mut case) {
                ([] | [_, ..], _) if line.starts_with('#') || words.is_empty() => {}
                (["format", version], None) => format = Some(value(version)?),
                (["java", version], None) => (*version).clone_into(&mut baseline.java),
                (["case", name], _) => {
                    case = Some(baseline.cases.entry((*name).to_owned()).or_default())
                }
                (["calls", n], Some(case)) => case.calls = value(n)?,
                (["bytecodes", n], Some(case)) => case.bytecodes = value(n)?,
                (["objects", n], Some(case)) => case.objects = value(n)?,
                (["bytes", n], Some(case)) => case.bytes = value(n)?,
                (["method", name, "bytecodes", bytecodes, "calls", calls], Some(case)) => {
                    let own = Own { bytecodes: value(bytecodes)?, calls: value(calls)? };
                    case.methods.insert((*name).to_owned(), own);
                }
                _ => return Err(odd()),
            }
        }
        match format {
            Some(version) if version == u64::from(FORMAT) => Ok(baseline),
            Some(version) => bail!("its format is {version}; this version of Tare knows {FORMAT}"),
            None => bail!("it has no line `format {FORMAT}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Baseline {
        let own = Own { bytecodes: 900, calls: 3 };
        let case = Case {
            calls: 1,
            bytecodes: 1000,
            objects: 20,
            bytes: 480,
            methods: [("a.B.hot".to_owned(), own)].into(),
        };
        Baseline { java: "17".to_owned(), cases: [("a.BTest.works".to_owned(), case)].into() }
    }

    #[test]
    fn what_was_written_is_read() {
        let baseline = sample();
        let text = baseline.to_text();
        assert!(text.contains("\ncase a.BTest.works\n  calls 1\n  bytecodes 1000\n"), "{text}");
        assert_eq!(Baseline::parse(&text).unwrap(), baseline);
    }

    #[test]
    fn damage_is_named_by_its_line() {
        let text = sample().to_text();
        let broken = text.replace("objects 20", "objects many");
        assert!(Baseline::parse(&broken).unwrap_err().to_string().contains("line 8"));
        assert!(Baseline::parse("<<<<<<< HEAD\n").is_err());
        assert!(Baseline::parse("").unwrap_err().to_string().contains("format"));
        assert!(Baseline::parse("format 7\n").unwrap_err().to_string().contains("7"));
    }
}
