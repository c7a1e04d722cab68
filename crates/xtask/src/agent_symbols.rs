//! Whether the agent's library loads into every JVM: it names no other library, no version of a
//! symbol, and only symbols that glibc 2.17 and musl both have.
//!
//! A symbol without a version is bound to glibc's *oldest* of that name. So a name belongs into the
//! list only if its first meaning will do; `crates/agent/src/old_libc.rs` has our own of the others.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use tare_toolbox::shell::output;

/// In glibc 2.17 and in musl, and of one meaning in all of them.
#[rustfmt::skip]
const ANYWHERE: &[&str] = &[
    "__errno_location", "__tls_get_addr", "__xpg_strerror_r", "_exit", "abort", "accept4", "alarm",
    "bcmp", "bind", "calloc", "chmod", "clock_gettime", "clock_nanosleep", "clone", "close",
    "closedir", "connect", "dirfd", "dl_iterate_phdr", "dladdr", "dlopen", "dlsym", "eventfd",
    "fallocate", "fcntl", "free", "ftruncate64", "getcwd", "getenv", "geteuid", "getpid", "getppid",
    "getrlimit", "getsockopt", "getuid", "ioctl", "kill", "listen", "lseek64", "malloc", "memcmp",
    "memcpy", "memmove", "memset", "mincore", "mkdir", "mmap", "mmap64", "munmap", "open", "open64",
    "opendir", "pipe2", "poll", "posix_memalign", "prctl", "pread64", "process_vm_readv",
    "process_vm_writev", "pthread_attr_destroy", "pthread_attr_init", "pthread_attr_setguardsize",
    "pthread_attr_setstacksize", "pthread_create", "pthread_detach", "pthread_join",
    "pthread_key_create", "pthread_key_delete", "pthread_self", "pthread_setname_np",
    "pthread_setspecific", "pthread_sigmask", "pwrite64", "read", "readdir64", "readlink",
    "realloc", "recv", "rmdir", "sched_getaffinity", "sched_yield", "sendmsg", "setpriority",
    "setrlimit", "setsockopt", "shutdown", "sigaction", "sigaddset", "sigdelset", "sigemptyset",
    "sigfillset", "sigprocmask", "socket", "socketpair", "strlen", "syscall", "sysconf", "unlink",
    "waitpid", "write", "writev",
];

/// Looked for, and done without where they are missing.
#[rustfmt::skip]
const IF_THERE: &[&str] = &[
    "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize",
    "__cxa_thread_atexit_impl", "__gmon_start__", "__pthread_key_create", "pthread_mutex_lock",
    "pthread_mutex_unlock", "pthread_once", "statx",
];

pub fn check(library: &Path) -> Result<()> {
    let mut readelf = Command::new("readelf");
    readelf.args(["--wide", "--dynamic", "--dyn-syms"]).arg(library);
    let problems = problems(&output(&mut readelf).context("binutils, which the linker needs too")?);
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{} does not load into every JVM:\n  {}", library.display(), problems.join("\n  "))
}

/// What is wrong, from the words of `readelf`.
fn problems(listing: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut symbols = 0;
    for line in listing.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, "(NEEDED)", ..] => problems.push(format!("it names another library: {line}")),
            [number, _, _, _, binding, _, "UND", name, ..] if number.ends_with(':') => {
                symbols += 1;
                if name.contains('@') {
                    problems.push(format!("{name} is bound to a version"));
                } else if *binding == "WEAK" && !IF_THERE.contains(name) {
                    problems.push(format!("{name} (weak) is in no list of agent_symbols.rs"));
                } else if *binding != "WEAK" && !ANYWHERE.contains(name) {
                    problems.push(format!(
                        "{name} is not in the list of agent_symbols.rs: does glibc 2.17 have it, \
                         under its oldest version, and musl?"
                    ));
                }
            }
            _ => {}
        }
    }
    if symbols == 0 {
        problems.push("no symbols were found, so this check is blind".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::problems;

    #[test]
    fn what_binds_to_one_libc_is_named() {
        let good = "     3: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND mmap64\n\
                    \x20    4: 0000000000000000     0 FUNC    WEAK   DEFAULT  UND statx\n\
                    \x20    5: 00000000000d35d0    45 FUNC    GLOBAL DEFAULT   13 Agent_OnLoad\n";
        assert_eq!(problems(good), Vec::<String>::new());
        let bad = [
            " 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]",
            "     3: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND mmap64@GLIBC_2.2.5 (3)",
            "     3: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND posix_spawn",
            "     3: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND statx",
            "     3: 0000000000000000     0 FUNC    WEAK   DEFAULT  UND mmap64",
        ];
        for line in bad {
            assert_eq!(problems(&format!("{good}{line}\n")).len(), 1, "{line}");
        }
        assert_eq!(problems("").len(), 1);
    }
}
