//! `tare --host` through Debian's sshd: an ordinary process on loopback, at a port of its own, with
//! keys in a temporary directory and a configuration that the user's ssh is given.

use crate::common::{assert_no_trace, traces};
use crate::recording::Recorded;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tare_jvm_tests::{Demo, Scratch, Tare, descendants, env, on_each_jdk, skip, wait_until};
use tare_recording::Recording;

const SSHD: &str = "/usr/sbin/sshd";

pub struct Sshd {
    scratch: Scratch,
    daemon: Child,
    /// What the near end is started through.
    through: Vec<String>,
}

impl Sshd {
    /// Nothing where there is no sshd; that is said.
    fn start(test: &str) -> Option<Sshd> {
        Sshd::at(test, "127.0.0.1", false, [&[], &[]])
    }

    /// In the place that `far` leads into, for somebody in the place that `near` leads into, at this
    /// address, with or without a `tare` of this build on the PATH there.
    pub fn at(
        test: &str,
        address: &str,
        has_tare: bool,
        [far, near]: [&[&str]; 2],
    ) -> Option<Sshd> {
        let tools = [SSHD, "/usr/bin/ssh", "/usr/bin/ssh-keygen"];
        if let Some(missing) = tools.iter().find(|tool| !Path::new(tool).exists()) {
            skip(test, &format!("there is no {missing} (openssh-server, openssh-client)"));
            return None;
        }
        let scratch = Scratch::new();
        let folder = scratch.path().to_owned();
        let path = |name: &str| folder.join(name).display().to_string();
        for key in ["host_key", "key"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f", &path(key)];
            let made = Command::new("/usr/bin/ssh-keygen").args(words).status();
            assert!(made.is_ok_and(|status| status.success()), "no key");
        }
        fs::copy(path("key.pub"), path("authorized")).unwrap();
        // As free here as in a place of its own, where nobody listens.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let mut server = format!(
            "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\n",
            path("host_key"),
            path("authorized"),
        );
        if has_tare {
            let bin = env().bin.parent().expect("a directory").display();
            server += &format!("SetEnv PATH={bin}:/usr/bin:/bin\n");
        }
        let client = format!(
            "Host box\nHostName {address}\nPort {port}\nUser {user}\nIdentityFile {}\n\
             IdentitiesOnly yes\nUserKnownHostsFile {}\nStrictHostKeyChecking accept-new\n\
             LogLevel ERROR\n",
            path("key"),
            path("known"),
        );
        let shim = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", path("client"));
        for (name, text) in [("server", server), ("client", client), ("ssh", shim)] {
            fs::write(path(name), text).unwrap();
        }
        fs::set_permissions(path("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        // Debian's gives up some rights in there, if it is root.
        let _ = fs::create_dir_all("/run/sshd");
        let (server, log) = (path("server"), path("log"));
        let words = [far, &[SSHD, "-D", "-f", &server, "-E", &log]].concat();
        let mut command = Command::new(words[0]);
        let daemon =
            command.args(&words[1..]).stdin(Stdio::null()).spawn().expect("sshd can be started");
        let through = near.iter().map(|word| (*word).to_owned()).collect();
        let mut sshd = Sshd { scratch, daemon, through };
        wait_until("sshd listens", || {
            let ended = matches!(sshd.daemon.try_wait(), Ok(Some(_)));
            ended || listens(sshd.daemon.id(), port)
        });
        let ssh = Tare::at(Path::new(&path("ssh"))).through(near);
        if ssh.run(&["-o", "BatchMode=yes", "box", "true"]).code != 0 {
            let log = fs::read_to_string(path("log")).unwrap_or_default();
            skip(test, &format!("nobody can log in by sshd here: {log}"));
            return None;
        }
        Some(sshd)
    }

    pub fn tare(&self) -> Tare {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.scratch.path().display());
        let tare = Tare::this().var("PATH", path).directory(self.scratch.path());
        tare.through(&self.through.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }
}

/// Whether somebody listens at a port of the network that a process is in.
fn listens(pid: u32, port: u16) -> bool {
    let sockets = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let local = format!(":{port:04X}");
    sockets.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|at| at.ends_with(&local)) && fields.nth(1) == Some("0A")
    })
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

