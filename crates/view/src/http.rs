//! As much of HTTP/1.1 as a page on loopback needs: requests within bounds in, answers out. No
//! chunked requests, no upgrade. What a request may do is decided in `access`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bounds of what a client may send.
const HEAD: usize = 16 << 10;
pub const BODY: usize = 1 << 20;
const HEADERS: usize = 64;

/// How long a request may take from its first byte to its last, and a connection may be idle.
pub const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    Get,
    Head,
    Post,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// Without the query.
    pub path: String,
    pub query: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the client wants to ask more on this connection.
    pub keeps: bool,
}

/// Why a request was not understood: the status, and a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused(pub u16, pub &'static str);

impl Request {
    /// The value of a header that came once; names are in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What came of waiting for a request.
pub enum Heard {
    Request(Request),
    Refused(Refused),
    /// The client has gone, or said nothing for too long.
    Nothing,
}

/// Reads one request. What was read beyond it stays in `buffer`.
pub fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Heard {
    let mut until = Instant::now() + PATIENCE;
    loop {
        match parse(buffer) {
            Ok(Some((request, used))) => {
                buffer.drain(..used);
                return Heard::Request(request);
            }
            Ok(None) => {}
            Err(refused) => return Heard::Refused(refused),
        }
        let first = buffer.is_empty();
        match more(stream, buffer, until) {
            Ok(true) if first => until = Instant::now() + PATIENCE,
            Ok(true) => {}
            Ok(false) => return Heard::Nothing,
            Err(_) if buffer.is_empty() => return Heard::Nothing,
            Err(_) => return Heard::Refused(Refused(408, "the request took too long to come")),
        }
    }
}

fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>, until: Instant) -> io::Result<bool> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    let mut piece = [0_u8; 8192];
    let count = stream.read(&mut piece)?;
    buffer.extend_from_slice(&piece[..count]);
    Ok(count > 0)
}

/// The request at the beginning of what has come, and how many bytes it takes; `None` if there is
/// more to come.
pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Refused> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut raw = httparse::Request::new(&mut headers);
    let head = match raw.parse(&bytes[..bytes.len().min(HEAD)]) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(Refused(431, "the request's head is too long"));
        }
        Err(_) => return Err(Refused(400, "this is not HTTP")),
    };
    let method = match raw.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST") => Method::Post,
        _ => return Err(Refused(405, "only GET, HEAD and POST are understood")),
    };
    let target = raw.path.unwrap_or_default();
    if !target.starts_with('/') {
        return Err(Refused(400, "the request names no path of this server"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut known: Vec<(String, String)> = Vec::new();
    for header in raw.headers.iter() {
        let name = header.name.to_ascii_lowercase();
        let Ok(value) = std::str::from_utf8(header.value) else {
            return Err(Refused(400, "a header is not text"));
        };
        // Two of a kind are how one part of a program is made to see another request than the next.
        let once = ["host", "content-length", "authorization", "origin", "sec-fetch-site"];
        if once.contains(&name.as_str()) && known.iter().any(|(other, _)| *other == name) {
            return Err(Refused(400, "a header that may come once came twice"));
        }
        known.push((name, value.trim().to_owned()));
    }
    let value = |name: &str| known.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
    if value("transfer-encoding").is_some() {
        return Err(Refused(501, "requests in chunks are not understood"));
    }
    let length = match value("content-length") {
        None => 0,
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => {
            text.parse::<usize>().unwrap_or(usize::MAX)
        }
        Some(_) => return Err(Refused(400, "the length of the request is not a number")),
    };
    if length > BODY {
        return Err(Refused(413, "the request is too long"));
    }
    let Some(body) = bytes.get(head..head + length) else { return Ok(None) };
    let closes = value("connection").is_some_and(|text| text.eq_ignore_ascii_case("close"));
    let keeps = raw.version == Some(1) && !closes;
    let (path, query, body) = (path.to_owned(), query.to_owned(), body.to_vec());
    Ok(Some((Request { method, path, query, headers: known, body, keeps }, head + length)))
}

/// What is answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub kind: &'static str,
    /// More headers, whole lines.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn new(kind: &'static str, body: Vec<u8>) -> Self {
        Answer { status: 200, kind, headers: Vec::new(), body }
    }

    pub fn json(value: &serde_json::Value) -> Self {
        Answer::new(JSON, value.to_string().into_bytes())
    }

    pub fn error(status: u16, text: &str, remedy: Option<&str>) -> Self {
        let body = serde_json::json!({ "error": text, "remedy": remedy });
        Answer { status, ..Answer::json(&body) }
    }
}

