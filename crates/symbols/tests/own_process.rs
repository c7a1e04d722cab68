//! Names of addresses in this process, whose truth is known.

use tare_symbols::Symbols;

#[inline(never)]
fn here() -> usize {
    here as *const () as usize
}

#[test]
fn functions_of_this_program_and_of_the_c_library_have_names() {
    let mut symbols = Symbols::of(std::process::id());
    let own = symbols.native(here() as u64);
    assert_eq!(&*own.name, "own_process::here");
    assert!(own.module.starts_with("own_process"), "{own:?}");
    let getpid = symbols.native(libc::getpid as *const () as u64);
    assert!(["getpid", "__getpid"].contains(&&*getpid.name), "{getpid:?}");
    assert!(getpid.module.starts_with("libc"), "{getpid:?}");
    assert_eq!(&*symbols.native(64).name, "[unmapped]");
    assert!(!symbols.covers(64) && symbols.covers(here() as u64));
}

#[test]
fn a_process_that_is_gone_has_no_names() {
    let mut symbols = Symbols::of(u32::MAX);
    assert_eq!(&*symbols.native(here() as u64).name, "[unmapped]");
}
