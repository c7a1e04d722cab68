//! Packs one program as a tarball, a Debian package and an image, with nothing in them that depends
//! on the day, the user or the machine.

use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use tare_toolbox::shell::{self, output};

pub const SUMS: &str = "SHA256SUMS";

/// The time of all files: 2026-01-01, so that nothing looks as if it came from 1970.
const TIME: &str = "@1767225600";

pub struct Release<'a> {
    pub version: &'a str,
    pub binary: &'a Path,
    /// With folders `man` and `completions`.
    pub pages: &'a Path,
}

impl Release<'_> {
    /// `root` has the licences; the files go into `to`.
    pub fn pack(&self, root: &Path, to: &Path) -> Result<()> {
        let work = to.with_extension("work");
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fs::create_dir_all(&work)?;
        self.tarball(root, &work, to)?;
        self.debian(root, &work, to)?;
        self.image(&work, to)?;
        let mut names: Vec<String> = fs::read_dir(to)?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let mut sums = String::new();
        for name in names {
            sums += &format!("{}  {name}\n", sha256(&to.join(&name))?);
        }
        fs::write(to.join(SUMS), sums)?;
        fs::remove_dir_all(&work)?;
        Ok(())
    }

    fn name(&self) -> String {
        format!("tare-{}-x86_64-linux", self.version)
    }

    fn tarball(&self, root: &Path, work: &Path, to: &Path) -> Result<()> {
        let name = self.name();
        let folder = work.join("tarball");
        let inside = folder.join(&name);
        install(self.binary, &inside.join("tare"), 0o755)?;
        for licence in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"] {
            install(&root.join(licence), &inside.join(licence), 0o644)?;
        }
        install_all(&self.pages.join("man"), &inside.join("man/man1"))?;
        install_all(&self.pages.join("completions"), &inside.join("completions"))?;
        tar(&folder, &to.join(format!("{name}.tar.gz")), true)
    }

    fn debian(&self, root: &Path, work: &Path, to: &Path) -> Result<()> {
        let (data, control) = (work.join("data"), work.join("control"));
        install(self.binary, &data.join("usr/bin/tare"), 0o755)?;
        install_all(&self.pages.join("man"), &data.join("usr/share/man/man1"))?;
        let doc = data.join("usr/share/doc/tare");
        install(&root.join("LICENSE-MIT"), &doc.join("copyright"), 0o644)?;
        for (file, place) in [
            ("tare.bash", "bash-completion/completions/tare"),
            ("_tare", "zsh/vendor-completions/_tare"),
            ("tare.fish", "fish/vendor_completions.d/tare.fish"),
        ] {
            let file = self.pages.join("completions").join(file);
            install(&file, &data.join("usr/share").join(place), 0o644)?;
        }
        fs::create_dir_all(&control)?;
        fs::write(
            control.join("control"),
            format!(
                "Package: tare\nVersion: {}\nArchitecture: amd64\nSection: devel\nPriority: optional\n\
                 Maintainer: the authors of Tare <tare@localhost>\nDescription: profiler for the JVM\n \
                 Samples, exact counts and times of every call, allocation, locks and heaps\n of \
                 running Java programs. One file; the agent is inside.\n",
                self.version
            ),
        )?;
        let parts = [("control.tar.gz", control), ("data.tar.gz", data)];
        // The format of `ar`, whose entries begin at even places.
        let mut archive = b"!<arch>\n".to_vec();
        member(&mut archive, "debian-binary", b"2.0\n");
        for (name, folder) in parts {
            let file = work.join(name);
            tar(&folder, &file, true)?;
            member(&mut archive, name, &fs::read(&file)?);
        }
        fs::write(to.join(format!("tare_{}_amd64.deb", self.version)), archive)?;
        Ok(())
    }

    /// An image with `/tare` and nothing else, in the layout of OCI.
    fn image(&self, work: &Path, to: &Path) -> Result<()> {
        let (files, layout) = (work.join("files"), work.join("image"));
        install(self.binary, &files.join("tare"), 0o755)?;
        let layer = work.join("layer.tar");
        tar(&files, &layer, false)?;
        let blobs = layout.join("blobs/sha256");
        fs::create_dir_all(&blobs)?;
        let blob = |kind: &str, file: &Path| -> Result<serde_json::Value> {
            let digest = sha256(file)?;
            fs::copy(file, blobs.join(&digest))?;
            Ok(json!({
                "mediaType": format!("application/vnd.oci.image.{kind}"),
                "digest": format!("sha256:{digest}"),
                "size": fs::metadata(file)?.len(),
            }))
        };
        let write = |name: &str, value: &serde_json::Value| {
            let path = work.join(name);
            fs::write(&path, value.to_string()).map(|()| path)
        };
        let layer = blob("layer.v1.tar", &layer)?;
        let config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": { "Entrypoint": ["/tare"] },
            "rootfs": { "type": "layers", "diff_ids": [layer["digest"]] },
        });
        let config = blob("config.v1+json", &write("config.json", &config)?)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": [layer],
        });
        let mut manifest = blob("manifest.v1+json", &write("manifest.json", &manifest)?)?;
        manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": self.version });
        let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
        fs::write(layout.join("index.json"), index.to_string())?;
        fs::write(layout.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
        tar(&layout, &to.join(format!("{}-image.tar", self.name())), false)
    }
}

fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(to.parent().context("a path below the root")?)?;
    fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn install_all(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        install(&entry.path(), &to.join(entry.file_name()), 0o644)?;
    }
    Ok(())
}

/// What is in a folder, by GNU tar. The mode of folders depends on nobody's umask.
fn tar(folder: &Path, to: &Path, packed: bool) -> Result<()> {
    let mut names: Vec<_> =
        fs::read_dir(folder)?.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let plain = to.with_extension("unpacked");
    let mut command = Command::new("tar");
    command
        .args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0"])
        .args(["--numeric-owner", "--mode=u=rwX,go=rX", &format!("--mtime={TIME}"), "--file"])
        .arg(&plain)
        .arg("--directory")
        .arg(folder)
        .args(names);
    shell::run(&mut command)?;
    if packed {
        // Without a name and a time in its head.
        let mut gzip = Command::new("gzip");
        gzip.args(["--no-name", "-9", "--stdout"]).arg(&plain).stdout(fs::File::create(to)?);
        shell::run(&mut gzip)?;
        fs::remove_file(&plain)?;
    } else {
        fs::rename(&plain, to)?;
    }
    Ok(())
}

fn member(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let size = bytes.len();
    let head = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644);
    archive.extend(head.bytes());
    archive.extend(bytes);
    if size % 2 == 1 {
        archive.push(b'\n');
    }
}

fn sha256(file: &Path) -> Result<String> {
    let line = output(Command::new("sha256sum").arg("--binary").arg(file))?;
    Ok(line.split_whitespace().next().context("sha256sum says nothing")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Packs a small program whose files were made in another order, by another umask.
    fn packed(name: &str, reversed: bool) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let work = std::env::temp_dir().join(format!("tare-dist-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&work);
        let (pages, to) = (work.join("pages"), work.join("packed"));
        fs::create_dir_all(&to).unwrap();
        let mut files = [
            "completions/_tare",
            "completions/tare.bash",
            "completions/tare.fish",
            "man/tare-record.1",
            "man/tare.1",
        ];
        if reversed {
            files.reverse();
        }
        for file in files {
            install(Path::new("/proc/self/cmdline"), &pages.join(file), 0o600).unwrap();
            fs::write(pages.join(file), file).unwrap();
        }
        fs::write(work.join("tare"), "#!/bin/sh\necho packed\n").unwrap();
        let release = Release { version: "9.9.9", binary: &work.join("tare"), pages: &pages };
        release.pack(&root, &to).unwrap();
        work
    }

    #[test]
    fn files_are_the_same_wherever_they_are_packed() {
        let (one, other) = (packed("one", false), packed("other", true));
        let sums = |work: &Path| fs::read_to_string(work.join("packed").join(SUMS)).unwrap();
        let listed = sums(&one);
        assert_eq!(listed, sums(&other));
        assert_eq!(listed.lines().count(), 3, "{listed}");

        let packed = one.join("packed");
        let run = |program: &str, words: &[&str]| {
            output(Command::new(program).current_dir(&packed).args(words)).unwrap()
        };
        run("sha256sum", &["--check", "--strict", SUMS]);
        let tarball = run("tar", &["-tvzf", "tare-9.9.9-x86_64-linux.tar.gz"]);
        let tool = tarball.lines().find(|line| line.ends_with("-linux/tare")).unwrap();
        assert!(tool.starts_with("-rwxr-xr-x 0/0"), "{tarball}");
        assert!(tarball.contains("-linux/man/man1/tare-record.1"), "{tarball}");
        let deb = run("ar", &["t", "tare_9.9.9_amd64.deb"]);
        assert_eq!(deb, "debian-binary\ncontrol.tar.gz\ndata.tar.gz\n");
        let index = run("tar", &["-xOf", "tare-9.9.9-x86_64-linux-image.tar", "index.json"]);
        let index: serde_json::Value = serde_json::from_str(&index).unwrap();
        let digest = index["manifests"][0]["digest"].as_str().unwrap().replace(':', "/");
        let blob = format!("blobs/{digest}");
        run("tar", &["-xf", "tare-9.9.9-x86_64-linux-image.tar", &blob]);
        assert!(digest.ends_with(&sha256(&packed.join(blob)).unwrap()));
        for work in [one, other] {
            fs::remove_dir_all(work).unwrap();
        }
    }
}
