//! `tare --host`: a JVM elsewhere, through programs named ssh, docker and kubectl that are shims
//! here: they check their words, and run the far side's command on this machine in another
//! environment. What they lead to has no `tare`, so one is sent.

use crate::common::assert_no_trace;
use crate::recording::Recorded;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tare_jvm_tests::{Demo, Running, Scratch, Tare, can, descendants, on_each_jdk, wait_until};
use tare_recording::Recording;

/// What a shell of the far side finds: no tare, and a cache of its own.
pub struct Far {
    scratch: Scratch,
}

/// Runs what follows the words that each program is given, as a far shell would.
const SSH: &str = r#"#!/bin/sh
w="-T -x -o BatchMode=yes -o ClearAllForwardings=yes -o RemoteCommand=none --"
[ "$1 $2 $3 $4 $5 $6 $7 $8 $9" = "$w" ] || { echo "ssh: $*" >&2; exit 255; }
while [ "$1" != -- ]; do shift; done
[ "$2" = ann@box ] || { echo "ssh: no such host $2" >&2; exit 255; }
shift 2
echo "Welcome to box"
exec env -i PATH=/usr/bin:/bin HOME="@FAR@" TMPDIR="@FAR@/tmp" TARE_TIMEOUT=240s @WAY@ sh -c "$*"
"#;
const DOCKER: &str = r#"#!/bin/sh
[ "$1 $2 $3 $4 $5" = "exec -i shop sh -c" ] || { echo "docker: $*" >&2; exit 125; }
exec env -i PATH=/usr/bin:/bin HOME="@FAR@" TMPDIR="@FAR@/tmp" @WAY@ sh -c "$6"
"#;
const KUBECTL: &str = r#"#!/bin/sh
[ "$1 $2 $3 $4" = "--context west --namespace prod" ] || { echo "kubectl: $*" >&2; exit 1; }
shift 4
w="$1 $2 $3 $4 $5 $6 $7 $8"
[ "$w" = "exec -i orders -c app -- sh -c" ] || { echo "kubectl: $*" >&2; exit 1; }
exec env -i PATH=/usr/bin:/bin HOME="@FAR@" TMPDIR="@FAR@/tmp" @WAY@ sh -c "$9"
"#;

impl Far {
    pub fn new() -> Self {
        Far::through("")
    }

    /// Entered by these words of a command line.
    pub fn through(way: &str) -> Self {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.join("far/tmp")).unwrap();
        fs::create_dir_all(scratch.join("bin")).unwrap();
        fs::create_dir_all(scratch.join("near")).unwrap();
        let far = scratch.join("far").display().to_string();
        for (name, text) in [("ssh", SSH), ("docker", DOCKER), ("kubectl", KUBECTL)] {
            let path = scratch.join("bin").join(name);
            fs::write(&path, text.replace("@FAR@", &far).replace("@WAY@", way)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Far { scratch }
    }

    /// A tare that meets these programs first.
    pub fn tare(&self) -> Tare {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.scratch.join("bin").display());
        Tare::this().var("PATH", path).directory(&self.near())
    }

    pub fn near(&self) -> PathBuf {
        self.scratch.join("near")
    }

    /// What is left in its places for files.
    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for folder in ["far/tmp", "far/.cache/tare", "/tmp", "/dev/shm"] {
            let entries = fs::read_dir(self.scratch.path().join(folder));
            let names = entries.into_iter().flatten().filter_map(|entry| {
                let name = entry.ok()?.file_name().to_string_lossy().into_owned();
                name.starts_with("tare-").then_some(name)
            });
            // Other tests have their own.
            left.extend(names.filter(|_| folder.starts_with("far")));
        }
        left
    }
}

fn near(word: &str) -> [&str; 3] {
    ["--host", "ann@box", word]
}

