//! Another user cannot use the control socket: the directory keeps him out, and if somebody opens
//! the directory, the agent itself does.

use crate::common::agentpath;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tare_jvm_tests::{
    Control, Scratch, Target, can, control_socket, is_root, jdk, shared_classes, shared_jdk, skip,
};

const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn another_user_is_refused() {
    const TEST: &str = "another user at the control socket";
    if !is_root() {
        return skip(TEST, "only root can act as another user");
    }
    let Some(theirs) = shared_jdk(TEST, &NOBODY) else { return };
    let scratch = Scratch::new();
    let classes = shared_classes(&scratch);
    let connect = |socket: &Path| {
        let peer = Target::idle(theirs).class_path(&classes).main("Connect").arg(socket);
        peer.directory(scratch.path()).through(&NOBODY).spawn().wait().1
    };
    let mut target = Target::idle(jdk()).vm(agentpath("")).start();
    let socket = control_socket(target.pid());
    let mut witness = Control::connect(target.pid());
    witness.greet();

    let said = connect(&socket);
    assert!(said.contains("refused: "), "{said}");
    assert_eq!(witness.status().refused, 0, "the directory should have kept him out");

    set_permissions(socket.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
    let said = connect(&socket);
    assert!(said.contains("connected: error"), "{said}");
    assert!(said.contains("only the JVM's own user and root"), "{said}");
    assert_eq!(witness.status().refused, 1);

    target.check_works();
    target.finish();
}

/// Root of a container that shares our /tmp is the same user, as numbers go.
#[test]
fn another_container_is_refused() {
    const TEST: &str = "another container at the control socket";
    let words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    if !can(TEST, &[&words[..], &["true"]].concat()) {
        return;
    }
    let scratch = Scratch::new();
    let classes = shared_classes(&scratch);
    let mut target = Target::idle(jdk()).vm(agentpath("")).start();
    let socket = control_socket(target.pid());
    let mut witness = Control::connect(target.pid());
    witness.greet();
    let connect = |through: &[&str]| {
        let peer = Target::idle(jdk()).class_path(&classes).main("Connect").arg(&socket);
        peer.directory(scratch.path()).through(through).spawn().wait().1
    };
    let said = connect(&words);
    assert!(said.contains("connected: error"), "{said}");
    assert!(said.contains("from no other container"), "{said}");
    assert_eq!(witness.status().refused, 1);
    // A file system of its own makes nobody a stranger: services have them.
    let said = connect(&words[..2]);
    assert!(said.contains("connected: ") && !said.contains("error"), "{said}");
    target.check_works();
    target.finish();
}
