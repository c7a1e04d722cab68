//! The options that small benchmarks share.

use anyhow::{Context, Result};
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
}