on_each_jdk! {
    fn verbs_that_ask(jdk) {
        let (far, demo) = (Far::new(), Demo::start(jdk));
        let (pid, name) = (demo.target.pid(), demo.target.name());
        let tare = far.tare();
        let list = tare.run(&[&near("ps")[..], &["--json"]].concat()).json();
        assert!(list.as_array().unwrap().iter().any(|jvm| jvm["pid"] == pid), "{list}");
        let status = tare.run(&[&near("status")[..], &[&name, "--json"]].concat()).json();
        assert_eq!(status["panics"], 0);
        assert!(status["uptime_ms"].is_number() || status["threads"].is_number(), "{status}");
        let threads = tare.run(&[&near("threads")[..], &[&name]].concat());
        assert!(threads.ok().contains("no deadlock"), "{}", threads.describe());
        // A command that is proposed can be pasted here.
        let hint = threads.out.lines().find_map(|line| line.split('`').nth(1)).expect("a hint");
        assert_eq!(hint, format!("tare --host ann@box threads {pid} --full"));
        let words: Vec<&str> = hint.split(' ').skip(1).collect();
        let pasted = tare.run(&words);
        assert!(pasted.ok().contains("shop."), "{}", pasted.describe());
        let doctor = tare.run(&[&near("doctor")[..], &[&name]].concat());
        assert!(doctor.ok().contains("works"), "{}", doctor.describe());
        // Errors and their status are the far side's.
        tare.run(&[&near("status")[..], &["no-such-jvm"]].concat()).fails(1, &["no-such-jvm"]);
        // Other ways.
        let docker = tare.run(&["--host", "docker:shop", "threads", &name]);
        assert!(docker.ok().contains("no deadlock"), "{}", docker.describe());
        let place = ["-n", "prod", "--context", "west", "--host", "pod/orders/app"];
        let pod = tare.run(&[&place[..], &["ps"]].concat());
        assert!(pod.ok().contains(&pid.to_string()), "{}", pod.describe());
        // A file that is made there lands here, under the name that it has here.
        let heap = tare.run(&[&near("heap")[..], &[&name, "html", "map.html"]].concat());
        heap.ok();
        let said = format!("{}{}", heap.out, heap.err);
        assert!(said.contains("map.html") && !said.contains("tare-stdout"), "{said}");
        let page = fs::read_to_string(far.near().join("map.html")).unwrap();
        assert!(page.ends_with("</html>\n") || page.contains("</html>"), "{}", page.len());
        let out = tare.run(&[&near("heap")[..], &[&name, "html", "-"]].concat());
        assert!(out.ok().contains("</html>"), "{}", out.describe());
        tare.run(&[&near("detach")[..], &[&name]].concat()).ok();
        assert_no_trace(pid);
        assert_eq!(far.left(), [""; 0], "left on the far side");
        demo.check_answers();
        demo.finish();
    }

    fn recordings_grow_here(jdk) {
        let (far, demo) = (Far::new(), Demo::start(jdk));
        let (pid, name) = (demo.target.pid(), demo.target.name());
        let tare = far.tare();
        for (words, file) in [
            (&["--wall", "-d", "3s", "-o", "x.tare"][..], "x.tare"),
            (&["--exact", "--include", "shop.**", "-d", "3s", "-o", "exact.tare"], "exact.tare"),
            (&["--trace", "--include", "shop.pricing.**", "-d", "1s", "-o", "t.tare"], "t.tare"),
            (&["--alloc", "--keep", "1m", "-d", "3s", "-o", "kept.tare"], "kept.tare"),
        ] {
            let words = [&near("record")[..], &[&name], words].concat();
            let outcome = tare.run(&words);
            let text = outcome.ok();
            assert!(text.contains(file) && text.contains("shop."), "{}", outcome.describe());
            let recording = Recording::open(&far.near().join(file)).unwrap();
            assert_eq!(recording.warnings(), [], "{file}");
            assert_no_trace(pid);
        }
        // A file of another tool is made here.
        let words = [&near("record")[..], &[&name, "-d", "2s", "-o", "cpu.html"]].concat();
        let outcome = tare.run(&words);
        assert!(outcome.ok().contains("cpu.html"), "{}", outcome.describe());
        assert!(fs::read_to_string(far.near().join("cpu.html")).unwrap().contains("</html>"));
        let here = fs::read_dir(far.near()).unwrap().flatten();
        let left: Vec<_> = here.map(|entry| entry.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("unfinished")), "{left:?}");
        // While it is made it can be read, and Ctrl-C ends it as ever.
        let recording = begin(&tare, &far, &name, "grows.tare");
        let grows = far.near().join("grows.tare");
        let report = Tare::this().run(&["report".as_ref(), grows.as_os_str()]);
        assert!(report.ok().contains("shop."), "{}", report.describe());
        recording.signal(Signal::INT);
        let ended = recording.wait();
        assert!(ended.ok().contains("grows.tare"), "{}", ended.describe());
        assert_eq!(Recording::open(&grows).unwrap().warnings(), []);
        // So does a stop from elsewhere.
        let recording = begin(&tare, &far, &name, "stopped.tare");
        tare.run(&[&near("stop")[..], &[&name]].concat()).ok();
        assert!(recording.wait().ok().contains("stopped.tare"));
        assert_no_trace(pid);
        demo.check_answers();
        demo.finish();
    }

    fn a_connection_that_breaks(jdk) {
        let demo = Demo::start(jdk);
        let (pid, name) = (demo.target.pid(), demo.target.name());
        // Who is killed: the near end, what leads there, the far end, and its command.
        for victim in ["near", "ssh", "relay", "record"] {
            let far = Far::new();
            let tare = far.tare();
            let mut recording = begin(&tare, &far, &name, "x.tare");
            let file = far.near().join("x.tare");
            if victim == "near" {
                recording.kill();
            } else {
                kill_below(recording.pid(), victim);
                let outcome = recording.wait();
                assert_ne!(outcome.code, 0, "{victim}: {}", outcome.describe());
                assert!(outcome.out.contains("shop."), "{victim}: {}", outcome.describe());
                let lost = Recorded::open(&file).losses();
                let told = lost.iter().any(|loss| loss.contains("end of the recording"));
                assert!(told, "{victim}: {lost:?}");
            }
            let report = Tare::this().run(&["report".as_ref(), file.as_os_str()]);
            assert!(report.ok().contains("shop."), "{victim}: {}", report.describe());
            wait_until("the agent has gone", || crate::common::traces(pid).is_empty());
            assert_eq!(far.left(), [""; 0], "{victim}");
            demo.check_answers();
        }
        demo.finish();
    }

    fn a_jvm_that_is_killed(jdk) {
        let (far, demo) = (Far::new(), Demo::start(jdk));
        let name = demo.target.name();
        let recording = begin(&far.tare(), &far, &name, "x.tare");
        demo.target.signal(Signal::KILL);
        let outcome = recording.wait();
        assert!(outcome.ok().contains("shop."), "{}", outcome.describe());
        assert_eq!(Recording::open(&far.near().join("x.tare")).unwrap().warnings(), []);
    }
}

