//! What a far end prints, on the terminal here: whole lines, in which nothing steers it, and with
//! commands that can be pasted here.

use super::hints;
use crate::cli::HostArgs;
use crate::term;
use anyhow::{Result, bail};
use std::io::Write;
use tare_relay::FromFar;

/// A line that is longer comes in parts.
const LONGEST: usize = 64 << 10;

/// Both streams, each with a line whose end has not come yet.
#[derive(Default)]
pub struct Shown {
    out: Vec<u8>,
    err: Vec<u8>,
    /// What the far side calls a file, and what it is called here.
    renamed: Option<(String, String)>,
    /// What leads there.
    flags: String,
}

impl Shown {
    pub fn new(at: &HostArgs) -> Self {
        Shown { flags: hints::flags(at), ..Shown::default() }
    }

    /// From now on a file is called by its name here.
    pub fn rename(&mut self, there: &str, here: &str) {
        self.renamed = Some((there.to_owned(), here.to_owned())).filter(|_| !there.is_empty());
    }

    /// Text with the names that files have here, and the commands that lead there.
    pub fn named(&self, text: Vec<u8>) -> Vec<u8> {
        let text = match String::from_utf8(text) {
            Ok(text) => text,
            Err(error) => return error.into_bytes(),
        };
        let text = match &self.renamed {
            Some((there, here)) => text.replace(there, here),
            None => text,
        };
        hints::pasteable(&text, &self.flags).into_bytes()
    }

    /// Shows what is the same for every verb. What is not comes back.
    pub fn show(&mut self, said: FromFar) -> Result<Option<FromFar>> {
        match said {
            FromFar::Err(bytes) => {
                if let Some(lines) = whole(&mut self.err, &bytes) {
                    error(&self.named(lines));
                }
            }
            FromFar::Progress(text) if term::shows_progress(false) => term::progress(&text),
            FromFar::Progress(_) | FromFar::Beat => {}
            FromFar::Failed(why) => bail!("the other end: {}", term::plain(&why)),
            FromFar::Hello { .. } => bail!("the other end greets twice"),
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    /// Text for standard output.
    pub fn out(&mut self, bytes: &[u8]) -> Result<()> {
        match whole(&mut self.out, bytes) {
            Some(lines) => print(&self.named(lines)),
            None => Ok(()),
        }
    }

    /// There is no more; what has no end of a line is shown all the same.
    pub fn end(&mut self) -> Result<()> {
        if term::shows_progress(false) {
            term::progress("");
        }
        let (out, err) = (std::mem::take(&mut self.out), std::mem::take(&mut self.err));
        if !err.is_empty() {
            error(&err);
        }
        if out.is_empty() { Ok(()) } else { print(&out) }
    }
}

fn print(bytes: &[u8]) -> Result<()> {
    let mut out = term::stdout();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

fn error(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    errln!("{}", text.strip_suffix('\n').unwrap_or(&text));
}

/// The whole lines that are there with these bytes.
fn whole(pending: &mut Vec<u8>, bytes: &[u8]) -> Option<Vec<u8>> {
    pending.extend_from_slice(bytes);
    let end = match pending.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None if pending.len() > LONGEST => pending.len(),
        None => return None,
    };
    let rest = pending.split_off(end);
    Some(std::mem::replace(pending, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_come_in_two_parts_stay_whole() {
        let mut pending = Vec::new();
        assert_eq!(whole(&mut pending, "gr\u{fc}n".as_bytes()[..3].as_ref()), None);
        let rest = [&"\u{fc}".as_bytes()[1..], b"n\nnext"].concat();
        assert_eq!(whole(&mut pending, &rest).unwrap(), "gr\u{fc}n\n".as_bytes());
        assert_eq!(pending, b"next");
        let long = vec![b'x'; LONGEST];
        assert_eq!(whole(&mut pending, &long).unwrap().len(), LONGEST + 4);
    }
}
