//! The names that people wrote, from those that compilers made.

use cpp_demangle::DemangleOptions;

/// Longer names are not taken apart: some generated ones would take seconds.
const LONGEST: usize = 4096;

/// A function's name as written: C++ and Rust demangled, without parameters; others as they are.
/// What compilers append to parts and copies of a function (`.part.0`, `.cold`) is left out.
#[must_use]
pub fn demangle(name: &str) -> String {
    if name.len() > LONGEST {
        return name.to_owned();
    }
    // Rust's old scheme looks like C++ and ends with a hash; its new one begins with `_R`.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let stem = stem(name);
    if !stem.starts_with("_Z") {
        return stem.to_owned();
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(stem)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| stem.to_owned())
}

/// The name without what stands behind the first dot that is not at its beginning, and without the
/// version that a library gives it behind an at sign.
pub(crate) fn stem(name: &str) -> &str {
    match name.get(1..).and_then(|rest| rest.find(['.', '@'])) {
        Some(at) => &name[..=at],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_written() {
        for (mangled, expected) in [
            ("_ZN8Universe15allocate_arenasEv", "Universe::allocate_arenas"),
            (
                "_ZN13InstanceKlass15initialize_implEP10JavaThread.part.0",
                "InstanceKlass::initialize_impl",
            ),
            ("_ZN2os13javaTimeNanosEv", "os::javaTimeNanos"),
            ("_ZZN8G1Policy4initEvE5table", "G1Policy::init()::table"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("memcpy", "memcpy"),
            ("__memmove_avx_unaligned_erms", "__memmove_avx_unaligned_erms"),
            ("read_line.constprop.0", "read_line"),
            ("JVM_ArrayCopy", "JVM_ArrayCopy"),
            ("pthread_cond_wait@@GLIBC_2.3.2", "pthread_cond_wait"),
            (".hidden", ".hidden"),
            ("", ""),
            ("_Znonsense", "_Znonsense"),
        ] {
            assert_eq!(demangle(mangled), expected, "{mangled}");
        }
    }
}
