//! Frames: a length, a channel, and bytes. What they mean is in `messages`.

use std::fmt;

/// The longest frame that either end takes, without the length itself.
pub const MOST: usize = 1 << 20;
/// Bytes of output or of a file are sent in pieces of at most this size, so that nothing else waits
/// for long: at a kilobyte a second this is a third of the silence after which an end is given up.
pub const CHUNK: usize = 8 << 10;

/// What the bytes of a frame are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// A message, as `tare-protocol` writes it.
    Message,
    /// Of the command's standard output.
    Out,
    /// Of its standard error.
    Err,
    /// Of the file that it makes.
    File,
    /// Its line of progress, whole.
    Progress,
}

impl Channel {
    const ALL: [Channel; 5] =
        [Channel::Message, Channel::Out, Channel::Err, Channel::File, Channel::Progress];

    fn number(self) -> u8 {
        Channel::ALL.iter().position(|channel| *channel == self).unwrap_or_default() as u8
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    pub channel: Channel,
    pub bytes: Vec<u8>,
}

/// Why bytes are no frame. The stream is out of step then, and must be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// It announces more than [`MOST`] bytes.
    TooLong(u32),
    /// It has not even a channel.
    Empty,
    /// There is no such channel.
    UnknownChannel(u8),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::TooLong(length) => {
                write!(f, "a frame of {length} bytes is over the limit of {MOST}")
            }
            FrameError::Empty => write!(f, "a frame is empty"),
            FrameError::UnknownChannel(number) => write!(f, "there is no channel {number}"),
        }
    }
}

impl std::error::Error for FrameError {}

impl Frame {
    pub fn new(channel: Channel, bytes: impl Into<Vec<u8>>) -> Self {
        Frame { channel, bytes: bytes.into() }
    }

    /// The frame as it is sent.
    ///
    /// # Panics
    /// If it is too long for the other end. Whoever makes large ones cuts them up ([`CHUNK`]).
    pub fn encode(&self) -> Vec<u8> {
        let length = self.bytes.len() + 1;
        assert!(length <= MOST, "a frame of {length} bytes");
        let mut out = Vec::with_capacity(4 + length);
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.push(self.channel.number());
        out.extend_from_slice(&self.bytes);
        out
    }
}

/// Cuts a stream of bytes, which come in any portions, into frames.
#[derive(Default, Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame; none if more bytes are needed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((head, rest)) = self.buffer.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head);
        let size = length as usize;
        if size > MOST {
            return Err(FrameError::TooLong(length));
        }
        if size == 0 {
            return Err(FrameError::Empty);
        }
        let Some(content) = rest.get(..size) else { return Ok(None) };
        let known = Channel::ALL.get(usize::from(content[0])).copied();
        let channel = known.ok_or(FrameError::UnknownChannel(content[0]))?;
        let frame = Frame::new(channel, &content[1..]);
        self.buffer.drain(..4 + size);
        Ok(Some(frame))
    }

    /// Whether the stream could end here without losing a part of a frame.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_any_cutting_of_the_stream() {
        let frames: Vec<Frame> =
            Channel::ALL.iter().map(|channel| Frame::new(*channel, "abc")).collect();
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        for portion in [1, 2, 3, 7, 1000] {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for part in bytes.chunks(portion) {
                decoder.push(part);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, frames, "in portions of {portion}");
            assert!(decoder.is_empty());
        }
    }

    #[test]
    fn what_is_no_frame_is_named() {
        let error = |bytes: &[u8]| {
            let mut decoder = Decoder::default();
            decoder.push(bytes);
            decoder.next_frame().unwrap_err()
        };
        assert_eq!(error(&[0xff; 4]), FrameError::TooLong(u32::MAX));
        assert_eq!(error(&[0; 4]), FrameError::Empty);
        assert_eq!(error(&[1, 0, 0, 0, 9]), FrameError::UnknownChannel(9));
        let mut decoder = Decoder::default();
        decoder.push(&[5, 0, 0, 0, 1, b'a']);
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(!decoder.is_empty(), "half a frame is none");
    }
}
