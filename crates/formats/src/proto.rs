//! Protobuf's wire format, as much as pprof and OTLP need: varints, fixed numbers, nested bytes.

use crate::error::ReadError;

/// Builds one message.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    pub fn new() -> Self {
        Self::default()
    }

    /// A number; zero is protobuf's default and is left out.
    pub fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
    }

    /// An `int64`; negative ones take ten bytes.
    pub fn signed(&mut self, field: u32, value: i64) {
        self.number(field, value as u64);
    }

    pub fn flag(&mut self, field: u32, value: bool) {
        self.number(field, u64::from(value));
    }

    pub fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3 | 1);
            self.0.extend(value.to_le_bytes());
        }
    }

    /// Begins a field of so many bytes, which the caller appends.
    pub fn begin(&mut self, field: u32, size: u64) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(size);
    }

    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.begin(field, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
    }

    /// Numbers of a repeated field, packed.
    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut inner = Message::new();
        values.into_iter().for_each(|value| inner.varint(value));
        if !inner.0.is_empty() {
            self.message(field, &inner);
        }
    }

    /// Appends the fields of another message.
    pub fn append(&mut self, other: &Message) {
        self.0.extend_from_slice(&other.0);
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Empties it, to be filled again without a new allocation.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// A field's value on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Number(u64),
    Bytes(Nested<'a>),
    /// A fixed number, which no field that we read has.
    Fixed,
}

/// Bytes inside a file, which know where they stand in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nested<'a> {
    pub bytes: &'a [u8],
    pub offset: usize,
}

impl<'a> Nested<'a> {
    pub fn fields(self, format: &'static str) -> Fields<'a> {
        Fields { format, all: self, at: 0 }
    }

    pub fn text(self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }
}

/// Reads the fields of one message, one after the other.
pub struct Fields<'a> {
    format: &'static str,
    all: Nested<'a>,
    at: usize,
}

impl<'a> Fields<'a> {
    /// The next field's number and value; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, ReadError> {
        if self.at == self.all.bytes.len() {
            return Ok(None);
        }
        let key = self.varint()?;
        let field = u32::try_from(key >> 3).ok().filter(|&field| field > 0);
        let Some(field) = field else { return Err(self.problem("a field number out of range")) };
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.skip(8)?,
            5 => self.skip(4)?,
            2 => {
                let length = self.varint()?;
                let start = self.at;
                let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
                let bytes = end.and_then(|end| self.all.bytes.get(start..end));
                let Some(bytes) = bytes else {
                    return Err(self.problem("a length that passes the end"));
                };
                self.at += bytes.len();
                Value::Bytes(Nested { bytes, offset: self.all.offset + start })
            }
            _ => return Err(self.problem("an unknown wire type")),
        };
        Ok(Some((field, value)))
    }

    /// Where the next field begins, in the whole file.
    pub fn offset(&self) -> usize {
        self.all.offset + self.at
    }

    fn skip(&mut self, bytes: usize) -> Result<Value<'a>, ReadError> {
        if self.all.bytes.len() - self.at < bytes {
            return Err(self.problem("a number that is cut short"));
        }
        self.at += bytes;
        Ok(Value::Fixed)
    }

    fn varint(&mut self) -> Result<u64, ReadError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.all.bytes.get(self.at) else {
                return Err(self.problem("a number that is cut short"));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.problem("a number of more than ten bytes"))
    }

    fn problem(&self, problem: &str) -> ReadError {
        ReadError::malformed(self.format, self.offset(), problem)
    }
}

/// The numbers of a repeated field, which may come packed or one by one.
pub fn numbers(
    format: &'static str,
    value: Value<'_>,
    mut take: impl FnMut(u64),
) -> Result<(), ReadError> {
    match value {
        Value::Number(number) => take(number),
        Value::Bytes(all) => {
            let mut fields = all.fields(format);
            while fields.at < all.bytes.len() {
                take(fields.varint()?);
            }
        }
        Value::Fixed => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, ReadError> {
        let mut fields = Nested { bytes, offset: 100 }.fields("test");
        let mut out = Vec::new();
        while let Some(field) = fields.next()? {
            out.push(field);
        }
        Ok(out)
    }

    #[test]
    fn what_is_written_is_read() {
        let mut inner = Message::new();
        inner.signed(1, -1);
        let mut message = Message::new();
        message.number(1, 300);
        message.number(2, 0);
        message.flag(3, true);
        message.fixed64(4, 7);
        message.message(5, &inner);
        message.packed(600, [1, u64::MAX]);
        let fields = read(message.as_bytes()).unwrap();
        assert_eq!(fields[0], (1, Value::Number(300)));
        assert_eq!(fields[1], (3, Value::Number(1)));
        assert_eq!(fields[2], (4, Value::Fixed));
        let Value::Bytes(nested) = fields[3].1 else { panic!("no message") };
        assert_eq!(nested.fields("test").next().unwrap(), Some((1, Value::Number(u64::MAX))));
        let mut all = Vec::new();
        numbers("test", fields[4].1, |number| all.push(number)).unwrap();
        assert_eq!((fields[4].0, all), (600, vec![1, u64::MAX]));
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let problem = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(problem(&[0x08]).contains("cut short at byte 101"), "{}", problem(&[0x08]));
        assert!(problem(&[0x0a, 5, 0]).contains("passes the end at byte 102"));
        assert!(problem(&[0x0f]).contains("unknown wire type"));
        assert!(problem(&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]).contains("ten"));
        assert!(problem(&[0x00, 0]).contains("field number"));
        assert!(
            problem(&[0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).contains("length")
        );
        assert!(problem(&[0x09, 1, 2]).contains("cut short"));
    }
}
