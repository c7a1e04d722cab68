//! The jar of an agent written in Java (`--agent-jar`): looked at before any program is started or
//! JVM touched, since the JVM could only say at its end what was wrong with it.

use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use zip::ZipArchive;

/// The entry of a jar's manifest that names the agent.
const ENTRY: &str = "Tare-Agent";

/// Longer manifests are not read.
const LARGEST: u64 = 1 << 20;

/// The jar as a path from the root, for the JVM may have another current directory; or what is
/// wrong with it.
pub fn checked(jar: &Path) -> Result<String> {
    let doing = || format!("--agent-jar {}", jar.display());
    let path = jar.canonicalize().with_context(doing)?;
    if !path.is_file() {
        bail!("{}: not a file", doing());
    }
    let file = File::open(&path).with_context(doing)?;
    let mut archive = ZipArchive::new(file).with_context(|| format!("{}: not a jar", doing()))?;
    let mut manifest = String::new();
    if let Ok(entry) = archive.by_name("META-INF/MANIFEST.MF") {
        entry.take(LARGEST).read_to_string(&mut manifest).with_context(doing)?;
    }
    let Some(class) = value(&manifest, ENTRY) else {
        bail!(
            "{}: its manifest has no `{ENTRY}: com.acme.MyAgent` that says which class the agent is \
             (docs/guide/java-agents.md)",
            doing()
        );
    };
    let entry = format!("{}.class", class.replace('.', "/"));
    // Other jars may have it that the manifest names.
    if archive.index_for_name(&entry).is_none() && value(&manifest, "Class-Path").is_none() {
        bail!("{}: it has no class {class}, which its manifest names as the agent", doing());
    }
    let path = path.into_os_string().into_string();
    path.map_err(|path| anyhow!("--agent-jar {}: not a readable name", path.display()))
}

/// The value of an entry of the main section; long ones go on after a space.
fn value(manifest: &str, key: &str) -> Option<String> {
    let mut found: Option<String> = None;
    for line in manifest.lines() {
        if line.is_empty() {
            break;
        }
        match (&mut found, line.strip_prefix(' ')) {
            (Some(value), Some(more)) => value.push_str(more),
            (Some(_), None) => break,
            (None, _) => {
                let entry = line.split_once(':').filter(|(k, _)| k.eq_ignore_ascii_case(key));
                found = entry.map(|(_, value)| value.trim_start().to_owned());
            }
        }
    }
    found.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_go_on_after_a_space() {
        let manifest = "Manifest-Version: 1.0\r\nTare-Agent: com.acme.\r\n MyAgent\r\nX: y\r\n\r\n\
                        Name: z\r\nLater: no\r\n";
        assert_eq!(value(manifest, "tare-agent").as_deref(), Some("com.acme.MyAgent"));
        assert_eq!(value(manifest, "X").as_deref(), Some("y"));
        assert_eq!(value(manifest, "Later"), None);
        assert_eq!(value("", ENTRY), None);
    }
}
