//! The source text of a class, or its class file, for who shows figures beside lines. Texts come
//! from where the user says, from the `-sources.jar` beside the jar that the class is from, or from
//! the JDK's `src.zip`; class files from the class path.
//!
//! Names come from recordings, which may be anybody's: a name that could lead out of a directory is
//! none, links are followed and must stay inside, and all reads are bounded.

use crate::error::{Result, refuse};
use crate::origins::{Origins, in_archive};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tare_attach::Jvm;
use tare_symbols::open_regular;

/// Bytes of a source text.
const LARGEST_TEXT: u64 = 4 << 20;

pub struct Sources {
    /// Directories and archives, as they are on disk.
    given: Vec<PathBuf>,
    origins: Origins,
    /// Where JDKs may be whose classes were run.
    homes: Vec<PathBuf>,
    /// Which of them it was: `17.0.15`.
    version: String,
}

impl Sources {
    /// Of a JVM that runs.
    pub fn of_jvm(given: &[PathBuf], jvm: &Jvm) -> Result<Self> {
        let root = match jvm.same_mount_ns {
            true => PathBuf::from("/"),
            false => PathBuf::from(format!("/proc/{}/root", jvm.pid)),
        };
        let home = jvm.java_home.as_ref();
        let home = home.map(|home| root.join(home.strip_prefix("/").unwrap_or(home)));
        let version = jvm.java_version.clone().unwrap_or_default();
        let (given, homes) = (checked(given)?, home.into_iter().collect());
        Ok(Sources { given, origins: Origins::of(jvm), homes, version })
    }

    /// Of a run that is over: what its command line names is looked for here.
    pub fn of_run(given: &[PathBuf], command_line: &[String], version: &str) -> Result<Self> {
        let program = command_line.first().map(Path::new).filter(|program| program.is_absolute());
        let home = program.and_then(|program| program.parent()?.parent());
        let named = std::env::var_os("JAVA_HOME").map(PathBuf::from);
        let homes = home.map(Path::to_owned).into_iter().chain(named).collect();
        let origins = Origins::of_run(command_line);
        Ok(Sources { given: checked(given)?, origins, homes, version: version.to_owned() })
    }

    /// Where the text of a class is, and the text. The class is named with dots, the file without a
    /// directory, as class files name it.
    pub fn text(&self, class: &str, file: &str) -> Option<(String, String)> {
        let name = text_name(class, file)?;
        let given = self.given.iter().find_map(|place| in_place(place, &name));
        let found = given
            .or_else(|| self.origins.text_beside(&class_name(class), &name))
            .or_else(|| self.of_jdk(&name))?;
        let (place, bytes) = found;
        Some((place.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn of_jdk(&self, name: &str) -> Option<(PathBuf, Vec<u8>)> {
        let homes = self.homes.iter().filter(|home| self.version.is_empty() || self.fits(home));
        homes.flat_map(|home| [home.join("lib/src.zip"), home.join("src.zip")]).find_map(|zip| {
            let bytes = in_archive(&zip, name).ok()??;
            Some((zip, bytes))
        })
    }

    /// Whether a JDK is the one that ran: another one's lines are elsewhere.
    fn fits(&self, home: &Path) -> bool {
        let read = || -> io::Result<String> {
            let mut text = String::new();
            open_regular(&home.join("release"))?.take(1 << 16).read_to_string(&mut text)?;
            Ok(text)
        };
        let wanted = format!("JAVA_VERSION=\"{}\"", self.version);
        read().is_ok_and(|text| text.lines().any(|line| line == wanted))
    }

    /// The class file of a class, named with dots, from the class path.
    pub fn class_file(&self, class: &str) -> Option<Vec<u8>> {
        self.origins.class_file(&class_name(class))
    }
}

/// The places as they are on disk; one that is none is an error.
pub fn checked(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut places = Vec::new();
    for path in given {
        let Ok(place) = fs::canonicalize(path) else {
            refuse!("--source {}: there is no such directory or archive", path.display());
        };
        if !place.is_dir() && in_archive(&place, "META-INF/").is_err() {
            refuse!("--source {}: this is neither a directory nor a jar or zip", path.display());
        }
        places.push(place);
    }
    Ok(places)
}

/// As class files spell it. Hidden classes have a number behind their names.
fn class_name(class: &str) -> String {
    class.split('/').next().unwrap_or_default().replace('.', "/")
}

/// `com/acme/Orders.java`, if the names are such that they lead nowhere else.
fn text_name(class: &str, file: &str) -> Option<String> {
    let is_plain = |name: &str| {
        let letters = name.chars().all(|c| !matches!(c, '/' | '\\' | '\0'..='\x1f'));
        letters && !name.is_empty() && name != "." && name != ".." && name.len() <= 255
    };
    let package = class.split('/').next()?.rsplit_once('.').map_or("", |(package, _)| package);
    let mut parts: Vec<&str> = package.split('.').filter(|_| !package.is_empty()).collect();
    parts.push(file);
    (file.contains('.') && parts.iter().all(|part| is_plain(part))).then(|| parts.join("/"))
}

/// A file below a directory or in an archive that the user has named.
fn in_place(place: &Path, name: &str) -> Option<(PathBuf, Vec<u8>)> {
    if !place.is_dir() {
        let bytes = in_archive(place, name).ok()??;
        return Some((place.to_owned(), bytes));
    }
    let path = fs::canonicalize(place.join(name)).ok()?;
    if !path.starts_with(place) {
        return None;
    }
    let mut bytes = Vec::new();
    open_regular(&path).ok()?.take(LARGEST_TEXT).read_to_end(&mut bytes).ok()?;
    Some((path, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        let name = |class: &str, file: &str| text_name(class, file);
        assert_eq!(name("a.b.C$D", "C.java").as_deref(), Some("a/b/C.java"));
        assert_eq!(name("C", "C.kt").as_deref(), Some("C.kt"));
        assert_eq!(name("a.C$$Lambda/0x12", "C.java").as_deref(), Some("a/C.java"));
        for (class, file) in [
            ("a.C", "../../etc/passwd.x"),
            ("a.C", "/etc/hosts.txt"),
            ("a.C", ".."),
            ("a.C", ""),
            ("a.C", "x\0.java"),
            ("a...C", "C.java"),
        ] {
            assert_eq!(name(class, file), None, "{class} {file}");
        }
    }

    #[test]
    fn a_text_is_found_in_a_directory_and_links_out_of_it_are_not_followed() {
        let scratch = std::env::temp_dir().join(format!("tare-sources-{}", std::process::id()));
        let inside = scratch.join("src/a");
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("C.java"), "class C {}\n").unwrap();
        fs::write(scratch.join("Secret.java"), "class Secret {}\n").unwrap();
        std::os::unix::fs::symlink(scratch.join("Secret.java"), inside.join("S.java")).unwrap();
        let sources = Sources::of_run(&[scratch.join("src")], &[], "").unwrap();
        let (place, text) = sources.text("a.C", "C.java").unwrap();
        assert!(place.ends_with("src/a/C.java"), "{place}");
        assert_eq!(text, "class C {}\n");
        assert_eq!(sources.text("a.S", "S.java"), None);
        assert!(Sources::of_run(&[scratch.join("none")], &[], "").is_err());
        assert!(Sources::of_run(&[scratch.join("Secret.java")], &[], "").is_err());
        fs::remove_dir_all(&scratch).unwrap();
    }
}
