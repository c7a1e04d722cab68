//! CRC-32 as in zlib, gzip and PNG (reflected, polynomial 0xEDB88320), eight bytes at a time.

const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

pub fn crc32(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut crc = !0_u32;
    for word in words {
        let [a, b, c, d, e, f, g, h] = *word;
        let low = crc ^ u32::from_le_bytes([a, b, c, d]);
        let at = |table: usize, byte: u32| TABLES[table][(byte & 0xff) as usize];
        crc = at(7, low) ^ at(6, low >> 8) ^ at(5, low >> 16) ^ at(4, low >> 24);
        crc ^= at(3, e.into()) ^ at(2, f.into()) ^ at(1, g.into()) ^ at(0, h.into());
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][((crc ^ u32::from(*byte)) & 0xff) as usize];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_well_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
    }
}
