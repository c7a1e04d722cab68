//! The socket at which a recording that is under way takes commands of other processes: dump, stop,
//! pause, resume, another interval or threshold.
//!
//! One line asks, one line answers. Where something is to be written, whoever asks opens the file
//! and sends its descriptor along: a recording never opens a path that it is told, so that it
//! cannot be made to write what the other one may not. Who may ask, and where the socket is, is in
//! `place`.

mod peer;
mod place;

use crate::error::{Context, Error, Result, refuse};
use crate::words::plain;
use place::Place;
use rustix::fs::{FileType, MemfdFlags, OFlags, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};
use tare_attach::Jvm;

/// What a recording can be told.
#[derive(Debug)]
pub enum Command {
    /// Write what there is so far, or what is kept, into this file.
    Dump(File),
    Stop,
    Pause,
    Resume,
    /// From now on.
    Interval(Interval),
    /// Waits of so many nanoseconds are told one by one from now on.
    Threshold(u64),
}

/// From one sample to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Nanoseconds, of a thread's time.
    Time(u64),
    /// Bytes that are allocated.
    Bytes(u64),
}

/// Commands are a word and a number; answers may name a file.
const LONGEST: usize = 8192;
/// Who asks must do so at once: the recording has other things to do. On a busy machine a process
/// may have to wait a second for its turn; the ring holds what comes meanwhile.
const PATIENCE: Duration = Duration::from_secs(3);
/// Writing a dump may take its time.
const ANSWER: Duration = Duration::from_secs(60);
/// Bytes that are taken of a dump that another user's recording has made.
const MOST_DUMPED: u64 = 1 << 30;

impl Command {
    /// The line, and what goes with it.
    fn parts(&self) -> (String, Option<&File>) {
        match self {
            Command::Dump(file) => ("dump".to_owned(), Some(file)),
            Command::Stop => ("stop".to_owned(), None),
            Command::Pause => ("pause".to_owned(), None),
            Command::Resume => ("resume".to_owned(), None),
            Command::Threshold(nanos) => (format!("threshold {nanos}"), None),
            Command::Interval(Interval::Time(nanos)) => (format!("interval {nanos}"), None),
            Command::Interval(Interval::Bytes(bytes)) => (format!("interval-bytes {bytes}"), None),
        }
    }

    fn parse(line: &str, file: Option<File>) -> Result<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let command = match word {
            "dump" => Some(Command::Dump(writable(
                file.context("no file descriptor came with the dump command")?,
            )?)),
            "stop" => Some(Command::Stop),
            "pause" => Some(Command::Pause),
            "resume" => Some(Command::Resume),
            "interval" => positive(rest).map(|nanos| Command::Interval(Interval::Time(nanos))),
            "threshold" => rest.parse().ok().map(Command::Threshold),
            "interval-bytes" => {
                positive(rest).map(|bytes| Command::Interval(Interval::Bytes(bytes)))
            }
            _ => None,
        };
        command.with_context(|| {
            format!("unknown command {line:?}; is the other `tare` of the same version?")
        })
    }
}

fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

/// A file that can be written without waiting for anybody: no pipe whose reader sleeps.
fn writable(file: File) -> Result<File> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    let flags = rustix::fs::fcntl_getfl(&file)?;
    let writes = flags & OFlags::RWMODE != OFlags::RDONLY && !flags.contains(OFlags::PATH);
    if kind != FileType::RegularFile || !writes {
        refuse!("a dump needs a regular file that is open for writing");
    }
    Ok(file)
}

/// Makes room in the file of a dump, unless that is where the recording itself grows.
pub fn emptied(mut file: File, growing: &Path) -> Result<File> {
    let is = file.metadata()?;
    if growing.metadata().is_ok_and(|known| (known.dev(), known.ino()) == (is.dev(), is.ino())) {
        refuse!(
            "the recording itself is being written to {}; name another file",
            growing.display()
        );
    }
    file.set_len(0)?;
    file.rewind()?;
    Ok(file)
}

/// The listening side. What is at its place vanishes with it.
pub struct CommandSocket {
    listener: UnixListener,
    /// Who wants the recording to end, and what they are told when its file is complete.
    ending: RefCell<Vec<(UnixStream, String)>>,
    _place: Place,
}