pub const JSON: &str = "application/json; charset=utf-8";

/// On every answer: nothing but our own files may run, be shown or be asked, nobody may frame the
/// page, and no text can become code.
const SECURITY: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src \
     'self'; img-src 'self' blob:; connect-src 'self'; font-src 'none'; frame-ancestors 'none'; \
     base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'\r\n\
     X-Content-Type-Options: nosniff\r\n\
     Referrer-Policy: no-referrer\r\n\
     Cross-Origin-Opener-Policy: same-origin\r\n\
     Cross-Origin-Resource-Policy: same-origin\r\n\
     Cache-Control: no-store\r\n";

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

/// The head of an answer; without a length it lasts until the connection ends.
pub fn head(
    status: u16,
    kind: &str,
    length: Option<usize>,
    more: &[String],
    keeps: bool,
) -> String {
    let length = length.map_or(String::new(), |length| format!("Content-Length: {length}\r\n"));
    let more: String = more.iter().map(|line| format!("{line}\r\n")).collect();
    let connection = if keeps { "keep-alive" } else { "close" };
    format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\n{length}{more}{SECURITY}Connection: \
         {connection}\r\n\r\n",
        reason(status)
    )
}

/// Sends an answer; without its body if only the head was asked for.
pub fn write(
    stream: &mut TcpStream,
    answer: &Answer,
    with_body: bool,
    keeps: bool,
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = Some(answer.body.len());
    let head = head(answer.status, answer.kind, length, &answer.headers, keeps);
    stream.write_all(head.as_bytes())?;
    if with_body {
        stream.write_all(&answer.body)?;
    }
    stream.flush()
}

/// `a=1&b=x%20y` as pairs; a key without a value has an empty one.
pub fn pairs(query: &str) -> Result<Vec<(String, String)>, Refused> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decoded(key)?, decoded(value)?))
        })
        .collect()
}

fn decoded(text: &str) -> Result<String, Refused> {
    const WRONG: Refused =
        Refused(400, "the request's parameters are not encoded as they should be");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || {
                    let digit = char::from(rest.next()?).to_digit(16)?;
                    u8::try_from(digit).ok()
                };
                let (high, low) = (digit().ok_or(WRONG)?, digit().ok_or(WRONG)?);
                high << 4 | low
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| WRONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> u16 {
        parse(text.as_bytes()).expect_err("is refused").0
    }

    #[test]
    fn requests_are_read_as_far_as_they_have_come() {
        let text =
            "POST /api/x?a=1&b=%C3%A4+c HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET";
        for length in 0..text.len() - 3 {
            assert!(parse(&text.as_bytes()[..length]).unwrap().is_none(), "{length}");
        }
        let (request, used) = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((used, request.method), (text.len() - 3, Method::Post));
        assert_eq!((request.path.as_str(), request.body.as_slice()), ("/api/x", &b"abc"[..]));
        assert_eq!(request.header("host"), Some("h"));
        let pairs = pairs(&request.query).unwrap();
        assert_eq!(pairs, [("a".into(), "1".into()), ("b".into(), "ä c".into())]);
        assert!(request.keeps);
    }

    #[test]
    fn no_bytes_are_too_strange() {
        let text = b"POST /a?b=%20 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        };
        let mut read = 0;
        for _ in 0..20_000 {
            let mut bytes = text.to_vec();
            for _ in 0..1 + random(4) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes.insert(at, b"\r\n: %0\xff"[random(7)]),
                    _ => _ = bytes.remove(at),
                }
            }
            if let Ok(Some((request, used))) = parse(&bytes) {
                assert!(used <= bytes.len() && request.body.len() <= used);
                let _ = pairs(&request.query);
                read += 1;
            }
        }
        assert!((100..20_000).contains(&read), "{read}");
    }

    #[test]
    fn what_is_too_long_or_ambiguous_is_refused() {
        assert_eq!(refused("\0\0\r\n\r\n"), 400);
        assert_eq!(refused("PUT / HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(refused("GET http://x/ HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(refused("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
        assert_eq!(refused("POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n"), 413);
        assert_eq!(refused("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"), 400);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(HEAD))), 431);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(99))), 431);
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert!(pairs(bad).is_err(), "{bad}");
        }
    }
}
