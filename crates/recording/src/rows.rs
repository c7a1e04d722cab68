//! From the rows of a file to the rows of a profile. They are the same while nothing is damaged;
//! where blocks are lost the numbers shift, and what referred to the lost rows has to be told
//! apart.

/// The rows of one table that were read.
#[derive(Default)]
pub struct RowMap {
    /// In the order of the file; usually each continues the one before, and there is one.
    pieces: Vec<Piece>,
}

struct Piece {
    first: u64,
    rows: u64,
    place: u32,
}

impl RowMap {
    /// A map in which row 0 of the file is row 0 of the profile.
    pub fn with_zero() -> Self {
        RowMap { pieces: vec![Piece { first: 0, rows: 1, place: 0 }] }
    }

    /// Rows `first..first + rows` of the file are those from `place` on. Rows come in the order of
    /// their numbers; `false`, and nothing changed, if these do not.
    pub fn add(&mut self, first: u64, rows: u64, place: u32) -> bool {
        if let Some(last) = self.pieces.last_mut() {
            let end = last.first + last.rows;
            if first < end {
                return false;
            }
            if first == end && u64::from(last.place) + last.rows == u64::from(place) {
                last.rows += rows;
                return true;
            }
        }
        self.pieces.push(Piece { first, rows, place });
        true
    }

    pub fn get(&self, row: u64) -> Option<u32> {
        let after = self.pieces.partition_point(|piece| piece.first <= row);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        let into = row - piece.first;
        (into < piece.rows).then(|| piece.place + into as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_shift_after_a_gap_and_lost_ones_are_unknown() {
        let mut map = RowMap::with_zero();
        assert!(map.add(1, 9, 1) && map.add(10, 10, 10));
        assert_eq!(map.pieces.len(), 1, "pieces that continue are one");
        assert!(map.add(30, 5, 20));
        assert!(!map.add(34, 5, 25), "rows out of order");
        let found = [0, 19, 20, 29, 30, 34, 35, u64::MAX].map(|row| map.get(row));
        assert_eq!(found, [Some(0), Some(19), None, None, Some(20), Some(24), None, None]);
    }
}
