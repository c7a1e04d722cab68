//! A recording, and a `tare view` that serves it.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tare_profile::{
    Event, EventKind, FieldValue, Frame, FrameId, LossKind, Method, MethodKind, Profile, Row,
    SeriesInfo, Thread, ThreadId, TimeAxis, ValueKind,
};
use tare_recording::Writer;

pub const SECOND: u64 = 1_000_000_000;
pub const MS: i64 = 1_000_000;

/// A name that becomes a program where somebody takes it for more than text.
pub const HOSTILE: &str = "<img src=x onerror=\"document.title='owned'\">";

/// A directory of its own for each test, gone with it.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tare-view-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub fn record(&self, name: &str, profile: &Profile) -> PathBuf {
        let path = self.0.join(name);
        Writer::create(&path).unwrap().finish(profile).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn frame(profile: &mut Profile, kind: MethodKind, class: &str, name: &str) -> FrameId {
    let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
    let method = profile.methods.intern(Method { kind, class, name, ..Method::default() });
    profile.frames.intern(Frame::of(method))
}

/// Ten seconds of a shop with two threads and one of the JVM: processor time with moments, a
/// collection, a recursion, a function of the kernel, a hostile name, and something lost.
pub fn shop() -> Profile {
    shop_that_walks(12)
}

/// The same after a change that made it worse.
pub fn shop_with_more_walking() -> Profile {
    shop_that_walks(52)
}

fn shop_that_walks(samples: i64) -> Profile {
    let mut profile = Profile::new();
    profile.run.main_class = "com.acme.Shop".to_owned();
    profile.run.jdk = "25.0.3".to_owned();
    profile.run.duration = 10 * SECOND;
    profile.run.command_line = vec!["java".to_owned(), "-Dpassword=hunter2".to_owned()];
    profile.run.lose(LossKind::Failed, "stacks", 7, "in a prologue");
    let java = MethodKind::Java;
    let main = frame(&mut profile, java, "com.acme.Shop", "main");
    let sell = frame(&mut profile, java, "com.acme.Shop", "sell");
    let get = frame(&mut profile, java, "java.util.HashMap", "get");
    let walk = frame(&mut profile, java, "com.acme.Walk", "down");
    let hostile = frame(&mut profile, java, "com.acme.Evil", HOSTILE);
    let kernel = frame(&mut profile, MethodKind::Kernel, "", "do_syscall_64");
    let compile = frame(&mut profile, MethodKind::Native, "", "Compile::Optimize");
    let mut thread = |name: &str, kind| {
        let name = profile.strings.intern(name);
        profile.threads.push(Thread { name, kind, ..Thread::default() })
    };
    use tare_profile::ThreadKind::{Java, Vm};
    let (worker, logger) = (thread("worker-1", Java), thread("logger", Java));
    let compiler = thread("C2 CompilerThread0", Vm);
    let info = SeriesInfo::new("cpu", ValueKind::CpuTime).with_time(TimeAxis::Exact);
    let cpu = profile.add_series(info.with_period(10_000_000, ValueKind::CpuTime));
    let mut add = |stack: &[FrameId], thread: ThreadId, samples: i64, second: u64| {
        let context = profile.contexts.stack(stack.iter().copied());
        for n in 0..samples as u64 {
            let time = second * SECOND + n * 5_000_000;
            profile.series_mut(cpu).push(Row::new(context, thread, 10 * MS).at(time));
        }
    };
    add(&[main, sell, get], worker, 40, 1);
    add(&[main, sell], worker, 25, 2);
    add(&[main, sell, get, kernel], worker, 5, 2);
    add(&[main, walk, walk, walk], worker, samples, 3);
    add(&[main, hostile], logger, 8, 8);
    add(&[main], logger, 3, 9);
    add(&[compile], compiler, 7, 0);
    let gc = profile.events_of(&EventKind::gc());
    let (collector, cause) = (profile.strings.intern("G1"), profile.strings.intern("Allocation"));
    let event = Event { time: 5 * SECOND, duration: 30_000_000, ..Event::default() };
    let sizes = [FieldValue::Integer(90 << 20), FieldValue::Integer(30 << 20)];
    let names = [FieldValue::Text(collector), FieldValue::Text(cause)];
    profile.events_mut(gc).push(event, &[names, sizes].concat());
    profile
}

/// What `tare report --format json` says with these options.
pub fn report(file: &Path, options: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.arg("report").arg(file).args(["--format", "json"]).args(options);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `tare diff --format json` says with these options.
pub fn diff(old: &Path, new: &Path, options: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.arg("diff").args([old, new]).args(["--format", "json"]).args(options);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A `tare view` that runs.
pub struct Served {
    child: Child,
    pub link: String,
    pub port: u16,
}

impl Served {
    pub fn start(file: &Path) -> Served {
        Served::of(&[file])
    }

    pub fn of(files: &[&Path]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tare"))
            .args(["view", "--no-open"])
            .args(files)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut link = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
        let link = link.trim().to_owned();
        let port = link.strip_prefix("http://127.0.0.1:").expect(&link);
        let port = port.split_once('/').unwrap().0.parse().unwrap();
        Served { child, link, port }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn code(&self) -> &str {
        self.link.split_once("#c=").expect("a code").1
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes, and reads until the server has ended the connection: status and all of it.
    pub fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = self.connect();
        // A server that refuses early may end the connection before all of it is sent.
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        (status, text)
    }

    /// Asks as the page does, with these further headers.
    pub fn ask(&self, line: &str, headers: &str) -> (u16, String) {
        let host = format!("Host: 127.0.0.1:{}\r\n", self.port);
        self.raw(&format!("{line} HTTP/1.1\r\n{host}Connection: close\r\n{headers}\r\n"))
    }

    pub fn login(&self) -> String {
        let body = format!("{{\"code\":\"{}\"}}", self.code());
        let length = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let host = format!("Host: 127.0.0.1:{}\r\n", self.port);
        let (status, text) =
            self.raw(&format!("POST /api/login HTTP/1.1\r\n{host}Connection: close\r\n{length}"));
        assert_eq!(status, 200, "{text}");
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()["token"].as_str().unwrap().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
