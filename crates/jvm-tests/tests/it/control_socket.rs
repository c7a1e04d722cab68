//! The control socket meets peers that do not behave. None of them may hurt the program, disturb
//! another front end, or leave anything switched on.

use crate::common::agentpath;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use tare_jvm_tests::{
    Control, Seeded, Target, Usage, control_socket, jdk, on_each_jdk, wait_until,
};
use tare_protocol::{EnginePlan, Message, Request, Response};

fn start() -> Target {
    Target::idle(jdk()).vm("-Xcheck:jni").vm(agentpath("")).start()
}

on_each_jdk! {
    /// Only the JVM's user can reach the socket, whatever the program's umask is.
    fn modes(jdk) {
        let java = Target::idle(jdk).vm(agentpath(""));
        let target = java.through(&["sh", "-c", "umask 0; exec \"$@\"", "sh"]).start();
        let socket = control_socket(target.pid());
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&socket), 0o600);
        assert_eq!(mode(socket.parent().unwrap()), 0o700);
        target.finish();
    }
}

/// Random bytes, frames that are too long, frames that are no messages, and half a frame.
#[test]
fn garbage() {
    let mut target = start();
    let mut witness = Control::connect(target.pid());
    witness.greet();
    let mut seeded = Seeded::new(42);
    for _ in 0..100 {
        let mut control = Control::connect(target.pid());
        let length = seeded.below(3000) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| seeded.below(256) as u8).collect();
        if seeded.below(2) == 0 && bytes.len() > 4 {
            // A frame that is whole, so that its inside is looked at too.
            let inside = u32::try_from(bytes.len() - 4).unwrap().to_le_bytes();
            bytes[..4].copy_from_slice(&inside);
        }
        // The agent may close before all is written.
        let _ = control.send(&bytes);
    }
    for (bytes, answer) in [
        (vec![0xff; 64], "over the limit"),
        (vec![0, 0, 0, 0], "no verb"),
        (Message::new("dance").encode(), "unknown message"),
        (Message::new("hello").encode(), "no usable field"),
        (Message::new("status").encode(), "say hello first"),
        (Request::Start(EnginePlan::Counters).to_message().encode(), "say hello first"),
    ] {
        let mut control = Control::connect(target.pid());
        control.send(&bytes).unwrap();
        let message = control.receive().unwrap().expect("an answer before the end");
        match Response::from_message(&message).unwrap() {
            Response::Error { message, .. } => assert!(message.contains(answer), "{message}"),
            other => panic!("{other:?} to {bytes:?}"),
        }
    }
    wait_until("the others are gone", || witness.status().front_ends == 1);
    let status = witness.status();
    assert_eq!((status.panics, status.engines.len()), (0, 0), "{status:?}");
    target.check_works();
    target.finish();
}

/// A front end of another build is told so, and can do nothing but send the agent away.
#[test]
fn another_version() {
    let mut target = start();
    let mut control = Control::connect(target.pid());
    for hello in [
        Request::Hello { protocol: control.greeting.protocol, build: "0".repeat(16) },
        Request::Hello { protocol: 999, build: control.greeting.build.clone() },
    ] {
        let Response::Error { message, .. } = control.ask(&hello) else { panic!("let in") };
        assert!(message.contains(&control.greeting.build), "{message}");
        let Response::Error { message, .. } = control.ask(&Request::Status) else {
            panic!("answered")
        };
        assert!(message.contains("say hello first"), "{message}");
    }
    assert_eq!(control.ask(&Request::Detach), Response::Ok);
    crate::common::assert_no_trace(target.pid());
    target.check_works();
    target.finish();
}

/// More connections than the agent takes: the last ones are told so, the first ones live on, and
/// the program's descriptors are not eaten up.
#[test]
fn too_many() {
    let mut target = start();
    let mut witness = Control::connect(target.pid());
    witness.greet();
    let before = Usage::of(target.pid());
    let socket = control_socket(target.pid());
    let crowd: Vec<_> = (0..100).map(|_| Control::open(&socket)).collect();
    let let_in = crowd.iter().filter(|c| c.is_ok()).count();
    assert!((1..50).contains(&let_in), "{let_in} of 100 were let in");
    let status = witness.status();
    assert_eq!(status.refused as usize, 100 - let_in, "{status:?}");
    drop(crowd);
    wait_until("the crowd is gone", || witness.status().front_ends == 1);
    wait_until("their descriptors are gone", || {
        Usage::of(target.pid()).descriptors <= before.descriptors
    });
    Control::connect(target.pid()).greet();
    target.check_works();
    target.finish();
}

/// A front end that asks and never reads must not fill the program's memory or stop the others.
#[test]
fn a_peer_that_never_reads() {
    let mut target = start();
    let mut witness = Control::connect(target.pid());
    witness.greet();
    let mut deaf = Control::connect(target.pid());
    deaf.greet();
    let asking = std::thread::spawn(move || {
        let request = Request::Status.to_message().encode();
        // Until the agent has had enough of us.
        let mut sent = 0_u32;
        while deaf.send(&request).is_ok() && sent < 2_000_000 {
            sent += 1;
        }
        sent
    });
    let mut answered = 0;
    while !asking.is_finished() {
        witness.status();
        answered += 1;
    }
    let sent = asking.join().unwrap();
    assert!(sent < 2_000_000, "the agent queued {sent} answers for a peer that never reads");
    assert!(answered > 0);
    wait_until("the deaf one is cut off", || witness.status().front_ends == 1);
    target.check_works();
    target.finish();
}

/// Connections that come and go without a word, from many threads, while one detaches.
#[test]
fn a_detach_in_a_crowd() {
    let mut target = start();
    let socket = control_socket(target.pid());
    let comers: Vec<_> = (0..4)
        .map(|_| {
            let socket = socket.clone();
            std::thread::spawn(move || {
                let mut connected = 0;
                while UnixStream::connect(&socket).is_ok() {
                    connected += 1;
                }
                connected
            })
        })
        .collect();
    // With its connections all taken the agent would refuse the one who wants it to leave.
    let answer = loop {
        if let Ok(mut control) = Control::open(&socket) {
            break control.ask(&Request::Detach);
        }
    };
    assert_eq!(answer, Response::Ok);
    let connected: u32 = comers.into_iter().map(|comer| comer.join().unwrap()).sum();
    eprintln!("{connected} connections came and went");
    crate::common::assert_no_trace(target.pid());
    target.check_works();
    target.finish();
}