/// A recording of which something is here already.
fn begin(tare: &Tare, far: &Far, name: &str, file: &str) -> Running {
    let words = [&near("record")[..], &[name, "--wall", "-o", file]].concat();
    let recording = tare.start(&words);
    let path = far.near().join(file);
    wait_until("a second of it is here", || Recorded::seconds(&path) >= 1.0);
    recording
}

/// Kills the process below this one that is started by this word.
fn kill_below(pid: u32, word: &str) {
    let found = descendants(pid).into_iter().find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).take(2).collect();
        let verb = words.get(1).copied().unwrap_or_default();
        match word {
            // The shim has become the shell, which has become the relay.
            "ssh" | "relay" => verb == b"relay",
            other => verb == other.as_bytes(),
        }
    });
    let found = found.unwrap_or_else(|| panic!("no {word} below {pid}"));
    let found = i32::try_from(found).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(found.expect("a pid"), Signal::KILL).unwrap();
}

/// What cannot be done is said, with the remedy, before anything is recorded.
#[test]
fn what_is_wrong_is_said() {
    let far = Far::new();
    let tare = far.tare();
    tare.run(&["--host", "nobody@box", "ps"])
        .fails(1, &["no such host nobody@box", "status 255", "ssh nobody@box true"]);
    tare.run(&["--host", "docker:other", "ps"]).fails(1, &["docker", "status 125"]);
    tare.run(&["--host=-oProxyCommand=x", "ps"]).fails(2, &["dash"]);
    tare.run(&["--host", "pod/a/b/c", "ps"]).fails(2, &["pod/name/container"]);
    tare.run(&["ps", "--host", "ann@box"]).fails(2, &["before the verb"]);
    tare.run(&["-n", "x", "ps"]).fails(2, &["--host"]);
    tare.run(&[&near("record")[..], &["--", "java", "Main"]].concat()).fails(1, &["run already"]);
    tare.run(&[&near("run")[..], &["--", "java", "Main"]].concat()).fails(1, &["run already"]);
    tare.run(&[&near("record")[..], &["1", "-o", "/nowhere/x.tare"]].concat())
        .fails(1, &["no directory"]);
    let missing = Tare::this().var("PATH", "/nowhere");
    missing.run(&near("ps")).fails(1, &["ssh", "on path"]);
    assert_eq!(far.left(), [""; 0]);
}