on_each_jdk! {
    fn verbs_and_recordings(jdk) {
        let Some(sshd) = Sshd::start("tare --host through sshd") else { return };
        let (tare, demo) = (sshd.tare(), Demo::start(jdk));
        let (pid, name) = (demo.target.pid(), demo.target.name());
        let list = tare.run(&["--host", "box", "ps", "--json"]).json();
        assert!(list.as_array().unwrap().iter().any(|jvm| jvm["pid"] == pid), "{list}");
        let threads = tare.run(&["--host", "box", "threads", &name]);
        assert!(threads.ok().contains("no deadlock"), "{}", threads.describe());
        let words = ["--host", "box", "record", &name, "--wall", "-d", "3s", "-o", "x.tare"];
        let outcome = tare.run(&words);
        assert!(outcome.ok().contains("shop."), "{}", outcome.describe());
        assert_eq!(Recording::open(&sshd.file("x.tare")).unwrap().warnings(), []);
        tare.run(&["--host", "box", "detach", &name]).ok();
        assert_no_trace(pid);
        demo.check_answers();
        demo.finish();
    }

    /// ssh here, or sshd's end of the connection, is killed without a word.
    fn a_connection_that_breaks(jdk) {
        let Some(sshd) = Sshd::start("a connection through sshd that breaks") else { return };
        let (tare, demo) = (sshd.tare(), Demo::start(jdk));
        let (pid, name) = (demo.target.pid(), demo.target.name());
        for (victim, file) in [("ssh", "near.tare"), ("sshd", "far.tare")] {
            let words = ["--host", "box", "record", &name, "--wall", "-o", file];
            let recording = tare.start(&words);
            let path = sshd.file(file);
            wait_until("a second of it is here", || Recorded::seconds(&path) >= 1.0);
            let below = if victim == "ssh" { recording.pid() } else { sshd.daemon.id() };
            let mut killed = 0;
            for process in descendants(below) {
                let comm = fs::read_to_string(format!("/proc/{process}/comm"));
                if comm.is_ok_and(|comm| comm.trim().starts_with("ssh")) {
                    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
                    kill_process(process.expect("a pid"), Signal::KILL).unwrap();
                    killed += 1;
                }
            }
            assert!(killed > 0, "no {victim} below {below}");
            let outcome = recording.wait();
            outcome.fails(1, &["the connection to box broke", file]);
            assert!(outcome.out.contains("shop."), "{}", outcome.describe());
            let lost = Recorded::open(&path).losses();
            assert!(lost.iter().any(|loss| loss.contains("end of the recording")), "{lost:?}");
            wait_until("the agent has gone", || traces(pid).is_empty());
            demo.check_answers();
        }
        demo.finish();
    }

    /// A link that carries a fraction of what is recorded: sums stay true, and what is lost is said.
    fn a_link_that_is_slow(jdk) {
        let Some(sshd) = Sshd::start("a slow connection through sshd") else { return };
        let (tare, demo) = (sshd.tare(), Demo::start(jdk));
        let name = demo.target.name();
        let words = [
            "--rate", "16K", "--host", "box", "record", &name, "--wall", "--interval", "1ms", "-d",
            "3s", "-o", "x.tare",
        ];
        let outcome = tare.run(&words);
        outcome.ok();
        let recorded = Recorded::open(&sshd.file("x.tare"));
        let (time, samples) = recorded.wall_time();
        // Every sample is in the sums: each stands for the time that had passed since the one before.
        assert!(samples > 0 && time > 3e9, "{time} ns in {samples} rows; {}", outcome.describe());
        demo.check_answers();
        demo.finish();
    }
}
