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
            let _ = crate::procfs::parse_stat(&bytes);
            let _ = crate::procfs::parse_status(&bytes);
            let _ = crate::procfs::parse_maps(&bytes, "/a");
            let _ = crate::procfs::parse_net_unix(&bytes);
            let _ = crate::procfs::map_id(&bytes, 7);
            let _ = crate::procfs::unmap_id(&bytes, 7);
            let _ = crate::perfdata::parse(&bytes);
            let _ = crate::elf::check(&bytes);
            let _ = crate::hotspot::parse_answer(&bytes);
            let _ = crate::hotspot::glibc_version(&bytes);
            let answer = crate::hotspot::Answer { code: 0, text: text.clone() };
            let _ = crate::hotspot::judge_load(&answer);
            let words = crate::cmdline::tokens(&text, seed % 2 == 0);
            let read = |_: &str| Some(text.clone());
            let _ = crate::cmdline::understand(&words, true, &read);
            crate::cmdline::Settings::default().apply(&words, &read);
            let _ = crate::cmdline::short(&text);
        }
    }
}
