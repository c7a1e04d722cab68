//! Finds Java installations and reads from their `release` file what they are.
//!
//! Nothing is started and nothing installed here; see `setup` and `runtimes` for that.

use crate::shell::which;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A Java installation that could run or compile our programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jdk {
    pub home: PathBuf,
    /// 17 for 17.0.15.
    pub major: u32,
    pub version: String,
    /// Whether it has a compiler, or is a runtime only.
    pub javac: bool,
}

impl Jdk {
    /// Reads an installation; `None` if it is not one that we can use. Only HotSpot on glibc is:
    /// OpenJ9 has no such tool interface, and our agent library is linked against glibc.
    pub fn read(home: &Path) -> Option<Self> {
        let release = fs::read_to_string(home.join("release")).ok()?;
        let version = property(&release, "JAVA_VERSION")?;
        let usable = home.join("bin/java").is_file()
            && home.join("lib/server/libjvm.so").is_file()
            && property(&release, "LIBC").is_none_or(|libc| libc != "musl")
            && property(&release, "JVM_VARIANT").is_none_or(|v| !v.eq_ignore_ascii_case("openj9"));
        usable.then(|| Jdk {
            home: home.to_owned(),
            major: major(&version),
            javac: home.join("bin/javac").is_file(),
            version,
        })
    }

    pub fn describe(&self) -> String {
        let kind = if self.javac { "JDK" } else { "runtime" };
        format!("{kind} {} in {}", self.version, self.home.display())
    }
}

/// `KEY="value"` in a `release` file.
fn property(release: &str, key: &str) -> Option<String> {
    let value = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// 8 for `1.8.0_402`, 17 for `17.0.15`, 25 for `25-ea`; 0 for what is no version.
fn major(version: &str) -> u32 {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().unwrap_or_default());
    match (numbers.next(), numbers.next()) {
        (Some(1), Some(second)) => second,
        (Some(first), _) => first,
        _ => 0,
    }
}

/// Every usable installation on this machine, each once, the likeliest first.
pub fn find(cache: &Path) -> Vec<Jdk> {
    let mut seen = BTreeSet::new();
    candidates(cache)
        .iter()
        .filter_map(|home| fs::canonicalize(home).ok())
        .filter(|home| seen.insert(home.clone()))
        .filter_map(|home| Jdk::read(&home))
        .collect()
}

fn candidates(cache: &Path) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = Vec::new();
    homes.extend(env::var_os("JAVA_HOME").map(PathBuf::from));
    for program in ["javac", "java"] {
        let real = which(program).and_then(|file| fs::canonicalize(file).ok());
        homes.extend(real.and_then(|file| Some(file.parent()?.parent()?.to_owned())));
    }
    // Build machines name further JDKs as JAVA_HOME_21_X64 and the like.
    let mut further: Vec<_> =
        env::vars_os().filter(|(k, _)| k.to_string_lossy().starts_with("JAVA_HOME_")).collect();
    further.sort();
    homes.extend(further.into_iter().map(|(_, value)| PathBuf::from(value)));

    let mut parents: Vec<PathBuf> =
        ["/usr/lib/jvm", "/usr/java", "/opt/java", "/opt"].map(PathBuf::from).into();
    if let Some(home) = env::var_os("HOME").map(PathBuf::from) {
        for part in [
            ".sdkman/candidates/java",
            ".jdks",
            ".asdf/installs/java",
            ".local/share/mise/installs/java",
        ] {
            parents.push(home.join(part));
        }
    }
    parents.push(cache.to_owned());
    for parent in parents {
        let mut children: Vec<_> = fs::read_dir(parent)
            .map(|entries| entries.filter_map(Result::ok).map(|e| e.path()).collect())
            .unwrap_or_default();
        children.sort();
        homes.extend(children);
    }
    homes
}

/// The compiler to use: the newest, because it can compile for every older release too.
pub fn best_javac(jdks: &[Jdk], at_least: u32) -> Option<&Jdk> {
    jdks.iter().filter(|jdk| jdk.javac && jdk.major >= at_least).max_by_key(|jdk| jdk.major)
}

/// What runs programs of version `major`; a whole JDK is preferred to a bare runtime, because it
/// has the headers for embedding a JVM.
pub fn runtime(jdks: &[Jdk], major: u32) -> Option<&Jdk> {
    let fitting = || jdks.iter().filter(|jdk| jdk.major == major);
    fitting().find(|jdk| jdk.javac).or_else(|| fitting().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jdk(major: u32, javac: bool, home: &str) -> Jdk {
        Jdk { home: home.into(), major, version: format!("{major}.0.1"), javac }
    }

    #[test]
    fn versions_of_all_ages_have_a_major_number() {
        for (text, expected) in
            [("1.8.0_402", 8), ("17.0.15", 17), ("25-ea", 25), ("21", 21), ("", 0), ("x", 0)]
        {
            assert_eq!(major(text), expected, "{text}");
        }
    }

    #[test]
    fn a_release_file_is_read_by_whole_keys() {
        let release = "JAVA_VERSION_DATE=\"2025-04-15\"\nJAVA_VERSION=\"17.0.15\"\n";
        assert_eq!(property(release, "JAVA_VERSION").as_deref(), Some("17.0.15"));
        assert_eq!(property(release, "LIBC"), None);
    }

    #[test]
    fn the_newest_compiler_and_a_whole_jdk_win() {
        let jdks = [
            jdk(21, false, "/r21"),
            jdk(17, true, "/j17"),
            jdk(21, true, "/j21"),
            jdk(11, true, "/j11"),
        ];
        assert_eq!(best_javac(&jdks, 17), Some(&jdks[2]));
        assert_eq!(best_javac(&jdks, 22), None);
        assert_eq!(runtime(&jdks, 21), Some(&jdks[2]));
        assert_eq!(runtime(&jdks[..1], 21), Some(&jdks[0]));
        assert_eq!(runtime(&jdks, 25), None);
    }

    #[test]
    fn what_cannot_carry_our_agent_is_no_jdk() {
        let home = env::temp_dir().join(format!("tare-xtask-jdk-{}", std::process::id()));
        let read = |release: &str| {
            for file in ["bin/java", "lib/server/libjvm.so"] {
                let file = home.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "").unwrap();
            }
            fs::write(home.join("release"), release).unwrap();
            Jdk::read(&home)
        };
        assert_eq!(
            read("JAVA_VERSION=\"21.0.8\"\n").map(|j| (j.major, j.javac)),
            Some((21, false))
        );
        assert_eq!(read("JAVA_VERSION=\"21.0.8\"\nLIBC=\"musl\"\n"), None);
        assert_eq!(read("JAVA_VERSION=\"21.0.8\"\nJVM_VARIANT=\"Openj9\"\n"), None);
        assert_eq!(read("IMPLEMENTOR=\"nobody\"\n"), None);
        fs::remove_dir_all(&home).unwrap();
        assert_eq!(Jdk::read(&home), None);
    }
}
