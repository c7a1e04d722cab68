//! Any bytes as a stream of messages, and any text as options and patterns. The portions in which
//! bytes arrive do not matter, and what is understood is written and read back.

use tare_protocol::{
    AgentOptions, Decoder, Greeting, Message, Pattern, Request, Response, Started, WireError,
    parse_control_dir,
};

pub fn messages(data: &[u8]) {
    let (messages, error) = decode(data, data.len().max(1));
    let portion = usize::from(data.last().copied().unwrap_or(0)) + 1;
    assert!(decode(data, portion) == (messages.clone(), error), "portions matter");
    for message in &messages {
        understand(message);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        patterns(text);
    }
}

fn decode(bytes: &[u8], portion: usize) -> (Vec<Message>, Option<WireError>) {
    let mut decoder = Decoder::default();
    let mut messages = Vec::new();
    for part in bytes.chunks(portion) {
        decoder.push(part);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

/// What is understood says the same when it is sent on. Messages are compared as bytes, because a
/// number may be one that does not equal itself.
fn understand(message: &Message) {
    same(Request::from_message(message), Request::from_message, Request::to_message);
    same(Response::from_message(message), Response::from_message, Response::to_message);
    same(Greeting::from_message(message), Greeting::from_message, Greeting::to_message);
    same(Started::from_message(message), Started::from_message, Started::to_message);
}

fn same<T>(
    understood: Result<T, WireError>,
    from: fn(&Message) -> Result<T, WireError>,
    to: fn(&T) -> Message,
) {
    let Ok(value) = understood else { return };
    let bytes = to(&value).encode();
    let (messages, error) = decode(&bytes, bytes.len());
    assert!(messages.len() == 1 && error.is_none(), "what we send cannot be read");
    let again = from(&messages[0]).expect("what we send is understood");
    assert!(to(&again).encode() == bytes, "a message changes when it is sent on");
}

/// What is understood as options is written and read back.
pub fn options(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = parse_control_dir(text);
    if let Ok(options) = AgentOptions::parse(text) {
        assert!(AgentOptions::parse(&options.to_string()) == Ok(options));
    }
}

fn patterns(text: &str) {
    let mut lines = text.split('\n');
    let (pattern, class) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let method = lines.next().unwrap_or("");
    let Ok(pattern) = pattern.parse::<Pattern>() else { return };
    assert!(pattern.to_string().parse() == Ok(pattern.clone()));
    let fits = pattern.fits_method(class, method);
    assert!(!fits || pattern.fits_some_method(class), "a method fits, but none of its class");
    let _ = pattern.fits_class(class);
}
