//! The demo program under load, with a client that keeps asking and notices a missing answer.

use crate::env::Jdk;
use crate::java::demo_classes;
use crate::machine::PATIENCE;
use crate::target::{Target, TargetBuilder};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub struct Demo {
    pub target: Target,
    port: u16,
    answered: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    client: Option<JoinHandle<Result<(), String>>>,
}

impl Demo {
    /// The demo as the tests run it: busy enough that all its code is in use, and not so busy that
    /// nothing else runs on a small machine. The sizes of the JVM's own pools are fixed, so that
    /// what grows is ours.
    pub fn command(jdk: &Jdk) -> TargetBuilder {
        let mut builder = Target::java(jdk)
            .vm("-Xmx96m")
            .vm("-XX:+UseSerialGC")
            .vm("-XX:-UseDynamicNumberOfCompilerThreads")
            .class_path(demo_classes())
            .main("shop.Main");
        // It ends by itself even if the test is killed.
        for word in ["--port=0", "--threads=2", "--rate=300", "--quiet", "--duration=1500"] {
            builder = builder.arg(word);
        }
        builder
    }

    pub fn start(jdk: &Jdk) -> Demo {
        Demo::from(Demo::command(jdk))
    }

    pub fn from(builder: TargetBuilder) -> Demo {
        let target = builder.start();
        let text = target.text();
        let port = text
            .split("port=")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
            .unwrap_or_else(|| panic!("no port in {text:?}"));
        let (answered, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let client = {
            let (answered, stop) = (Arc::clone(&answered), Arc::clone(&stop));
            thread::spawn(move || ask_on(port, &answered, &stop))
        };
        Demo { target, port, answered, stop, client: Some(client) }
    }

    /// Requests answered so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Asserts that requests are being answered now: at least one more than before.
    pub fn check_answers(&self) {
        let before = self.answered();
        crate::machine::wait_until("the demo answers one more request", || {
            self.answered() > before || self.client.as_ref().is_some_and(JoinHandle::is_finished)
        });
        assert!(self.answered() > before, "the client gave up:\n{}", self.target.text());
    }

    /// Comes as another client, for whom the program starts a thread that ends with the visit.
    pub fn visit(&self) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the demo listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.write_all(b"ping\nquit\n").expect("the demo reads");
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).expect("the demo answers");
        assert_eq!(answer, "pong\n");
    }

    /// Ends the client, then the program as a service manager would; asserts that no request was
    /// lost and that the program's own count of its work is exact. Returns its output.
    pub fn finish(mut self) -> String {
        self.stop.store(true, Ordering::Relaxed);
        let client = self.client.take().expect("not yet ended").join().expect("the client");
        assert_eq!(client, Ok(()), "{}", self.target.text());
        self.target.signal(rustix::process::Signal::TERM);
        let Demo { target, .. } = self;
        let (code, text) = target.wait();
        assert_eq!(code, 143, "the demo did not end as asked:\n{text}");
        assert!(text.contains("exact=yes"), "{text}");
        text
    }
}

/// Asks for one order after the other until told to stop.
fn ask_on(port: u16, answered: &AtomicU64, stop: &AtomicBool) -> Result<(), String> {
    let text = |e: std::io::Error| format!("a request failed: {e}");
    let stream = TcpStream::connect(("127.0.0.1", port)).map_err(text)?;
    // An answer takes well under a millisecond; five minutes mean that the program hangs.
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    let mut writer = stream.try_clone().map_err(text)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    for number in 1_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        writer.write_all(format!("order {number}\n").as_bytes()).map_err(text)?;
        line.clear();
        reader.read_line(&mut line).map_err(text)?;
        let expected = [format!("ok {number} "), format!("rejected {number} ")];
        if !expected.iter().any(|start| line.starts_with(start)) {
            return Err(format!("a wrong answer to order {number}: {line:?}"));
        }
        answered.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
