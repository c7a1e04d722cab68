//! The agent's control socket, used directly: for what no well-behaved front end would send, and
//! for tests of the agent alone.

use crate::machine::{PATIENCE, wait_until};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{fs, io};
use tare_protocol::{
    CONTROL_SOCKET, Decoder, Greeting, Message, Request, Response, Status, parse_control_dir,
};

/// The control directories of a JVM in a temporary directory. After a detach there is none.
pub fn control_dirs(tmp: &Path, pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(tmp).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| parse_control_dir(&entry.file_name().to_string_lossy()) == Some(pid))
        .map(|entry| entry.path())
        .collect()
}

/// The socket of a JVM that runs in our own namespaces, once it is there. Pids come round within
/// minutes, so a JVM that was killed may have left a directory that names this one's: what counts
/// is that the kernel knows the socket, and that somebody listens there.
pub fn control_socket(pid: u32) -> PathBuf {
    let mut found = None;
    wait_until("the control socket is there", || {
        let known = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let sockets = control_dirs(Path::new("/tmp"), pid).into_iter();
        found = sockets
            .map(|dir| dir.join(CONTROL_SOCKET))
            .find(|socket| known.lines().any(|line| is_open(line, socket)));
        found.is_some()
    });
    found.expect("it was there just now")
}

/// Whether a line of `/proc/net/unix` is of this socket, and it takes connections.
fn is_open(line: &str, socket: &Path) -> bool {
    const ACCEPTS: &str = "00010000";
    let flags = line.split_ascii_whitespace().nth(3);
    flags == Some(ACCEPTS) && line.ends_with(&*socket.to_string_lossy())
}

/// A connection to an agent.
pub struct Control {
    stream: UnixStream,
    decoder: Decoder,
    /// Descriptors that came with what was received.
    pub files: Vec<File>,
    pub greeting: Greeting,
}

impl Control {
    pub fn connect(pid: u32) -> Control {
        Control::open(&control_socket(pid)).expect("the agent lets us in")
    }

    pub fn open(socket: &Path) -> io::Result<Control> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let greeting = Greeting::ours();
        let decoder = Decoder::default();
        let mut control = Control { stream, decoder, files: Vec::new(), greeting };
        let first = control.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        control.greeting = Greeting::from_message(&first).map_err(io::Error::other)?;
        Ok(control)
    }

    /// Says hello as a front end of the agent's own build.
    pub fn greet(&mut self) {
        let hello =
            Request::Hello { protocol: self.greeting.protocol, build: self.greeting.build.clone() };
        assert_eq!(self.ask(&hello), Response::Ok);
    }

    pub fn ask(&mut self, request: &Request) -> Response {
        self.send(&request.to_message().encode()).expect("the agent reads");
        loop {
            let answer = self.receive().expect("the agent answers").expect("the agent stays");
            match Response::from_message(&answer).expect("a response") {
                Response::Progress(_) => {}
                answer => return answer,
            }
        }
    }

    pub fn status(&mut self) -> Status {
        match self.ask(&Request::Status) {
            Response::Status(status) => *status,
            other => panic!("not a status: {other:?}"),
        }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next message, or `None` if the agent closed the connection.
    pub fn receive(&mut self) -> io::Result<Option<Message>> {
        let mut portion = [0; 4096];
        loop {
            if let Some(message) = self.decoder.next_message().map_err(io::Error::other)? {
                return Ok(Some(message));
            }
            match self.take(&mut portion) {
                Ok(0) => return Ok(None),
                Ok(n) => self.decoder.push(&portion[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // An agent that closes while we still send resets the connection.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(e) => return Err(e),
            }
        }
    }

    /// Receives some bytes, and keeps the descriptors that come with them.
    fn take(&mut self, portion: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut extra = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(portion)];
        let got = recvmsg(&self.stream, &mut parts, &mut extra, RecvFlags::CMSG_CLOEXEC)?;
        for message in extra.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.files.extend(descriptors.map(File::from));
            }
        }
        Ok(got.bytes)
    }
}
