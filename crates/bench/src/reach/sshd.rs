//! Debian's sshd as an ordinary process on loopback, with keys in a directory of ours, and an ssh
//! that comes to it by a link.

use super::forwarder::{Line, begin};
use anyhow::{Context, Result, bail};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Sshd {
    daemon: Child,
    folder: PathBuf,
    port: u16,
}

impl Sshd {
    /// `there` comes first on the PATH of who logs in.
    pub fn start(folder: &Path, there: &Path) -> Result<Sshd> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let path = |name: &str| folder.join(name).display().to_string();
        for key in ["host_key", "key"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f", &path(key)];
            let made = Command::new("ssh-keygen").args(words).status();
            if !made.context("ssh-keygen (openssh-client)")?.success() {
                bail!("ssh-keygen makes no key");
            }
        }
        fs::copy(path("key.pub"), path("authorized"))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nSetEnv PATH={}:/usr/bin:/bin \
             XDG_CACHE_HOME={}\n",
            path("host_key"),
            path("authorized"),
            there.display(),
            path("cache"),
        );
        fs::write(path("server"), server)?;
        let _ = fs::create_dir_all("/run/sshd");
        let mut command = Command::new("/usr/sbin/sshd");
        command.args(["-D", "-f", &path("server"), "-E", &path("log")]).stdin(Stdio::null());
        let daemon = command.spawn().context("/usr/sbin/sshd (openssh-server)")?;
        let sshd = Sshd { daemon, folder: folder.to_owned(), port };
        let limit = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > limit {
                bail!("sshd does not listen; {}", path("log"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(sshd)
    }

    /// A directory with an `ssh` that knows `box` at the other end of such a link.
    pub fn by(&self, name: &str, line: Line) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        let port = begin(self.port, line)?;
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let config = folder.join("config");
        let client = format!(
            "Host box\nHostName 127.0.0.1\nPort {port}\nUser {user}\nIdentityFile {}\n\
             IdentitiesOnly yes\nUserKnownHostsFile {}\nStrictHostKeyChecking accept-new\n\
             LogLevel ERROR\n",
            self.folder.join("key").display(),
            folder.join("known").display(),
        );
        fs::write(&config, client)?;
        let ssh = folder.join("ssh");
        fs::write(&ssh, format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", config.display()))?;
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755))?;
        Ok(folder)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
