//! Reads HotSpot's performance-data file (`hsperfdata_USER/PID`): the strings that name what runs,
//! and counters.
//!
//! The JVM writes to the file while we read it, and another user may have planted it: every
//! offset is checked, and what does not fit is skipped. Finding the file is left to `jvm`.

/// The strings that we use; each absent when the JVM has not written it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PerfData {
    /// Main class or jar with its arguments.
    pub command: Option<String>,
    pub java_version: Option<String>,
    pub java_home: Option<String>,
    pub vm_name: Option<String>,
    /// The JVM's arguments, those of the environment and of argument files included.
    pub vm_args: Option<String>,
    /// Flags from a `.hotspotrc` or `-XX:Flags` file.
    pub vm_flags: Option<String>,
}

/// HotSpot cuts strings off at this length, so a longer one may lack its end.
pub(crate) const CUT: usize = 1024;

/// A file has about 300 entries; more than this is no such file.
const MAX_ENTRIES: u32 = 10_000;

struct Reader<'a> {
    bytes: &'a [u8],
    little: bool,
}

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        // Magic, byte order, major version, minor version, "accessible".
        if bytes.get(..4)? != [0xca, 0xfe, 0xc0, 0xc0] || *bytes.get(5)? != 2 {
            return None;
        }
        Some(Reader { bytes, little: *bytes.get(4)? == 1 })
    }

    /// Where the entries are.
    fn entries(&self) -> Option<Vec<usize>> {
        let mut at = self.u32(24)? as usize;
        let mut all = Vec::new();
        for _ in 0..self.u32(28)?.min(MAX_ENTRIES) {
            let Some(length) = self.u32(at).filter(|&length| length >= 20) else { break };
            all.push(at);
            let Some(next) = at.checked_add(length as usize) else { break };
            at = next;
        }
        Some(all)
    }

    fn name(&self, at: usize) -> Option<&[u8]> {
        self.text(at.checked_add(self.u32(at + 4)? as usize)?, 256)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let raw: [u8; 4] = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) })
    }

    fn text(&self, from: usize, longest: usize) -> Option<&[u8]> {
        let tail = self.bytes.get(from..)?;
        let tail = tail.get(..longest.min(tail.len()))?;
        Some(tail.split(|&b| b == 0).next().unwrap_or(tail))
    }
}

/// `None` when these bytes are no performance data of version 2 (all JDKs since 6).
pub(crate) fn parse(bytes: &[u8]) -> Option<PerfData> {
    let reader = Reader::of(bytes)?;
    let mut data = PerfData::default();
    for at in reader.entries()? {
        if let Some((name, text)) = string_entry(&reader, at) {
            let slot = match name {
                b"sun.rt.javaCommand" => Some(&mut data.command),
                b"java.property.java.version" => Some(&mut data.java_version),
                b"java.property.java.home" => Some(&mut data.java_home),
                b"java.property.java.vm.name" => Some(&mut data.vm_name),
                b"java.rt.vmArgs" => Some(&mut data.vm_args),
                b"java.rt.vmFlags" => Some(&mut data.vm_flags),
                _ => None,
            };
            if let Some(slot) = slot {
                *slot = Some(String::from_utf8_lossy(text).into_owned()).filter(|s| !s.is_empty());
            }
        }
    }
    Some(data)
}

/// The value of a counter.
pub(crate) fn number(bytes: &[u8], name: &str) -> Option<u64> {
    let reader = Reader::of(bytes)?;
    let at = reader.entries()?.into_iter().find(|&at| reader.name(at) == Some(name.as_bytes()))?;
    if reader.u32(at + 8)? != 0 || *bytes.get(at + 12)? != b'J' {
        return None;
    }
    let from = at.checked_add(reader.u32(at + 16)? as usize)?;
    let raw: [u8; 8] = bytes.get(from..from.checked_add(8)?)?.try_into().ok()?;
    Some(if reader.little { u64::from_le_bytes(raw) } else { u64::from_be_bytes(raw) })
}

/// Name and value of the entry at `at`, when it is a vector of bytes: a string.
fn string_entry<'a>(reader: &'a Reader<'_>, at: usize) -> Option<(&'a [u8], &'a [u8])> {
    let name = reader.name(at)?;
    let length = reader.u32(at + 8)? as usize;
    if length == 0 || *reader.bytes.get(at + 12)? != b'B' {
        return None;
    }
    let value = reader.text(at.checked_add(reader.u32(at + 16)? as usize)?, length)?;
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        bytes.extend([0; 16]);
        bytes.extend(32_u32.to_le_bytes());
        bytes.extend((entries.len() as u32).to_le_bytes());
        for (name, value) in entries {
            let data_at = 20 + name.len() + 1;
            let length = (data_at + value.len() + 1) as u32;
            bytes.extend(length.to_le_bytes());
            bytes.extend(20_u32.to_le_bytes());
            bytes.extend((value.len() as u32 + 1).to_le_bytes());
            bytes.extend([b'B', 0, 5, 1]);
            bytes.extend((data_at as u32).to_le_bytes());
            bytes.extend(name.bytes().chain([0]));
            bytes.extend(value.bytes().chain([0]));
        }
        bytes
    }

    #[test]
    fn strings_are_found_by_name() {
        let bytes = file(&[
            ("sun.rt.javaCommand", "com.example.Main --port 80"),
            ("other", "x"),
            ("java.property.java.version", "17.0.21"),
            ("java.rt.vmFlags", ""),
        ]);
        let data = parse(&bytes).unwrap();
        assert_eq!(data.command.as_deref(), Some("com.example.Main --port 80"));
        assert_eq!(data.java_version.as_deref(), Some("17.0.21"));
        assert_eq!(data.vm_flags, None);
    }

    /// A counter behind the other entries of a file.
    fn with_counter(mut bytes: Vec<u8>, name: &str, value: u64) -> Vec<u8> {
        let entries = u32::from_le_bytes(bytes[28..32].try_into().unwrap());
        bytes[28..32].copy_from_slice(&(entries + 1).to_le_bytes());
        let data_at = 20 + name.len() as u32 + 1;
        for word in [data_at + 8, 20, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([b'J', 0, 4, 2]);
        bytes.extend(data_at.to_le_bytes());
        bytes.extend(name.bytes().chain([0]));
        bytes.extend(value.to_le_bytes());
        bytes
    }

    #[test]
    fn counters_are_found_by_name() {
        let bytes = with_counter(file(&[("java.rt.vmArgs", "-Xrs")]), "sun.rt.safepointTime", 4711);
        assert_eq!(number(&bytes, "sun.rt.safepointTime"), Some(4711));
        assert_eq!(number(&bytes, "java.rt.vmArgs"), None, "a text");
        assert_eq!(number(&bytes, "sun.rt"), None);
    }

    #[test]
    fn damage_is_survived() {
        let good = file(&[("sun.rt.javaCommand", "Main"), ("java.rt.vmArgs", "-Xrs")]);
        let good = with_counter(good, "a.counter", 7);
        for cut in 0..good.len() {
            let _ = parse(&good[..cut]);
            let _ = number(&good[..cut], "a.counter");
        }
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                let _ = parse(&bad);
                let _ = number(&bad, "a.counter");
            }
        }
        assert_eq!(parse(b""), None);
        assert_eq!(parse(&[0xff; 4096]), None);
    }
}
