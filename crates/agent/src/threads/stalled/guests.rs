//! Front ends that come while the control thread waits inside a JVM that reaches no safepoint: the
//! watcher greets them in its place, tells them of the threads, and says of everything else why it
//! cannot be done now. What they ask when the JVM goes on is left to the control thread, which gets
//! them.

use super::{Shared, TURN, Turn};
use crate::control::connection::Connection;
use crate::gate;
use crate::shared_memory;
use crate::socket;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use tare_protocol::{ErrorCode, Greeting, Message, Request, Response};

/// Of more, none is let in before another has gone.
const MOST: usize = 4;

/// What a guest can be told.
pub struct House<'a> {
    /// Whether the control thread has not got on since.
    pub is_stalled: &'a dyn Fn() -> bool,
    /// Makes a dump with stacks so deep.
    pub dump: &'a dyn Fn(u32) -> Option<Vec<u8>>,
}

/// Serves those who come until the control thread is back; those who are still there.
pub fn serve(shared: &Shared, listener: &UnixListener, house: &House<'_>) -> Vec<Connection> {
    let mut guests: Vec<Connection> = Vec::new();
    while *shared.turn() != Turn::Over {
        let mut interest = vec![(listener.as_raw_fd(), false)];
        interest.extend(guests.iter().map(|g| (g.stream.as_raw_fd(), !g.backlog.is_empty())));
        let ready = socket::wait(&interest, Some(TURN));
        for (guest, _) in guests.iter_mut().zip(&ready[1..]).filter(|(_, ready)| **ready) {
            guest.open = gate::enter(false, || house.answer(guest));
        }
        guests.retain(|guest| guest.open);
        match ready[0] {
            true if guests.len() < MOST => guests.extend(accept(listener)),
            // Whoever knocks goes on knocking.
            true => std::thread::sleep(TURN),
            false => {}
        }
    }
    guests
}

fn accept(listener: &UnixListener) -> Option<Connection> {
    let (stream, _) = listener.accept().ok()?;
    stream.set_nonblocking(true).ok()?;
    if !socket::peer_allowed(&stream) {
        return None;
    }
    let mut guest = Connection::new(stream);
    guest.answer(&Greeting::ours().to_message()).then_some(guest)
}

impl House<'_> {
    /// Answers what has come; false when the other end is gone.
    fn answer(&self, guest: &mut Connection) -> bool {
        if !guest.flush() || !guest.fill() {
            return false;
        }
        while let Some(message) = guest.decoder.next_message().ok().flatten() {
            if !guest.waiting.is_empty() || !(self.is_stalled)() {
                guest.waiting.push_back(message);
                continue;
            }
            let response = self.response(guest, &message).to_message();
            if !guest.answer(&response) {
                return false;
            }
        }
        true
    }

    fn response(&self, guest: &mut Connection, message: &Message) -> Response {
        let ours = Greeting::ours();
        match Request::from_message(message) {
            Ok(Request::Hello { protocol, build }) => {
                guest.greeted = (protocol, &build) == (ours.protocol, &ours.build);
                match guest.greeted {
                    true => Response::Ok,
                    false => Response::error(
                        ErrorCode::Version,
                        "the agent in this JVM is of another build",
                    ),
                }
            }
            Ok(Request::Threads(plan)) if guest.greeted => {
                let dump = (self.dump)(plan.depth);
                let file = dump.and_then(|dump| shared_memory::text(c"tare-threads", &dump).ok());
                guest.files.extend(file);
                match guest.files.is_empty() {
                    true => Response::error(ErrorCode::Internal, "no memory for a dump"),
                    false => Response::Ok,
                }
            }
            _ => Response::error(
                ErrorCode::Internal,
                "the JVM reaches no safepoint, and the agent waits inside it; `tare threads` tells \
                 who keeps it from one",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering::*};
    use tare_protocol::{Decoder, ThreadsPlan};

    /// The next message that comes.
    fn hear(stream: &mut UnixStream, decoder: &mut Decoder) -> Message {
        loop {
            if let Some(message) = decoder.next_message().unwrap() {
                return message;
            }
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "the connection was closed");
            decoder.push(&bytes[..count]);
        }
    }

    #[test]
    fn guests_are_told_of_threads_and_handed_over_when_the_jvm_goes_on() {
        let path = std::env::temp_dir().join(format!("tare-guests-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let shared = Shared::default();
        let (stalled, deferred) = (AtomicBool::new(true), AtomicBool::new(false));
        let left = std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let is_stalled = || {
                    let is = stalled.load(SeqCst);
                    deferred.fetch_or(!is, SeqCst);
                    is
                };
                let dump = |depth: u32| Some(depth.to_string().into_bytes());
                serve(&shared, &listener, &House { is_stalled: &is_stalled, dump: &dump })
            });
            let (mut stream, mut decoder) =
                (UnixStream::connect(&path).unwrap(), Decoder::default());
            let ours = Greeting::ours();
            assert_eq!(hear(&mut stream, &mut decoder), ours.to_message());
            let mut ask = |request: &Request| {
                stream.write_all(&request.to_message().encode()).unwrap();
                Response::from_message(&hear(&mut stream, &mut decoder)).unwrap()
            };
            let threads = Request::Threads(ThreadsPlan::default());
            assert!(matches!(ask(&threads), Response::Error { .. }), "nobody has said hello");
            let hello = Request::Hello { protocol: ours.protocol, build: ours.build.clone() };
            assert!(matches!(ask(&hello), Response::Ok));
            assert!(matches!(ask(&threads), Response::Ok));
            let refused = ask(&Request::Status);
            let Response::Error { message, .. } = refused else { panic!("{refused:?}") };
            assert!(message.contains("reaches no safepoint"), "{message}");
            stalled.store(false, SeqCst);
            stream.write_all(&Request::Status.to_message().encode()).unwrap();
            while !deferred.load(SeqCst) {
                std::thread::yield_now();
            }
            shared.set(Turn::Over);
            server.join().unwrap()
        });
        let _ = std::fs::remove_file(&path);
        let [guest] = left.as_slice() else { panic!("{} guests", left.len()) };
        assert!(guest.greeted && guest.open && guest.is_pending());
        assert_eq!(guest.waiting.front(), Some(&Request::Status.to_message()));
    }
}
