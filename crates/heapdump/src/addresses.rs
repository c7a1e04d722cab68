//! Addresses of objects in the order in which a walk meets them, until they have numbers.
//!
//! Each is written as its distance from the one before. Most objects follow each other closely, so
//! that takes a byte or two, where the address itself would take eight.

#[derive(Debug)]
pub struct Addresses {
    bytes: Vec<u8>,
    last: u64,
    pub count: u64,
    pub lowest: u64,
    pub highest: u64,
    /// All of them, or-ed.
    pub any: u64,
}

impl Default for Addresses {
    fn default() -> Addresses {
        Addresses { bytes: Vec::new(), last: 0, count: 0, lowest: u64::MAX, highest: 0, any: 0 }
    }
}

impl Addresses {
    #[inline]
    pub fn push(&mut self, address: u64) {
        let distance = address.wrapping_sub(self.last).cast_signed();
        // A sign in the lowest bit, so that small distances are small either way.
        let mut left = (distance << 1 ^ distance >> 63).cast_unsigned();
        while left >= 0x80 {
            self.bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.bytes.push(left as u8);
        self.last = address;
        self.count += 1;
        self.lowest = self.lowest.min(address);
        self.highest = self.highest.max(address);
        self.any |= address;
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> + Clone {
        let mut bytes = self.bytes.iter();
        let mut last = 0_u64;
        std::iter::from_fn(move || {
            let mut byte = *bytes.next()?;
            let mut bits = u64::from(byte & 0x7f);
            let mut shift = 7;
            while byte >= 0x80 {
                byte = *bytes.next()?;
                bits |= u64::from(byte & 0x7f) << shift;
                shift += 7;
            }
            let distance = (bits >> 1) ^ (bits & 1).wrapping_neg();
            last = last.wrapping_add(distance);
            Some(last)
        })
    }
}

impl FromIterator<u64> for Addresses {
    fn from_iter<I: IntoIterator<Item = u64>>(all: I) -> Addresses {
        let mut addresses = Addresses::default();
        all.into_iter().for_each(|address| addresses.push(address));
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_addresses_come_back_in_their_order() {
        let all = [0, 8, 32, 24, 24, 1 << 40, u64::MAX, 0, 1 << 63, (1 << 63) - 1, 7];
        let addresses: Addresses = all.into_iter().collect();
        assert_eq!(addresses.iter().collect::<Vec<_>>(), all);
        assert_eq!((addresses.lowest, addresses.highest), (0, u64::MAX));
        assert_eq!(addresses.count, all.len() as u64);
    }

    #[test]
    fn neighbours_take_a_byte() {
        let addresses: Addresses = (0..1000).map(|n| (1 << 35) + n * 24).collect();
        assert!(addresses.bytes.len() < 1010, "{}", addresses.bytes.len());
    }
}