impl CommandSocket {
    /// Opens the socket of the recording of a JVM.
    pub fn open(jvm: &Jvm) -> Result<Self> {
        CommandSocket::open_for(jvm.pid)
    }

    /// Another user's socket is no hindrance: whether they record is for the agent to say, and what
    /// they say is no reason to go without.
    fn open_for(pid: u32) -> Result<Self> {
        if !matches!(place::find_own(pid), Ok(None)) {
            refuse!("another recording of JVM {pid} already listens for commands");
        }
        let (listener, place) = Place::bind(pid)?;
        Ok(CommandSocket { listener, ending: RefCell::default(), _place: place })
    }

    /// Carries out one command, if somebody has one. The answer to [`Command::Stop`] waits for
    /// [`Waiting::answer`].
    pub(crate) fn serve(&self, mut carry_out: impl FnMut(Command) -> Result<String>) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        // Whoever hangs up, or is not entitled, gets nothing; the recording goes on.
        let _ = self.answer(stream, &mut carry_out);
    }

    fn answer(
        &self,
        mut stream: UnixStream,
        carry_out: &mut dyn FnMut(Command) -> Result<String>,
    ) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        if let Err(reason) = place::may_command(&stream) {
            return stream.write_all(format!("error {reason}\n").as_bytes());
        }
        let (line, file) = hear(&stream)?;
        let command = Command::parse(line.trim_end(), file);
        let ends = matches!(command, Ok(Command::Stop));
        let said = match command.and_then(carry_out) {
            Ok(text) if ends => {
                self.ending.borrow_mut().push((stream, text));
                return Ok(());
            }
            Ok(text) => format!("ok {text}"),
            Err(error) => format!("error {error:#}"),
        };
        // One line, whatever an error says.
        stream.write_all(format!("{}\n", said.replace('\n', " ")).as_bytes())
    }
}

/// Those who had a recording stopped and wait for its file. Dropped without an answer, they learn
/// that it ended, and no more.
pub struct Waiting(Option<CommandSocket>);

impl Waiting {
    pub(crate) fn at(socket: Option<CommandSocket>) -> Self {
        Waiting(socket)
    }

    /// Tells them that the result is where they were told.
    pub fn answer(self) {
        let waiting = self.0.iter().flat_map(|socket| socket.ending.take());
        for (mut stream, text) in waiting {
            let _ = stream.write_all(format!("ok {}\n", text.replace('\n', " ")).as_bytes());
        }
    }
}

/// The process that records a JVM and takes commands, if there is one and it has a number here.
pub fn recorder(jvm: &Jvm) -> Option<u32> {
    let found = place::find(jvm.pid, jvm.uid).ok()??;
    peer::peer(&found.stream).ok().map(|(pid, _)| pid).filter(|pid| *pid != 0)
}

/// Clears away what a recording of ours that was killed has left.
pub fn sweep(pid: u32) {
    // Whoever looks for one that lives does it on the way.
    let _ = place::find_own(pid);
}

/// One line, and the descriptor that came with it.
fn hear(stream: &UnixStream) -> io::Result<(String, Option<File>)> {
    let limit = Instant::now() + PATIENCE;
    let (mut line, mut file) = (Vec::new(), None);
    while !line.ends_with(b"\n") && line.len() < LONGEST && Instant::now() < limit {
        let mut portion = [0; 256];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut extra = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut portion)];
        let got = recvmsg(stream, &mut parts, &mut extra, RecvFlags::CMSG_CLOEXEC)?.bytes;
        for message in extra.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                file = descriptors.map(File::from).last().or(file);
            }
        }
        if got == 0 {
            break;
        }
        line.extend_from_slice(&portion[..got]);
    }
    Ok((String::from_utf8_lossy(&line).into_owned(), file))
}

/// Gives a command to the recording of a JVM; what it answers.
pub fn ask(jvm: &Jvm, command: &Command) -> Result<String> {
    ask_if_any(jvm, command)?.ok_or(Error::NotRecorded { pid: jvm.pid })
}

/// The same, if there is a recording that takes commands.
pub fn ask_if_any(jvm: &Jvm, command: &Command) -> Result<Option<String>> {
    ask_for(jvm.pid, jvm.uid, command)
}

