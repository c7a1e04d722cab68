//! One front end: its socket, what has come on it and what goes out, and the engines that it has
//! on.

use crate::engines::EngineSet;
use crate::socket;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use tare_protocol::{Decoder, Message, Request, WireError};

/// Bytes waiting for a front end that does not read; past that it is cut off.
const MAX_BACKLOG: usize = 4 << 20;

pub struct Connection {
    pub stream: UnixStream,
    pub decoder: Decoder,
    pub backlog: Vec<u8>,
    /// To be sent with the next byte of the backlog.
    pub files: Vec<File>,
    pub greeted: bool,
    /// What this front end has started; it ends with the connection.
    pub engines: EngineSet,
    /// What it asked last was answered by somebody else meanwhile.
    pub answered: bool,
    /// What came while the thread was busy.
    pub waiting: VecDeque<Message>,
    /// The other end is gone; what it asked before is still served.
    pub ended: bool,
    pub open: bool,
}

impl Connection {
    pub fn new(stream: UnixStream) -> Self {
        Connection {
            stream,
            decoder: Decoder::default(),
            backlog: Vec::new(),
            files: Vec::new(),
            greeted: false,
            engines: EngineSet::default(),
            answered: false,
            waiting: VecDeque::new(),
            ended: false,
            open: true,
        }
    }

    /// What is to be served next: what waits, before what has come since.
    pub fn next_message(&mut self) -> Result<Option<Message>, WireError> {
        match self.waiting.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.decoder.next_message(),
        }
    }

    /// Takes in what has arrived; false when the other end is gone.
    pub fn fill(&mut self) -> bool {
        let mut portion = [0; 4096];
        loop {
            match self.stream.read(&mut portion) {
                Ok(0) => return false,
                Ok(n) => {
                    self.decoder.push(&portion[..n]);
                    // One portion at a time keeps the buffer bounded by a frame and a bit: the
                    // caller decodes before more is read.
                    return true;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Queues a message and sends what the socket takes now; false when the other end is gone or
    /// reads too slowly.
    pub fn answer(&mut self, message: &Message) -> bool {
        self.backlog.extend_from_slice(&message.encode());
        self.flush() && self.backlog.len() <= MAX_BACKLOG
    }

    pub fn flush(&mut self) -> bool {
        while !self.backlog.is_empty() {
            match socket::send_with(&self.stream, &self.backlog, &self.files) {
                Ok(sent) => {
                    self.files.clear();
                    self.backlog.drain(..sent);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Whether a request waits on it.
    pub fn has_asked(&self, request: &Request) -> bool {
        let same = |message: &Message| Request::from_message(message).as_ref() == Ok(request);
        self.waiting.iter().any(same)
    }

    /// Whether there is something to do for it, whatever its socket says.
    pub fn is_pending(&self) -> bool {
        self.ended || !self.waiting.is_empty()
    }
}
