//! Events of the stream: kinds that are declared in it, each with a name and typed fields, and what
//! happened.
//!
//! An event has what all of them have (time, duration, thread, stack) and one `u64` for each field
//! of its kind. A kind comes before its first event, a text before the first field that refers to
//! it.

use super::layout::{event, record};
use super::records::{Cursor, finish, long, put_text, word};

/// What a field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FieldKind {
    /// A number of things.
    Integer = 1,
    /// Nanoseconds.
    Duration = 2,
    Bytes = 3,
    /// The id of a [`Text`]; zero is none.
    Text = 4,
    /// The id of a trace, of another thread than the event's perhaps; zero is none.
    Trace = 5,
    /// The number of a thread; zero is none.
    Thread = 6,
}

impl FieldKind {
    pub const ALL: [FieldKind; 6] = [
        FieldKind::Integer,
        FieldKind::Duration,
        FieldKind::Bytes,
        FieldKind::Text,
        FieldKind::Trace,
        FieldKind::Thread,
    ];

    /// `None` for what a later version invented.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// A kind of event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredKind {
    pub id: u32,
    pub name: String,
    /// In the order of the values; a field of a type that this version does not know has none.
    pub fields: Vec<(String, Option<FieldKind>)>,
}

/// A text that fields refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pub id: u32,
    pub text: String,
}

/// In the number of an allocated object: it was born old, so that a collection of young objects
/// proves nothing about it.
pub const BORN_OLD: u64 = 1 << 62;

/// Something that happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventHead {
    /// The id of a [`DeclaredKind`].
    pub kind: u32,
    /// The number of the thread that it happened on; zero is a thread that is not known.
    pub thread: u32,
    /// When it began: `CLOCK_MONOTONIC`, in nanoseconds.
    pub time: u64,
    /// Nanoseconds; zero for what has no duration.
    pub duration: u64,
    /// The id of the virtual thread that was mounted; zero when there was none, or it is not known.
    pub java_id: u64,
    /// The stack; zero is none.
    pub trace: u32,
}

/// An event with the values of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEvent {
    pub head: EventHead,
    pub values: Vec<u64>,
}

impl DeclaredKind {
    /// A kind as the agent declares it. More fields than [`event::FIELDS_MOST`] are left out.
    #[must_use]
    pub fn new(id: u32, name: &str, fields: &[(&str, FieldKind)]) -> Self {
        let fields = fields.iter().take(event::FIELDS_MOST);
        let fields = fields.map(|(name, kind)| ((*name).to_owned(), Some(*kind))).collect();
        DeclaredKind { id, name: name.to_owned(), fields }
    }

    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&(self.fields.len() as u32).to_le_bytes());
        put_text(&mut out, &self.name);
        for (name, kind) in &self.fields {
            out.push(kind.map_or(0, |kind| kind as u8));
            put_text(&mut out, name);
        }
        finish(out, record::EVENT_KIND)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes.get(4..)?);
        let (id, count) = (cursor.number()?, cursor.number()? as usize);
        let name = cursor.text()?;
        if count > event::FIELDS_MOST {
            return None;
        }
        let mut fields = Vec::with_capacity(count);
        for _ in 0..count {
            let kind = FieldKind::from_code(cursor.byte()?);
            fields.push((cursor.text()?, kind));
        }
        Some(DeclaredKind { id, name, fields })
    }
}

impl Text {
    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        out.extend_from_slice(&self.id.to_le_bytes());
        put_text(&mut out, &self.text);
        finish(out, record::TEXT)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes.get(4..)?);
        Some(Text { id: cursor.number()?, text: cursor.text()? })
    }
}

impl StreamEvent {
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let values = bytes.get(event::HEAD..)?;
        if values.len() > event::FIELDS_MOST * 8 {
            return None;
        }
        let head = EventHead {
            kind: word(bytes, event::KIND)?,
            thread: word(bytes, event::THREAD)?,
            time: long(bytes, event::TIME)?,
            duration: long(bytes, event::DURATION)?,
            java_id: long(bytes, event::JAVA_ID)?,
            trace: word(bytes, event::TRACE)?,
        };
        Some(StreamEvent {
            head,
            values: values.chunks_exact(8).filter_map(|value| long(value, 0)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::Record;
    use super::*;

    fn decoded(bytes: &[u8]) -> Option<Record> {
        let head = word(bytes, 0).unwrap();
        assert_eq!((head & record::SIZE_MASK) as usize, bytes.len());
        Record::decode(head >> record::KIND_SHIFT, bytes)
    }

    fn lock() -> DeclaredKind {
        let fields = [
            ("class", FieldKind::Text),
            ("owner", FieldKind::Thread),
            ("owner-stack", FieldKind::Trace),
            ("held", FieldKind::Duration),
            ("size", FieldKind::Bytes),
            ("waiters", FieldKind::Integer),
        ];
        DeclaredKind::new(3, "lock", &fields)
    }

    #[test]
    fn kinds_and_texts_come_back() {
        assert_eq!(decoded(&lock().encode()), Some(Record::EventKind(lock())));
        let text = Text { id: 9, text: "größe".into() };
        assert_eq!(decoded(&text.encode()), Some(Record::Text(text)));
    }

    #[test]
    fn a_type_of_a_later_version_leaves_the_field_out() {
        let mut bytes = lock().encode();
        // The type of the first field lies behind two numbers and the kind's name.
        let at = 4 + 8 + 2 + "lock".len();
        assert_eq!(bytes[at], FieldKind::Text as u8);
        bytes[at] = 200;
        let Some(Record::EventKind(kind)) = decoded(&bytes) else { panic!() };
        assert_eq!(kind.fields[0], ("class".to_owned(), None));
        assert_eq!(kind.fields[1], lock().fields[1]);
    }

    #[test]
    fn what_is_cut_or_makes_no_sense_is_no_record() {
        let bytes = lock().encode();
        for length in 0..bytes.len() - 8 {
            assert_eq!(Record::decode(record::EVENT_KIND, &bytes[..length]), None, "{length}");
        }
        let event = vec![7; event::HEAD];
        assert!(Record::decode(record::EVENT, &event).is_some());
        for length in 0..event.len() {
            assert_eq!(Record::decode(record::EVENT, &event[..length]), None, "{length}");
        }
        let long = vec![7; event::HEAD + 8 * (event::FIELDS_MOST + 1)];
        assert_eq!(Record::decode(record::EVENT, &long), None);
        let mut many = lock().encode();
        many[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decoded(&many), None);
    }

    /// Whatever stands in the memory, a reader comes to an end.
    #[test]
    fn noise_is_survived() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let good = lock().encode();
        for _ in 0..20_000 {
            let mut bytes = match noise() % 2 {
                0 => good.clone(),
                _ => (0..noise() % 200).map(|_| noise() as u8).collect(),
            };
            for _ in 0..noise() % 4 {
                let at = noise() as usize % bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = noise() as u8;
                }
            }
            for kind in [record::EVENT_KIND, record::TEXT, record::EVENT] {
                if let Some(Record::EventKind(kind)) = Record::decode(kind, &bytes) {
                    assert!(kind.fields.len() <= event::FIELDS_MOST);
                }
            }
        }
    }
}