fn ask_for(pid: u32, uid: u32, command: &Command) -> Result<Option<String>> {
    let Some(found) = place::find(pid, uid)? else { return Ok(None) };
    match command {
        Command::Dump(file) if found.foreign => ask_foreign(found.stream, file).map(Some),
        _ => ask_at(found.stream, command).map(Some),
    }
}

/// Has another user's recording write a dump. They get memory, and not our file, which they could
/// write to for as long as they keep the descriptor.
fn ask_foreign(stream: UnixStream, mut file: &File) -> Result<String> {
    let memory = File::from(memfd_create("tare-dump", MemfdFlags::CLOEXEC)?);
    let answer = ask_at(stream, &Command::Dump(memory.try_clone()?))?;
    if memory.metadata()?.len() > MOST_DUMPED {
        refuse!(
            "the dump is larger than {} MiB, the limit for another user's recording",
            MOST_DUMPED >> 20
        );
    }
    file.set_len(0)?;
    file.rewind()?;
    // By position: whoever else has the memory open may move its offset.
    let (mut at, mut piece) = (0, vec![0; 1 << 16]);
    while at < MOST_DUMPED
        && let length @ 1.. = memory.read_at(&mut piece, at)?
    {
        file.write_all(&piece[..length])?;
        at += length as u64;
    }
    Ok(answer)
}

fn ask_at(mut stream: UnixStream, command: &Command) -> Result<String> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (line, file) = command.parts();
    let line = format!("{line}\n");
    let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut extra = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !extra.push(SendAncillaryMessage::ScmRights(&files)) {
        refuse!("no room for a descriptor");
    }
    let parts = [IoSlice::new(line.as_bytes())];
    let sent = sendmsg(&stream, &parts, &mut extra, SendFlags::NOSIGNAL)?;
    stream.write_all(&line.as_bytes()[sent..])?;
    let heard = answer_line(stream, ANSWER);
    if let (Err(error), Command::Stop) = (&heard, command)
        && matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
    {
        refuse!(
            "the recording is stopping, but its file is still incomplete after {} s; it is complete when \
             that `tare record` returns",
            ANSWER.as_secs()
        );
    }
    let line = heard.context("the recording did not answer")?;
    match line.trim_end().split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", text)) => refuse!("{}", plain(text)),
        _ if line.trim_end() == "ok" => Ok(String::new()),
        _ => refuse!("the recording ended before it answered"),
    }
}

