//! Millions of numbers in as few bits as they need, still read at any place.
//!
//! Numbers lie in blocks. A block has its least number, and for each how much more it is, in as
//! many bits as the largest difference takes: none where all are the same. Numbers of neighbours
//! are alike (the contexts of rows rise, most calls of a context are few), so that four bytes do
//! for what took sixteen.

/// Numbers of a block. Fewer waste bits on what stands beside them, more on the largest of them.
pub(crate) const BLOCK: usize = 64;

/// What a block has.
pub(crate) type Numbers = [i64; BLOCK];

/// Behind the last bits there are so many bytes, so that eight can be read wherever bits begin.
const PADDING: usize = 8;

/// More bits than this may lie across nine bytes; such differences take eight whole bytes.
const MOST_BITS: u32 = 56;

/// A list of numbers that only grows. Unsigned numbers keep their bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packed {
    blocks: Vec<Block>,
    bits: Vec<u8>,
    /// The last ones, of which there is no whole block yet.
    open: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    least: i64,
    /// Where its bits begin, in bytes, and how many each number has in the lowest byte.
    place: u64,
}

impl Block {
    fn width(self) -> usize {
        (self.place & 0xff) as usize
    }

    fn start(self) -> usize {
        (self.place >> 8) as usize
    }
}

impl Packed {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, number: i64) {
        self.open.push(number);
        if self.open.len() == BLOCK {
            self.seal();
        }
    }

    fn seal(&mut self) {
        let least = self.open.iter().copied().min().unwrap_or(0);
        let more = |number: i64| number.wrapping_sub(least).cast_unsigned();
        let most = self.open.iter().fold(0, |all, number| all | more(*number));
        let width = match u64::BITS - most.leading_zeros() {
            width @ ..=MOST_BITS => width,
            _ => u64::BITS,
        };
        self.bits.truncate(self.bits.len().saturating_sub(PADDING));
        let place = (self.bits.len() as u64) << 8 | u64::from(width);
        self.blocks.push(Block { least, place });
        if width > 0 {
            let mut bytes = [0; BLOCK * 8];
            let mut words = bytes.as_chunks_mut::<8>().0.iter_mut();
            let (mut waiting, mut count) = (0_u64, 0);
            for number in &self.open {
                let bits = more(*number);
                waiting |= bits << count;
                count += width;
                if count >= u64::BITS {
                    words.next().into_iter().for_each(|word| *word = waiting.to_le_bytes());
                    count -= u64::BITS;
                    waiting = if count == 0 { 0 } else { bits >> (width - count) };
                }
            }
            // Sixty-four times as many bits are whole words.
            debug_assert_eq!(count, 0);
            self.bits.extend_from_slice(&bytes[..width as usize * BLOCK / 8]);
        }
        self.open.clear();
        self.bits.extend_from_slice(&[0; PADDING]);
    }

    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, row: usize) -> Option<i64> {
        let Some(block) = self.blocks.get(row / BLOCK) else {
            return self.open.get(row - self.blocks.len() * BLOCK).copied();
        };
        Some(self.number(*block, row % BLOCK))
    }

    #[inline]
    fn number(&self, block: Block, at: usize) -> i64 {
        let width = block.width();
        let bit = at * width;
        let bytes = self.bits[block.start() + bit / 8..].first_chunk();
        let bits = u64::from_le_bytes(*bytes.unwrap_or(&[0; PADDING])) >> (bit % 8);
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        block.least.wrapping_add((bits & mask).cast_signed())
    }

    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        let mut numbers = [0; BLOCK];
        let mut block = 0;
        let mut known = self.unpack(block, &mut numbers);
        let mut at = 0;
        std::iter::from_fn(move || {
            if at == known {
                if known < BLOCK {
                    return None;
                }
                block += 1;
                at = 0;
                known = self.unpack(block, &mut numbers);
                if known == 0 {
                    return None;
                }
            }
            at += 1;
            numbers.get(at - 1).copied()
        })
    }

    /// A block, and how many numbers it has.
    pub(crate) fn unpack(&self, block: usize, numbers: &mut Numbers) -> usize {
        match self.blocks.get(block) {
            Some(found) if found.width() == 0 => {
                numbers.fill(found.least);
                BLOCK
            }
            Some(found) => {
                for (at, number) in numbers.iter_mut().enumerate() {
                    *number = self.number(*found, at);
                }
                BLOCK
            }
            None if block == self.blocks.len() => {
                numbers[..self.open.len()].copy_from_slice(&self.open);
                self.open.len()
            }
            None => 0,
        }
    }

    /// Where a row is: its block, and the place in it. Lists of one length have the same.
    pub(crate) fn place(row: usize) -> (usize, usize) {
        (row / BLOCK, row % BLOCK)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let open = self.open.capacity() * size_of::<i64>();
        self.blocks.capacity() * size_of::<Block>() + self.bits.capacity() + open
    }
}

impl Extend<i64> for Packed {
    fn extend<I: IntoIterator<Item = i64>>(&mut self, numbers: I) {
        numbers.into_iter().for_each(|number| self.push(number));
    }
}

impl FromIterator<i64> for Packed {
    fn from_iter<I: IntoIterator<Item = i64>>(numbers: I) -> Self {
        let mut packed = Self::default();
        packed.extend(numbers);
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[i64]) {
        let packed: Packed = numbers.iter().copied().collect();
        assert_eq!(packed.len(), numbers.len());
        assert_eq!(packed.iter().collect::<Vec<_>>(), numbers);
        for (row, number) in numbers.iter().enumerate() {
            assert_eq!(packed.get(row), Some(*number), "{row}");
        }
        assert_eq!(packed.get(numbers.len()), None);
        let mut spent = packed.iter();
        spent.by_ref().for_each(drop);
        assert_eq!((spent.next(), spent.next()), (None, None));
    }

    #[test]
    fn numbers_of_every_width_come_back() {
        for length in [0, 1, 63, 64, 65, 128, 300] {
            for width in 0..=64 {
                let most = if width == 64 { u64::MAX } else { (1_u64 << width) - 1 };
                let number = |n: u64| {
                    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    if n % 7 == 3 { most } else { mixed & most }
                };
                check(&(0..length).map(|n| number(n).cast_signed()).collect::<Vec<_>>());
                check(&(0..length).map(|n| -(number(n) as i64 / 2)).collect::<Vec<_>>());
            }
        }
        check(&[[i64::MIN; 40], [i64::MAX; 40]].concat());
    }

    #[test]
    fn alike_numbers_take_little_and_equal_ones_next_to_nothing() {
        let rising: Packed = (0..64_000).collect();
        assert!(rising.memory() < 64_000 * 3, "{}", rising.memory());
        let mut equal: Packed = std::iter::repeat_n(7, 64_000).collect();
        assert!(equal.memory() < 64_000, "{}", equal.memory());
        equal.clear();
        assert_eq!((equal.len(), equal.memory()), (0, 0));
    }
}
