//! Where a recording that is under way takes orders from a second terminal: dump, stop, pause, resume,
//! another interval.
//!
//! The recording `tare` listens at a socket with an abstract name, which leaves no file behind and
//! which nobody can occupy for long without being found out: both sides check that the other is the
//! same user, or root. One line asks, one line answers.

use anyhow::{Context, Result, bail};
use rustix::net::sockopt::socket_peercred;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// What a recording can be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Write what there is so far, or what is kept, to this file.
    Dump(PathBuf),
    Stop,
    Pause,
    Resume,
    /// Nanoseconds between two samples.
    Interval(u64),
}

/// Orders are a word and a path.
const LONGEST: u64 = 8192;
/// Who asks must do so at once: the recording has other things to do. On a busy machine a process
/// may have to wait a second for its turn; the ring holds what comes meanwhile.
const PATIENCE: Duration = Duration::from_secs(3);
/// Writing a dump may take its time.
const ANSWER: Duration = Duration::from_secs(60);

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Dump(path) => {
                // A path may hold any byte; in hexadecimal it fits on a line.
                f.write_str("dump ")?;
                path.as_os_str().as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Order::Stop => f.write_str("stop"),
            Order::Pause => f.write_str("pause"),
            Order::Resume => f.write_str("resume"),
            Order::Interval(nanos) => write!(f, "interval {nanos}"),
        }
    }
}

impl Order {
    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "dump" => path(rest).map(Order::Dump),
            "stop" => Some(Order::Stop),
            "pause" => Some(Order::Pause),
            "resume" => Some(Order::Resume),
            "interval" => rest.parse().ok().filter(|nanos| *nanos > 0).map(Order::Interval),
            _ => None,
        }
    }
}

fn path(hex: &str) -> Option<PathBuf> {
    let digits = hex.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let bytes = bytes.filter(|bytes| !bytes.is_empty() && !bytes.contains(&0))?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(&bytes)))
}

/// The listening side.
pub struct Desk {
    listener: UnixListener,
}

impl Desk {
    /// Opens the desk of the recording of a JVM.
    pub fn open(pid: u32) -> Result<Self> {
        let listener = UnixListener::bind_addr(&address(pid)?)?;
        listener.set_nonblocking(true)?;
        Ok(Desk { listener })
    }

    /// Carries out one order, if somebody has one.
    pub fn serve(&self, mut carry_out: impl FnMut(Order) -> Result<String>) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        // Whoever hangs up, or is not entitled, gets nothing; the recording goes on.
        let _ = answer(stream, &mut carry_out);
    }
}

fn answer(
    mut stream: UnixStream,
    carry_out: &mut dyn FnMut(Order) -> Result<String>,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let peer = socket_peercred(&stream)?.uid;
    if peer.as_raw() != rustix::process::geteuid().as_raw() && !peer.is_root() {
        return stream.write_all(b"error this recording belongs to another user\n");
    }
    let mut line = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut line)?;
    let outcome = match Order::parse(line.trim_end()) {
        Some(order) => carry_out(order),
        None => {
            Err(anyhow::anyhow!("this recording does not know the order {:?}", line.trim_end()))
        }
    };
    let said = match outcome {
        Ok(text) => format!("ok {text}"),
        Err(error) => format!("error {error:#}"),
    };
    // One line, whatever an error says.
    stream.write_all(format!("{}\n", said.replace('\n', " ")).as_bytes())
}

/// Gives an order to the recording of a JVM; what it answers.
pub fn ask(pid: u32, order: &Order) -> Result<String> {
    match find(pid)? {
        Some(stream) => ask_at(stream, order),
        None => bail!(
            "JVM {pid} is not being recorded by a `tare record` here; begin with `tare record {pid}`"
        ),
    }
}

/// The same, if there is a recording that takes orders.
pub fn ask_if_any(pid: u32, order: &Order) -> Result<Option<String>> {
    find(pid)?.map(|stream| ask_at(stream, order)).transpose()
}

fn find(pid: u32) -> Result<Option<UnixStream>> {
    let Ok(stream) = UnixStream::connect_addr(&address(pid)?) else { return Ok(None) };
    let peer = socket_peercred(&stream)?.uid;
    let ours = rustix::process::geteuid();
    if peer.as_raw() != ours.as_raw() && !peer.is_root() && !ours.is_root() {
        bail!("JVM {pid} is being recorded by another user");
    }
    Ok(Some(stream))
}

fn ask_at(mut stream: UnixStream, order: &Order) -> Result<String> {
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{order}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST))
        .read_line(&mut line)
        .context("the recording did not answer")?;
    match line.trim_end().split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", text)) => bail!("{text}"),
        _ if line.trim_end() == "ok" => Ok(String::new()),
        _ => bail!("the recording ended before it answered"),
    }
}

fn address(pid: u32) -> Result<SocketAddr> {
    Ok(SocketAddr::from_abstract_name(format!("tare-recording-of-{pid}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_back_as_they_were_sent() {
        for order in [
            Order::Dump("/tmp/a b\n\u{e4}.tare".into()),
            Order::Stop,
            Order::Pause,
            Order::Resume,
            Order::Interval(1_000_000),
        ] {
            let line = order.to_string();
            assert!(!line.contains('\n'));
            assert_eq!(Order::parse(&line), Some(order));
        }
        for bad in ["", "dump", "dump 0", "dump 00", "dump zz", "interval", "interval 0", "jump"] {
            assert_eq!(Order::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_order_reaches_the_desk_and_its_answer_comes_back() {
        // No process has such a number.
        let pid = u32::MAX - std::process::id();
        let desk = Desk::open(pid).unwrap();
        assert!(Desk::open(pid).is_err(), "one recording of a JVM at a time");
        let asking = std::thread::spawn(move || {
            let good = ask(pid, &Order::Interval(5)).unwrap();
            let bad = ask(pid, &Order::Stop).unwrap_err().to_string();
            (good, bad)
        });
        let mut seen = Vec::new();
        while seen.len() < 2 {
            desk.serve(|order| {
                seen.push(order.clone());
                match order {
                    Order::Interval(nanos) => Ok(format!("every {nanos} ns")),
                    _ => bail!("not\nnow"),
                }
            });
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(asking.join().unwrap(), ("every 5 ns".to_owned(), "not now".to_owned()));
        assert_eq!(seen, [Order::Interval(5), Order::Stop]);
        drop(desk);
        assert!(ask(pid, &Order::Stop).unwrap_err().to_string().contains("is not being recorded"));
    }
}
