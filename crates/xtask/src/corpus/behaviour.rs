//! Programs behave the same woven.

use super::Corpus;
use anyhow::Result;

pub fn run(_corpus: &mut Corpus) -> Result<()> {
    Ok(())
}
