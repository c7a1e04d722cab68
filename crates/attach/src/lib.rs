//! Finds JVMs on this machine, has them load the agent by HotSpot's attach protocol, and connects
//! to the agent's control socket, across containers and users. Linux only.
//!
//! Knows nothing of profiles, nor of what is said over a control socket. A program that uses this
//! crate calls [`run_if_child`] first thing in `main`: acting with another user's rights takes a
//! second start of the program.
#![forbid(unsafe_code)]

mod agent_activity;
mod as_jvm_user;
mod attach_socket;
mod child;
mod cmdline;
mod command;
mod control;
mod elf;
mod error;
mod hotspot;
mod jvm;
mod jvm_files;
mod left_behind;
mod load;
mod perfdata;
mod procfs;
mod rights;
mod safepoints;
mod secrets;
#[doc(hidden)]
pub mod untrusted;

pub use agent_activity::{has_control_thread, progress};
pub use as_jvm_user::connect_now;
pub use child::run_if_child;
pub use cmdline::vm_options;
pub use command::{dump_heap, jcmd};
pub use control::{Control, connect};
pub use error::{Candidate, Error, Kind, Step};
pub use jvm::{AgentSeen, Jvm, VmKind, find, inspect, list};
pub use load::{Library, Loaded, load_agent};
pub use rights::shares_our_namespaces;
pub use safepoints::safepoint_time;
pub use secrets::{mask_secrets, mask_secrets_in};

#[cfg(test)]
mod tests {
    /// Bytes that look like anything at all: pieces of real input among noise.
    fn noise(seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let pieces: [&[u8]; 12] = [
            b"\xca\xfe\xc0\xc0\x01\x02\0\x01",
            b"\x7fELF\x02\x01\x01",
            b"1 (x) S 1",
            b"\nUid:\t0\t",
            b"NSpid:\t",
            b" r-xp 0 0 /a/libjvm.so",
            b"return code: ",
            b"GLIBC_",
            b"release version ",
            b"\0",
            b"\n",
            b"@'\"\\",
        ];
        let mut bytes = Vec::new();
        for _ in 0..next() % 60 {
            match next() % 3 {
                0 => bytes.extend_from_slice(pieces[(next() % 12) as usize]),
                1 => bytes.push(next() as u8),
                _ => bytes.extend_from_slice((next() % 5000).to_string().as_bytes()),
            }
        }
        bytes
    }

    #[test]
    fn no_parser_panics_on_arbitrary_bytes() {
        for seed in 0..20_000 {
            let bytes = noise(seed);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            crate::untrusted::process_files(&bytes);
            crate::untrusted::perfdata(&bytes);
            crate::untrusted::library(&bytes);
            crate::untrusted::command_line(&bytes, &text);
            crate::untrusted::command_line(text.replace(' ', "\0").as_bytes(), &text);
            let _ = crate::cmdline::short(&text);
        }
    }
}
