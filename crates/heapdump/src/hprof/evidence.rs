//! What a header and a reference take, which a `.hprof` file does not say and which depends on the
//! JVM's flags. Objects that follow each other prove it: one is never larger than the distance to
//! the next.

use super::record::Width;
use crate::classes::Type;
use crate::layout::Layout;
use serde::{Deserialize, Serialize};

/// What distances between neighbours have shown.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// Arrays of references for which eight bytes each have no room.
    narrow: bool,
    /// The largest headers of arrays that were shown to be impossible: 16, 20, 24.
    not_16: bool,
    not_20: bool,
    not_24: bool,
    arrays: u64,
    /// All addresses, or-ed.
    addresses: u64,
}

impl Evidence {
    pub fn address(&mut self, address: u64) {
        self.addresses |= address;
    }

    /// An array with a neighbour at this distance.
    pub fn array(&mut self, kind: Type, length: u32, distance: u64) {
        let length = u64::from(length);
        let fits =
            |header: u64, size: u64| distance >= (header + length * size).next_multiple_of(8);
        match kind {
            Type::Reference => self.narrow |= !fits(12, 8),
            Type::Byte => {
                self.arrays += 1;
                self.not_16 |= !fits(16, 1);
                self.not_20 |= !fits(20, 1);
                self.not_24 |= !fits(24, 1);
            }
            _ => {}
        }
    }

    pub fn merge(&mut self, other: &Evidence) {
        self.narrow |= other.narrow;
        self.not_16 |= other.not_16;
        self.not_20 |= other.not_20;
        self.not_24 |= other.not_24;
        self.arrays += other.arrays;
        self.addresses |= other.addresses;
    }
}

/// With fewer arrays, what was not refuted is not proven.
const ENOUGH: u64 = 1000;

impl Evidence {
    pub fn layout(&self, width: Width) -> Layout {
        let evidence = self;
        if width == Width::Four {
            return Layout { reference: 4, header: 8, array_header: 12, alignment: 8 };
        }
        let is_sure = evidence.arrays >= ENOUGH;
        let (header, array_header) = match evidence {
            // Compact headers.
            Evidence { not_16: true, .. } => (8, 12),
            Evidence { not_20: true, .. } => (12, 16),
            // Without compressed class pointers.
            Evidence { not_24: true, .. } if is_sure => (16, 20),
            _ if is_sure => (16, 24),
            _ => (12, 16),
        };
        let reference = if evidence.narrow || !is_sure { 4 } else { 8 };
        let alignment = 1 << evidence.addresses.trailing_zeros().clamp(3, 8);
        Layout { reference, header, array_header, alignment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_prove_headers_and_references() {
        let mut evidence = Evidence::default();
        let usual = Layout { reference: 4, header: 12, array_header: 16, alignment: 8 };
        evidence.address(0x1008);
        assert_eq!(evidence.layout(Width::Eight), usual);
        for length in 0..2000 {
            let size = (16 + u64::from(length)).next_multiple_of(8);
            evidence.array(Type::Byte, length, size);
        }
        let wide = evidence.layout(Width::Eight);
        assert_eq!(wide, Layout { reference: 8, ..usual });
        evidence.array(Type::Reference, 10, 56);
        assert_eq!(evidence.layout(Width::Eight), usual);
        evidence.array(Type::Byte, 4, 16);
        let compact = Layout { header: 8, array_header: 12, ..usual };
        assert_eq!(evidence.layout(Width::Eight), compact);
        assert_eq!(usual.array_size(Type::Long, 3), 40);
        assert_eq!(compact.array_size(Type::Long, 3), 40);
        assert_eq!(compact.array_size(Type::Int, 1), 16);
    }
}