/// One line, for which is waited so long in all, however slowly it comes.
fn answer_line(mut stream: UnixStream, patience: Duration) -> io::Result<String> {
    let limit = Instant::now() + patience;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < LONGEST {
        let left = limit.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut portion = [0; 256];
        match stream.read(&mut portion) {
            Ok(0) => break,
            Ok(length) => line.extend_from_slice(&portion[..length]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> File {
        File::from(memfd_create("tare-test", MemfdFlags::CLOEXEC).unwrap())
    }

    #[test]
    fn commands_come_back_as_they_were_sent() {
        let intervals = [Interval::Time(1_000_000), Interval::Bytes(65_536)];
        let commands = [Command::Stop, Command::Pause, Command::Resume];
        let thresholds = [0, 50_000].map(Command::Threshold);
        let commands = commands.into_iter().chain(thresholds);
        for command in commands.chain(intervals.map(Command::Interval)) {
            let (line, file) = command.parts();
            assert!(!line.contains('\n') && file.is_none());
            assert_eq!(
                format!("{:?}", Command::parse(&line, None).unwrap()),
                format!("{command:?}")
            );
        }
        for bad in
            ["", "dump", "dump 2f746d70", "interval", "interval 0", "interval-bytes x", "jump"]
        {
            assert!(Command::parse(bad, None).is_err(), "{bad}");
        }
        assert!(matches!(Command::parse("dump", Some(memory())), Ok(Command::Dump(_))));
        let closed = File::open("/proc/self/exe").unwrap();
        assert!(Command::parse("dump", Some(closed)).is_err(), "not open for writing");
        let null = File::options().write(true).open("/dev/null").unwrap();
        assert!(Command::parse("dump", Some(null)).is_err(), "no ordinary file");
    }

    #[test]
    fn an_command_reaches_the_socket_and_its_answer_comes_back() {
        // No process has such a number.
        let pid = u32::MAX - std::process::id();
        let us = rustix::process::geteuid().as_raw();
        let socket = CommandSocket::open_for(pid).unwrap();
        assert!(CommandSocket::open_for(pid).is_err(), "one recording of a JVM at a time");
        let asking = std::thread::spawn(move || {
            let good = ask_for(pid, us, &Command::Interval(Interval::Time(5))).unwrap();
            let bad = ask_for(pid, us, &Command::Stop).unwrap_err().to_string();
            let mut file = memory();
            let dumped = ask_for(pid, us, &Command::Dump(file.try_clone().unwrap())).unwrap();
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            (good, bad, dumped, text)
        });
        let mut seen = 0;
        while seen < 3 {
            socket.serve(|command| {
                seen += 1;
                match command {
                    Command::Interval(Interval::Time(nanos)) => Ok(format!("every {nanos} ns")),
                    Command::Dump(mut file) => {
                        file.write_all(b"what there is")?;
                        Ok("13 bytes".to_owned())
                    }
                    _ => refuse!("not\nnow"),
                }
            });
            std::thread::sleep(Duration::from_millis(1));
        }
        let (good, bad, dumped, text) = asking.join().unwrap();
        assert_eq!((good.as_deref(), bad.as_str()), (Some("every 5 ns"), "not now"));
        assert_eq!((dumped.as_deref(), text.as_str()), (Some("13 bytes"), "what there is"));
        drop(socket);
        assert!(ask_for(pid, us, &Command::Stop).unwrap().is_none(), "nothing is left");
    }

    #[test]
    fn another_users_recording_never_gets_our_file() {
        let path = std::env::temp_dir().join(format!("tare-foreign-{}.tare", std::process::id()));
        std::fs::write(&path, "older and longer").unwrap();
        let ours = File::options().write(true).open(&path).unwrap();
        let inode = ours.metadata().unwrap().ino();
        let (asks, answers) = UnixStream::pair().unwrap();
        let impostor = std::thread::spawn(move || {
            let (line, file) = hear(&answers).unwrap();
            assert_eq!(line, "dump\n");
            let mut file = file.expect("somewhere to write to");
            file.write_all(b"a dump").unwrap();
            (&answers).write_all(b"ok 6 bytes\n").unwrap();
            drop(answers);
            file
        });
        assert_eq!(ask_foreign(asks, &ours).unwrap(), "6 bytes");
        let mut kept = impostor.join().unwrap();
        assert_ne!(kept.metadata().unwrap().ino(), inode);
        kept.write_all(b", and more").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a dump");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_answer_that_trickles_is_not_waited_for_for_ever() {
        let (asks, mut answers) = UnixStream::pair().unwrap();
        let trickle = std::thread::spawn(move || {
            while answers.write_all(b"o").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert!(answer_line(asks, Duration::from_millis(100)).is_err());
        trickle.join().unwrap();
    }

    #[test]
    fn who_stops_a_recording_is_answered_when_its_file_is_complete() {
        use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
        static COMPLETE: AtomicBool = AtomicBool::new(false);
        let pid = u32::MAX - std::process::id() - (1 << 24);
        let us = rustix::process::geteuid().as_raw();
        let socket = CommandSocket::open_for(pid).unwrap();
        let asking = std::thread::spawn(move || {
            let answer = ask_for(pid, us, &Command::Stop).unwrap();
            (answer, COMPLETE.load(SeqCst))
        });
        let mut stops = 0;
        while stops == 0 {
            socket.serve(|command| {
                stops += u32::from(matches!(command, Command::Stop));
                Ok("stopped".to_owned())
            });
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(50));
        COMPLETE.store(true, SeqCst);
        Waiting::at(Some(socket)).answer();
        assert_eq!(asking.join().unwrap(), (Some("stopped".to_owned()), true));
    }

    #[test]
    fn a_dump_does_not_go_where_the_recording_grows() {
        let path = std::env::temp_dir().join(format!("tare-socket-{}.tare", std::process::id()));
        std::fs::write(&path, "so far").unwrap();
        let same = File::options().write(true).open(&path).unwrap();
        assert!(emptied(same, &path).unwrap_err().to_string().contains("name another file"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "so far");
        let other = File::options().write(true).open(&path).unwrap();
        emptied(other, Path::new("/nowhere")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        std::fs::remove_file(&path).unwrap();
    }
}
