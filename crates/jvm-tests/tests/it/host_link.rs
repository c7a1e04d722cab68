//! `tare --host` through Debian's sshd over a link that a queue of the kernel's holds to 128 kbit/s:
//! the near end and sshd are in network namespaces of their own, and the JVM is in none.

use crate::host_sshd::Sshd;
use crate::recording::Recorded;
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};
use tare_jvm_tests::{Demo, can, is_root, on_each_jdk, skip, wait_until};
use tare_recording::Recording;

/// Two network namespaces, and a cable from one to the other.
struct Link {
    ends: [Child; 2],
}

const FAR: &str = "10.0.0.1";
const NEAR: &str = "10.0.0.2";

impl Link {
    fn start(test: &str) -> Option<Link> {
        if !is_root() {
            skip(test, "we are not root");
            return None;
        }
        if !can(test, &["unshare", "--net", "sh", "-c", "ip link show && tc qdisc show"]) {
            return None;
        }
        let ends = [0; 2].map(|_| {
            let mut command = Command::new("unshare");
            command.args(["--net", "sleep", "1500"]).stdin(Stdio::null()).stdout(Stdio::null());
            command.spawn().expect("unshare")
        });
        let link = Link { ends };
        let [far, near] = link.pids();
        for id in [&far, &near] {
            // The namespace is there when the process has become the sleeping program.
            wait_until("the namespace is there", || {
                std::fs::read_to_string(format!("/proc/{id}/comm"))
                    .is_ok_and(|c| c.trim() == "sleep")
            });
        }
        let end = |id: &str, address: &str| {
            format!(
                "nsenter --target {id} --net sh -ec 'ip link set lo up; \
                 ip addr add {address}/30 dev end; ip link set end up; \
                 tc qdisc add dev end root tbf rate 128kbit burst 16kb latency 2s'"
            )
        };
        let script = format!(
            "nsenter --target {far} --net ip link add end type veth peer name end netns {near}; \
             {}; {}",
            end(&far, FAR),
            end(&near, NEAR)
        );
        can(test, &["sh", "-ec", &script]).then_some(link)
    }

    fn pids(&self) -> [String; 2] {
        [0, 1].map(|end| self.ends[end].id().to_string())
    }
}

impl Drop for Link {
    /// The cable goes with the namespaces.
    fn drop(&mut self) {
        for end in &mut self.ends {
            let _ = end.kill();
            let _ = end.wait();
        }
    }
}

on_each_jdk! {
    fn a_link_that_carries_little(jdk) {
        const TEST: &str = "a throttled link between network namespaces";
        let Some(link) = Link::start(TEST) else { return };
        let [far, near] = link.pids();
        let [far, near] = [&far, &near].map(|id| ["nsenter", "--target", id.as_str(), "--net"]);
        // What has to be sent would take minutes.
        let Some(sshd) = Sshd::at(TEST, FAR, true, [&far, &near]) else { return };
        let (tare, demo) = (sshd.tare(), Demo::start(jdk));
        let name = demo.target.name();
        let words = ["--host", "box", "record", &name, "--wall", "--interval", "1ms", "-o"];
        let outcome = tare.run(&[&words[..], &["x.tare", "-d", "4s"]].concat());
        assert!(outcome.ok().contains("shop."), "{}", outcome.describe());
        let (time, samples) = Recorded::open(&sshd.file("x.tare")).wall_time();
        // Every sample is in the sums: each stands for the time since the one before.
        assert!(samples > 0 && time > 4e9, "{time} ns in {samples} rows");
        // Ctrl-C gets through while data waits.
        let recording = tare.start(&[&words[..], &["y.tare"]].concat());
        wait_until("a second of it is here", || Recorded::seconds(&sshd.file("y.tare")) >= 1.0);
        recording.signal(Signal::INT);
        let outcome = recording.wait();
        assert!(outcome.ok().contains("y.tare"), "{}", outcome.describe());
        assert_eq!(Recording::open(&sshd.file("y.tare")).unwrap().warnings(), []);
        demo.check_answers();
        demo.finish();
    }
}
