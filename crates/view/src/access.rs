//! The locks of the door: whose page asks, and who may. Host first (a foreign name that leads here
//! is a page of somebody else), then Origin, then the token, which a one-time code buys.

use crate::http::{Answer, Request};
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a link lasts that nobody has opened.
const LIFETIME: Duration = Duration::from_secs(60);
/// Codes that are remembered, so that an old link is told from a foreign one.
const CODES: usize = 64;

pub struct Access {
    port: u16,
    token: String,
    codes: Mutex<Vec<Code>>,
}

struct Code {
    text: String,
    made: Instant,
    used: bool,
}

impl Access {
    pub fn new(port: u16) -> io::Result<Self> {
        Ok(Access { port, token: random(32)?, codes: Mutex::default() })
    }

    /// A new code for a link; earlier ones stay good for as long as they would.
    pub fn code(&self) -> io::Result<String> {
        let text = random(16)?;
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if codes.len() == CODES {
            codes.remove(0);
        }
        codes.push(Code { text: text.clone(), made: Instant::now(), used: false });
        Ok(text)
    }

    /// Whether the request comes from this server's own page; else what is answered.
    pub fn is_own(&self, request: &Request) -> Result<(), Answer> {
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{}", self.port));
        let host = request.header("host").unwrap_or_default();
        if !hosts.iter().any(|own| own == host) {
            return Err(foreign("this server answers to its own address only"));
        }
        let origin = request.header("origin");
        if origin.is_some_and(|origin| origin != format!("http://{host}")) {
            return Err(foreign("this server answers to its own page only"));
        }
        match request.header("sec-fetch-site") {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) => Err(foreign("this server answers to its own page only")),
        }
    }

    /// Whether the request carries the token; else what is answered.
    pub fn is_allowed(&self, request: &Request) -> Result<(), Answer> {
        let given = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
        match given {
            Some(given) if same(given, &self.token) => Ok(()),
            Some(_) => Err(Answer::error(
                401,
                "this page was opened by another run of `tare view`",
                Some("open the link that the terminal shows; Enter there makes a new one"),
            )),
            None => Err(Answer::error(
                401,
                "the page needs the link that `tare view` printed",
                Some("open that link; Enter in the terminal makes a new one"),
            )),
        }
    }

    /// The token, for a code that was not used before.
    pub fn trade(&self, given: &str) -> Result<String, Answer> {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let found = codes.iter_mut().find(|code| same(&code.text, given));
        let text = match found {
            Some(code) if code.used => "this link was used before",
            Some(code) if code.made.elapsed() > LIFETIME => "this link is older than a minute",
            Some(code) => {
                code.used = true;
                return Ok(self.token.clone());
            }
            None => "this link is of another run of `tare view`, or an old one",
        };
        Err(Answer::error(410, text, Some("press Enter in the terminal for a new link")))
    }
}

/// Whether any bytes are a request that would be let in without the token, for fuzzers. Panics if
/// what is understood does not come from the bytes that were given.
pub fn untrusted_request(bytes: &[u8]) -> bool {
    let Ok(Some((request, used))) = crate::http::parse(bytes) else { return false };
    assert!(used <= bytes.len() && request.body.len() < used, "more is read than has come");
    let again = crate::http::parse(&bytes[..used]);
    assert!(again.is_ok_and(|found| found.is_some_and(|(_, again)| again == used)));
    let _ = crate::http::pairs(&request.query);
    let access = Access { port: 80, token: "a token of its own".into(), codes: Mutex::default() };
    access.is_own(&request).is_ok() && access.is_allowed(&request).is_ok()
}

fn foreign(text: &str) -> Answer {
    Answer::error(403, text, Some("open the link that `tare view` printed"))
}

/// Compares in a time that does not tell how much is right.
fn same(a: &str, b: &str) -> bool {
    let differences = a.bytes().zip(b.bytes()).fold(0, |found, (a, b)| found | (a ^ b));
    a.len() == b.len() && differences == 0
}

/// So many random bytes, as hexadecimal digits.
fn random(count: usize) -> io::Result<String> {
    let mut bytes = vec![0_u8; count];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(headers: &str) -> Request {
        let text = format!("GET /api/run HTTP/1.1\r\n{headers}\r\n");
        crate::http::parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn only_our_own_address_and_page_may_ask() {
        let access = Access::new(4711).unwrap();
        let own = |headers: &str| access.is_own(&asks(headers)).is_ok();
        assert!(own("Host: 127.0.0.1:4711\r\n"));
        assert!(own("Host: localhost:4711\r\nOrigin: http://localhost:4711\r\n"));
        assert!(own("Host: [::1]:4711\r\nSec-Fetch-Site: same-origin\r\n"));
        for bad in [
            "",
            "Host: 127.0.0.1\r\n",
            "Host: 127.0.0.1:4712\r\n",
            "Host: evil.example:4711\r\n",
            "Host: localhost:4711\r\nOrigin: http://localhost:4712\r\n",
            "Host: localhost:4711\r\nOrigin: https://localhost:4711\r\n",
            "Host: localhost:4711\r\nOrigin: null\r\n",
            "Host: localhost:4711\r\nSec-Fetch-Site: same-site\r\n",
            "Host: localhost:4711\r\nSec-Fetch-Site: cross-site\r\n",
        ] {
            assert!(!own(bad), "{bad}");
        }
    }

    #[test]
    fn a_code_buys_the_token_once() {
        let access = Access::new(1).unwrap();
        let code = access.code().unwrap();
        let token = access.trade(&code).unwrap();
        assert_eq!(access.trade(&code).unwrap_err().status, 410);
        assert_eq!(access.trade("").unwrap_err().status, 410);
        let with = |token: &str| access.is_allowed(&asks(&format!("Authorization: {token}\r\n")));
        assert!(with(&format!("Bearer {token}")).is_ok());
        assert_eq!(with("Bearer x").unwrap_err().status, 401);
        assert_eq!(with(&token).unwrap_err().status, 401);
        assert_eq!(token.len(), 64);
    }
}
