//! `filtered ACTION COMMAND …`: runs a command under a filter of system calls (seccomp), as
//! containers and service managers do. The filter is about the calls that they often do not know;
//! all others are permitted. `kill` ends the process that makes one, `errno` answers EPERM;
//! `signals` answers EPERM to the call by which a thread of a process gets a signal with a value,
//! `copies` to the one by which a process is copied (threads are made by another), and `ranges`
//! ENOSYS to the one that closes many files, as a kernel does that does not have it.
//!
//! It serves tests, so any failure ends it with a message.

use std::os::unix::process::CommandExt;
use std::process::Command;

const CALLS: [libc::c_long; 3] =
    [libc::SYS_perf_event_open, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;
const ALLOW: u32 = 0x7fff_0000;
const SET_MODE_FILTER: libc::c_ulong = 2;

fn main() {
    let mut words = std::env::args_os().skip(1);
    let denied = ERRNO | libc::EPERM as u32;
    let (action, calls) = match words.next().as_deref().and_then(|word| word.to_str()) {
        Some("kill") => (KILL_PROCESS, &CALLS[..]),
        Some("errno") => (denied, &CALLS[..]),
        Some("signals") => (denied, &[libc::SYS_rt_tgsigqueueinfo][..]),
        Some("copies") => (denied, &[libc::SYS_clone][..]),
        Some("ranges") => (ERRNO | libc::ENOSYS as u32, &[libc::SYS_close_range][..]),
        other => panic!("{other:?} is no action"),
    };
    let program = words.next().expect("a command");
    filter(action, calls);
    let failed = Command::new(&program).args(words).exec();
    panic!("cannot start {}: {failed}", program.display());
}

/// Puts this process, and what it becomes, under the filter.
fn filter(action: u32, calls: &[libc::c_long]) {
    let step =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    // The number of the call is the first word of what the filter is given.
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for (at, call) in calls.iter().enumerate() {
        // To the last step, over the calls that follow and the one that allows.
        steps.push(step(is, (calls.len() - at) as u8, 0, *call as u32));
    }
    steps.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, ALLOW));
    steps.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, action));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program and its steps are alive during the calls, which copy them.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, SET_MODE_FILTER, &raw const program) == 0
    };
    assert!(done, "no filter: {}", std::io::Error::last_os_error());
}
