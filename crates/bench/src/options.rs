//! The options that small benchmarks share.

use super::workloads;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

pub struct Options<'a> {
    pub jdk: u32,
    pub tare: Option<PathBuf>,
    pub quick: bool,
    pub write_docs: bool,
    /// What only the benchmark itself knows, in its order.
    pub rest: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// `None` if the help was asked for, and shown.
    pub fn read(words: &[&'a str], help: &str, jdk: u32) -> Result<Option<Self>> {
        let rest = Vec::new();
        let mut options = Options { jdk, tare: None, quick: false, write_docs: false, rest };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--help" | "-h" => {
                    print!("{help}");
                    return Ok(None);
                }
                "--jdk" => options.jdk = value()?.parse().context("--jdk needs one number")?,
                "--tare" => options.tare = Some(PathBuf::from(value()?)),
                "--quick" => options.quick = true,
                "--write-docs" => options.write_docs = true,
                other => options.rest.push(other),
            }
        }
        Ok(Some(options))
    }

    /// What is left if it is `--rounds N` and names of workloads.
    pub fn rounds_and_names(&self) -> Result<(Option<usize>, Vec<&'a str>)> {
        let (mut rounds, mut names) = (None, Vec::new());
        let mut rest = self.rest.iter();
        while let Some(word) = rest.next() {
            match *word {
                "--rounds" => {
                    let number = rest.next().and_then(|n| n.parse().ok());
                    let number = number.filter(|n: &usize| *n > 0);
                    rounds = Some(number.context("--rounds needs a number above 0")?);
                }
                name if workloads::names().any(|known| known == name) => names.push(name),
                other => bail!("{other} is neither an option nor a workload; see --help"),
            }
        }
        Ok((rounds, names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_is_read_and_the_rest_is_left() {
        let words = ["--jdk", "17", "h2", "--write-docs", "--minutes", "3"];
        let options = Options::read(&words, "", 25).unwrap().unwrap();
        assert_eq!((options.jdk, options.write_docs, options.quick), (17, true, false));
        assert_eq!(options.rest, ["h2", "--minutes", "3"]);
        assert!(Options::read(&["-h"], "", 25).unwrap().is_none());
        assert!(Options::read(&["--jdk", "x"], "", 25).is_err());
        assert!(Options::read(&["--tare"], "", 25).is_err());
    }

    #[test]
    fn rounds_and_names_are_read_and_nothing_else() {
        let of = |words: &[&'static str]| {
            let options = Options::read(words, "", 25).unwrap().unwrap();
            options.rounds_and_names()
        };
        assert_eq!(of(&["h2", "--rounds", "3"]).unwrap(), (Some(3), vec!["h2"]));
        assert_eq!(of(&[]).unwrap(), (None, Vec::new()));
        for bad in [&["--rounds"][..], &["--rounds", "0"], &["--round", "3"], &["h3"]] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
