//! C functions that some libc which a JVM runs on lacks, or has under a meaning of its own: glibc
//! 2.17 is the oldest that Rust's library supports, musl the other one.
//!
//! They are hidden, so only this library's own calls come here. The names of functions that the
//! library leaves to libc are listed in `crates/xtask/src/agent_symbols.rs`. Only present if the
//! library is linked without libc (build/link.rs).

use libc::{c_char, c_int, c_long, c_uint, c_void, size_t, ssize_t};
use std::ptr;

/// Gives a function of this file the name by which others call it. `#[no_mangle]` would export it,
/// and the program's own calls could end here.
macro_rules! hidden {
    ($($name:literal = $function:path),+ $(,)?) => { $(
        #[cfg(target_arch = "x86_64")]
        std::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "jmp {}",
            sym $function,
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "b {}",
            sym $function,
        );
    )+ };
}

hidden! {
    "stat64" = stat64, "fstat64" = fstat64, "gettid" = gettid, "memfd_create" = memfd_create,
    "getrandom" = getrandom, "realpath" = realpath, "_dl_find_object" = dl_find_object,
}

/// glibc 2.33. Before, it was a function of the part that is linked statically.
unsafe extern "C" fn stat64(path: *const c_char, to: *mut libc::stat64) -> c_int {
    // SAFETY: the caller's pointers; the kernel's layout is that of both C libraries.
    unsafe { libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, to, 0) as c_int }
}

/// glibc 2.33, as `stat64`.
unsafe extern "C" fn fstat64(fd: c_int, to: *mut libc::stat64) -> c_int {
    // SAFETY: as in `stat64`.
    unsafe { libc::syscall(libc::SYS_fstat, fd, to) as c_int }
}

/// glibc 2.30, musl 1.2.2.
extern "C" fn gettid() -> c_int {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as c_int }
}

/// glibc 2.27, musl 1.1.20.
unsafe extern "C" fn memfd_create(name: *const c_char, flags: c_uint) -> c_int {
    // SAFETY: the caller's text.
    unsafe { libc::syscall(libc::SYS_memfd_create, name, flags) as c_int }
}

/// glibc 2.25, musl 1.1.20.
unsafe extern "C" fn getrandom(to: *mut c_void, len: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: the caller's memory.
    let got: c_long = unsafe { libc::syscall(libc::SYS_getrandom, to, len, flags) };
    got as ssize_t
}

/// Without a version the dynamic linker takes glibc's first one, which allocates no answer. Rust's
/// library asks for it only where a printed backtrace looks for debug information in other files.
extern "C" fn realpath(_path: *const c_char, _to: *mut c_char) -> *mut c_char {
    // SAFETY: the calling thread's own variable.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    ptr::null_mut()
}

/// As in glibc's `dlfcn.h`, on architectures whose unwinder needs no base of data.
#[repr(C)]
struct FoundObject {
    flags: u64,
    start: usize,
    end: usize,
    link_map: *mut c_void,
    eh_frame: usize,
    reserved: [u64; 7],
}

/// Where the unwinder finds the tables of a piece of code: glibc 2.35, and not in musl.
unsafe extern "C" fn dl_find_object(pc: *mut c_void, to: *mut FoundObject) -> c_int {
    struct Search {
        pc: usize,
        found: Option<(usize, usize, usize)>,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: size_t,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker's description of a loaded object, and `dl_find_object`'s local.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: as many headers as the description says.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let range = |header: &libc::Elf64_Phdr| {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            (start, start.wrapping_add(header.p_memsz as usize))
        };
        let code = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
            .map(range)
            .find(|(start, end)| (*start..*end).contains(&search.pc));
        let tables = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME);
        if let (Some((start, end)), Some(tables)) = (code, tables) {
            search.found = Some((start, end, range(tables).0));
        }
        c_int::from(code.is_some())
    }
    let mut search = Search { pc: pc as usize, found: None };
    // SAFETY: `look` matches what is passed to it, and both end with this call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    let Some((start, end, eh_frame)) = search.found else { return -1 };
    let object =
        FoundObject { flags: 0, start, end, link_map: ptr::null_mut(), eh_frame, reserved: [0; 7] };
    // SAFETY: the caller's memory for an answer.
    unsafe { to.write(object) };
    0
}
