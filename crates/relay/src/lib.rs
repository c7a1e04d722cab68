//! What two copies of `tare` say to each other over somebody else's connection: the frames and
//! messages of the wire (WIRE.md), the places that can be named ([`Place`]), and the text for a
//! shell by which a copy of this program comes to run there ([`Arrival`]).
//!
//! Starts nothing, reads no file and waits for nobody: bytes and words in, bytes and words out.
//! Programs, pipes and time are the business of `tare-cli`.
#![forbid(unsafe_code)]

mod arrival;
mod frame;
mod messages;
mod place;

pub use arrival::{Answer, Arrival, MARK};
pub use frame::{CHUNK, Channel, Decoder, Frame, FrameError, MOST};
pub use messages::{FromFar, FromNear, MessageError, PROTOCOL, Run, Size};
pub use place::{Kubernetes, Place, PlaceError};

/// Reads any bytes as what either end may send, for fuzzing: the portions in which they come do not
/// matter, and what is understood says the same when it is sent on.
///
/// # Panics
/// If that is not so.
pub fn check_bytes(bytes: &[u8]) {
    let portion = usize::from(bytes.last().copied().unwrap_or(0)) + 1;
    let whole = decode(bytes, bytes.len().max(1));
    assert!(whole == decode(bytes, portion), "portions matter");
    for frame in &whole.0 {
        if let Ok(understood) = FromFar::from_frame(frame.clone()) {
            let again = FromFar::from_frame(understood.to_frame());
            assert!(again.as_ref() == Ok(&understood), "{understood:?} became {again:?}");
        }
        if let Ok(understood) = FromNear::from_frame(frame.clone()) {
            let again = FromNear::from_frame(understood.to_frame());
            assert!(again.as_ref() == Ok(&understood), "{understood:?} became {again:?}");
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = text.parse::<Place>();
        let _ = text.lines().map(Answer::of_line).count();
    }
}

/// All frames, and what is wrong with what follows them.
fn decode(bytes: &[u8], portion: usize) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for part in bytes.chunks(portion) {
        decoder.push(part);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_hostile_end_sends_is_an_error_and_no_more() {
        let mut state = 0x1234_5678_9abc_def0_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let real = [
            FromNear::Run(Run { args: vec!["ps".into()], ..Run::default() }).to_frame().encode(),
            FromFar::Hello { protocol: PROTOCOL, id: "x".into(), arch: "y".into() }
                .to_frame()
                .encode(),
            FromFar::Exit(3).to_frame().encode(),
        ];
        for round in 0..20_000 {
            // Real frames with a byte changed, and noise with small lengths.
            let mut bytes = real[round % real.len()].clone();
            if round % 4 == 0 {
                bytes = (0..60).map(|_| next()).collect();
                bytes[1..4].fill(0);
            }
            let at = usize::from(next()) % bytes.len();
            bytes[at] = next();
            check_bytes(&bytes);
        }
    }
}
