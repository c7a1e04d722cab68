//! Class files to begin with: small ones, from class files, jars or directories.

use std::path::Path;
use tare_offline::{FileError, classes_of};

/// So many; more only make each of them rarer.
const MOST: usize = 500;

/// Longer files are not mutated in a useful way.
const LONGEST: usize = 8 << 10;

/// Evenly over all sizes up to the longest.
pub fn read<'a>(inputs: impl IntoIterator<Item = &'a Path>) -> Result<Vec<Vec<u8>>, FileError> {
    let mut classes: Vec<Vec<u8>> = Vec::new();
    for input in inputs {
        classes_of(input, &|_| true, &mut |_, bytes| {
            if bytes.len() <= LONGEST {
                classes.push(bytes.to_vec());
            }
        })?;
    }
    classes.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    classes.dedup();
    let step = classes.len().div_ceil(MOST).max(1);
    Ok(classes.into_iter().step_by(step).collect())
}