/// Files are here, whatever is named.
#[test]
fn files_are_here() {
    let far = Far::new();
    fs::write(far.near().join("x.folded"), "a;b 3\na;c 4\n").unwrap();
    let tare = far.tare().var("TARE_HOST", "nobody@box");
    let report = tare.run(&["report", "x.folded"]);
    assert!(report.ok().contains('b'), "{}", report.describe());
    tare.run(&["export", "x.folded", "-o", "x.html"]).ok();
    assert!(far.near().join("x.html").exists());
}

/// A root that cannot be written, /tmp without execution: the next place is taken, or none.
#[test]
fn places_that_let_nothing_run() {
    const TEST: &str = "a far side whose directories let nothing run";
    let noexec =
        "unshare --mount sh -c \"mount -t tmpfs -o noexec tmpfs /tmp && exec \\\"\\$@\\\"\" sh";
    let words = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o noexec tmpfs /tmp"];
    if !can(TEST, &words) {
        return;
    }
    // Its TMPDIR and its home are below /tmp, if this run's scratch is.
    let far = Far::through(noexec);
    let outcome = far.tare().run(&near("ps"));
    assert!(outcome.code == 0, "{}", outcome.describe());
    let tmpfs = "mount -t tmpfs -o noexec tmpfs";
    let nowhere = ["/tmp", "/dev/shm", "/var/tmp", "/root"].map(|place| format!("{tmpfs} {place}"));
    let all = noexec.replace(&format!("{tmpfs} /tmp"), &nowhere.join(" && "));
    let far = Far::through(&all);
    far.tare().run(&near("ps")).fails(1, &["can be written and lets programs run"]);
    assert_eq!(far.left(), [""; 0]);
}

/// Another machine is refused by the name of what would be needed there.
#[test]
fn another_processor() {
    let far = Far::new();
    let bin = far.near().join("fake");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("uname"), "#!/bin/sh\necho Linux aarch64\n").unwrap();
    fs::set_permissions(bin.join("uname"), fs::Permissions::from_mode(0o755)).unwrap();
    let far = Far::through(&format!("env PATH={}:/usr/bin:/bin", bin.display()));
    far.tare().run(&near("ps")).fails(1, &["linux aarch64", "aarch64-linux"]);
    assert_eq!(far.left(), [""; 0]);
}

/// With --keep-there the second time nothing is sent.
#[test]
fn a_copy_that_is_kept() {
    let far = Far::new();
    let tare = far.tare();
    tare.run(&["--host", "ann@box", "--keep-there", "ps"]).ok();
    let cache = far.scratch.join("far/.cache/tare");
    let kept: Vec<PathBuf> = fs::read_dir(&cache).unwrap().flatten().map(|e| e.path()).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    // What could not be sent any more is not needed.
    let (shell, fake) = (far.scratch.join("bin/ssh"), far.scratch.join("fake"));
    fs::create_dir_all(&fake).unwrap();
    fs::write(fake.join("head"), "#!/bin/sh\nexit 9\n").unwrap();
    fs::set_permissions(fake.join("head"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:/usr/bin:/bin", fake.display());
    let text = fs::read_to_string(&shell).unwrap().replace("PATH=/usr/bin:/bin", &path);
    fs::write(&shell, text).unwrap();
    tare.run(&near("ps")).ok();
    assert!(Path::new(&kept[0]).exists());
}
