//! What HotSpot compiled before still compiles woven.

use super::Corpus;
use anyhow::Result;

pub fn run(_corpus: &mut Corpus) -> Result<()> {
    Ok(())
}
