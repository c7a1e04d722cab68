//! `tare view JVM`: its figures grow, a JVM that is killed gives a clear sentence and leaves what was
//! recorded, and a server that ends takes the agent along.

use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use tare_jvm_tests::{Demo, PATIENCE, Tare, on_each_jdk, wait_until};

/// A page's server, asked as the page asks.
struct Served {
    child: Child,
    host: String,
    token: String,
}

impl Served {
    fn start(jvm: &str) -> Served {
        let mut command = Tare::this().command(&["view", jvm, "--no-open", "--interval", "1ms"]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut link = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut link).expect("a link");
        let (address, code) = link.trim().split_once("/#c=").expect("a link with a code");
        let host = address.strip_prefix("http://").expect("a link").to_owned();
        let mut served = Served { child, host, token: String::new() };
        let login = format!("{{\"code\":\"{code}\"}}");
        let length = format!("Content-Length: {}\r\n\r\n{login}", login.len());
        let token = served.body(&format!(
            "POST /api/login HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{length}",
            served.host
        ));
        served.token = token["token"].as_str().expect("a token").to_owned();
        served
    }

    fn body(&self, request: &str) -> Value {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (_, body) = text.split_once("\r\n\r\n").expect("an answer");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn ask(&self, question: &str) -> Value {
        self.body(&format!(
            "GET /api/{question} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: \
             Bearer {}\r\n\r\n",
            self.host, self.token
        ))
    }

    /// Ctrl-C.
    fn end(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("a pid"), Signal::INT).expect("our own child");
        let mut status = None;
        wait_until("Ctrl-C ends it", || {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        assert_eq!(status.and_then(|status| status.code()), Some(0));
    }

    fn total(&self) -> i64 {
        self.ask("methods?native&idle")["total"].as_i64().unwrap_or(0)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

on_each_jdk! {
    fn a_page_of_a_jvm(jdk) {
        let demo = Demo::start(jdk);
        let mut served = Served::start(&demo.target.name());
        let run = served.ask("run");
        assert_eq!((&run["source"], &run["name"]), (&"live".into(), &"shop.Main".into()), "{run}");
        wait_until("the page has figures", || served.total() > 0);
        let first = served.total();
        wait_until("they grow", || served.total() > first);
        demo.check_answers();
        // Ctrl-C: the program is as it was, and runs on.
        served.end();
        demo.check_answers();
        let listed = Tare::this().listed(demo.target.pid()).expect("it is a JVM");
        assert_eq!(listed["agent"], "detached", "{listed}");

        // And once more, until somebody kills it.
        let served = Served::start(&demo.target.name());
        wait_until("the page has figures", || served.total() > 0);
        demo.target.signal(Signal::KILL);
        wait_until("the page says that the JVM has ended", || served.ask("run")["source"] == "ended");
        let run = served.ask("run");
        let sentence = run["sentence"].as_str().unwrap_or_default();
        assert!(sentence.contains("has ended; what was recorded until then is here"), "{run}");
        assert!(served.total() > 0, "{run}");
    }

    /// The recording hears of it first, and the page must not miss it for that.
    fn ctrl_c_is_heard_every_time(jdk) {
        let demo = Demo::start(jdk);
        for _ in 0..4 {
            Served::start(&demo.target.name()).end();
        }
        demo.check_answers();
    }
}
