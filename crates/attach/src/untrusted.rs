//! What this crate reads of bytes that somebody else chose, for fuzzers: each function takes any
//! bytes and must come back. No part of the interface.

use crate::cmdline::{Settings, short, tokens, understand, vm_options};
use crate::hotspot::{Answer, glibc_version, judge_load, parse_answer};
use crate::secrets::{mask_secrets, mask_secrets_in};
use crate::{elf, perfdata, procfs};

/// A JVM's performance data.
pub fn perfdata(bytes: &[u8]) {
    let _ = perfdata::parse(bytes);
    let _ = perfdata::number(bytes, "sun.rt.safepointTime");
}

/// A command line as the kernel gives it, and the text of every file that it names.
pub fn command_line(words: &[u8], file: &str) {
    let argv = procfs::parse_strings(words);
    let read = |_: &str| Some(file.to_owned());
    for java in [true, false] {
        let launch = understand(&argv, java, &read);
        launch.main.iter().for_each(|main| _ = short(main));
        Settings::default().apply(&launch.vm_args, &read);
    }
    let _ = vm_options(&argv, &read, &|_| Some(file.to_owned()));
    for in_file in [true, false] {
        let _ = tokens(file, in_file);
    }
    assert_eq!(mask_secrets(&argv).len(), argv.len(), "as many words");
    let _ = mask_secrets_in(file);
}

/// Files of /proc, and what a JVM answers to an attach.
pub fn process_files(bytes: &[u8]) {
    let _ = procfs::parse_stat(bytes);
    let _ = procfs::parse_status(bytes);
    let _ = procfs::parse_maps(bytes, "/a");
    let _ = procfs::parse_net_unix(bytes);
    let _ = procfs::map_id(bytes, 7);
    let _ = procfs::unmap_id(bytes, 7);
    let _ = procfs::is_filtered(bytes);
    if let Ok(answer) = parse_answer(bytes) {
        let _ = judge_load(&answer);
    }
    let _ = judge_load(&Answer { code: 0, text: String::from_utf8_lossy(bytes).into_owned() });
}

/// A library.
pub fn library(bytes: &[u8]) {
    let _ = elf::check(bytes);
    let _ = elf::needs_libraries(bytes);
    let _ = glibc_version(bytes);
}
