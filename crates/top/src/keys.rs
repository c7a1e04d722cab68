//! Keys out of the bytes that a terminal sends.

/// A key that was pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    Char(char),
    /// With the control key, as a small letter.
    Ctrl(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    BackTab,
    Enter,
    Esc,
    Backspace,
}

/// Bytes of which no key has been made yet: sequences may come in pieces.
#[derive(Default, Debug)]
pub struct Keys {
    pending: Vec<u8>,
}

/// A sequence that is longer is none.
const LONGEST: usize = 32;

impl Keys {
    /// The keys that are whole.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((length, key)) = next(&self.pending) {
            self.pending.drain(..length);
            keys.extend(key);
        }
        keys
    }

    /// Whether there is a beginning of which nobody knows yet what it is.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Nothing has come for a while: what is there is whole. A lone escape is the key of that name.
    pub fn settle(&mut self) -> Vec<Key> {
        match std::mem::take(&mut self.pending).as_slice() {
            [0x1b] => vec![Key::Esc],
            _ => Vec::new(),
        }
    }
}

/// How many bytes the first key has, and the key, unless it is one that we do not know; `None` as
/// long as that is not clear.
fn next(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let first = *bytes.first()?;
    match first {
        0x1b => sequence(bytes),
        b'\r' | b'\n' => Some((1, Some(Key::Enter))),
        b'\t' => Some((1, Some(Key::Tab))),
        0x7f | 0x08 => Some((1, Some(Key::Backspace))),
        0 => Some((1, None)),
        1..=0x1f => Some((1, Some(Key::Ctrl(char::from(first + b'`'))))),
        _ => {
            let length = match first {
                0xf0..=0xf4 => 4,
                0xe0..=0xef => 3,
                0xc2..=0xdf => 2,
                _ => 1,
            };
            let bytes = bytes.get(..length)?;
            let text = std::str::from_utf8(bytes).ok();
            let key = text.and_then(|text| text.chars().next()).map(Key::Char);
            Some((if key.is_some() { length } else { 1 }, key))
        }
    }
}

fn sequence(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    match bytes.get(1)? {
        b'O' => {
            let key = final_key(*bytes.get(2)?, b"");
            Some((3, key))
        }
        b'[' => {
            let is_end = |byte: &u8| (0x40..=0x7e).contains(byte);
            let Some(end) = bytes[2..].iter().position(is_end) else {
                return (bytes.len() > LONGEST).then_some((bytes.len(), None));
            };
            let numbers = &bytes[2..2 + end];
            Some((end + 3, final_key(bytes[2 + end], numbers)))
        }
        // Whatever it is, it was pressed after this one.
        _ => Some((1, Some(Key::Esc))),
    }
}

fn final_key(last: u8, numbers: &[u8]) -> Option<Key> {
    Some(match (last, numbers) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        (b'Z', _) => Key::BackTab,
        (b'M', _) => Key::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_keys_however_they_come() {
        let bytes = b"a\x1b[A\x1bOB\x1b[1;5C\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[Z\t\r\x7f\x03\x1a\xc3\xa4/\x1b[15~q";
        let all = [
            Key::Char('a'),
            Key::Up,
            Key::Down,
            Key::Right,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::End,
            Key::BackTab,
            Key::Tab,
            Key::Enter,
            Key::Backspace,
            Key::Ctrl('c'),
            Key::Ctrl('z'),
            Key::Char('ä'),
            Key::Char('/'),
            Key::Char('q'),
        ];
        for step in 1..=bytes.len() {
            let mut keys = Keys::default();
            let found: Vec<Key> = bytes.chunks(step).flat_map(|piece| keys.take(piece)).collect();
            assert_eq!(found, all, "in pieces of {step}");
            assert!(!keys.is_pending());
        }
    }

    #[test]
    fn escape_is_a_key_when_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"\x1b"), []);
        assert!(keys.is_pending());
        assert_eq!(keys.settle(), [Key::Esc]);
        assert!(!keys.is_pending());
        assert_eq!(keys.take(b"\x1bw"), [Key::Esc, Key::Char('w')]);
        assert_eq!(keys.take(b"\x1b\x1b"), [Key::Esc]);
        assert_eq!(keys.settle(), [Key::Esc]);
        assert_eq!(keys.take(b"\x1b[9999"), []);
        assert_eq!(keys.settle(), []);
        // No end of it, and what is no text.
        assert_eq!(keys.take(&[b"\x1b[".as_slice(), &[b'1'; 100]].concat()), []);
        assert_eq!(keys.take(b"\xff\xfe\x00x"), [Key::Char('x')]);
    }
}
