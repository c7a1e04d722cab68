//! Makes sure that what the demo and the tests need is on this machine.
//!
//! A compiler is a must; as root we install it from the system's packages, otherwise we say which
//! command does. Further runtimes are wanted by the tests only: one that cannot be had is named
//! in the summary, and the tests run on the others.

use crate::jdks::{self, Jdk};
use crate::runtimes::{cache_dir, fetch};
use crate::shell::{self, is_root, output, succeeds, which};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The Java versions that the tests cover: the long-term ones that people run.
pub const WANTED: [u32; 3] = [17, 21, 25];

/// The oldest Java for which the demo and the test programs are written.
pub const RELEASE: u32 = 17;

/// What the tests can use.
pub struct Ready {
    pub javac: Jdk,
    /// One for each version of [`WANTED`], or why there is none.
    pub runtimes: Vec<(u32, Result<Jdk, String>)>,
    /// Why there is no browser to test pages in, if there is none.
    pub browser: Result<(), String>,
}

impl Ready {
    /// The versions that could not be had, each with the reason.
    pub fn missing(&self) -> Vec<String> {
        let reason = |(major, jdk): &(u32, Result<Jdk, String>)| {
            let reason = jdk.as_ref().err()?.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(format!("JDK {major}: {reason}"))
        };
        let browser = self.browser.as_ref().err().map(|reason| format!("a browser: {reason}"));
        self.runtimes.iter().filter_map(reason).chain(browser).collect()
    }
}

/// `cargo xtask setup`: as for the tests, but what the tests could do without is an error too.
pub fn run() -> Result<()> {
    let missing = prepare()?.missing();
    if !missing.is_empty() {
        bail!("the tests would not cover {}", missing.join("; "));
    }
    Ok(())
}

/// Everything that the tests want.
pub fn prepare() -> Result<Ready> {
    let javac = compiler()?;
    let cache = cache_dir()?;
    let found = jdks::find(&cache);
    let runtimes = WANTED
        .into_iter()
        .map(|major| {
            let jdk = match jdks::runtime(&found, major) {
                Some(jdk) => Ok(jdk.clone()),
                None => fetch(&cache, major).map_err(|error| format!("{error:#}")),
            };
            (major, jdk)
        })
        .collect();
    let ready = Ready { javac, runtimes, browser: browser() };
    println!("compiler: {}", ready.javac.describe());
    for (major, jdk) in &ready.runtimes {
        match jdk {
            Ok(jdk) => println!("Java {major}:  {}", jdk.describe()),
            Err(_) => println!("Java {major}:  MISSING"),
        }
    }
    println!("browser:  {}", if ready.browser.is_ok() { "Chromium" } else { "MISSING" });
    Ok(ready)
}

/// Makes sure that pages can be tested in a browser.
fn browser() -> Result<(), String> {
    if tare_browser::program().is_some() {
        return Ok(());
    }
    let packages = ["chromium-headless-shell", "fonts-dejavu-core"];
    install_packages(&packages, "Chromium, to test pages in")
        .map_err(|error| format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" "))?;
    match tare_browser::program() {
        Some(_) => Ok(()),
        None => Err("it was installed, but is not found".to_owned()),
    }
}

/// A JDK with a compiler that is new enough, installed if need be.
pub fn compiler() -> Result<Jdk> {
    if which("cc").is_none() {
        println!("note: there is no C compiler (cc), which cargo needs for linking;");
        println!("      on Debian: apt-get install gcc libc6-dev");
    }
    let cache = cache_dir()?;
    let newest = || jdks::best_javac(&jdks::find(&cache), RELEASE).cloned();
    if let Some(jdk) = newest() {
        return Ok(jdk);
    }
    println!("no JDK with a compiler for Java {RELEASE} or later was found");
    let package = if is_root() && which("apt-get").is_some() {
        apt_update()?;
        jdk_package()
    } else {
        "openjdk-17-jdk-headless".to_owned()
    };
    install_packages(&[&package], "a JDK with a compiler, Java 17 or later")?;
    newest().context("a JDK was installed but not found; set JAVA_HOME to it")
}

/// The package to install: Java 17, on which most of the tests' targets run, or what there is.
fn jdk_package() -> String {
    let names = [17, 21, 25].map(|major| format!("openjdk-{major}-jdk-headless"));
    let known = |name: &String| {
        output(Command::new("apt-cache").args(["policy", name]))
            .is_ok_and(|text| text.contains("Candidate:") && !text.contains("Candidate: (none)"))
    };
    let [oldest, newer @ ..] = names;
    [oldest]
        .into_iter()
        .chain(newer.into_iter().rev())
        .find(known)
        .unwrap_or_else(|| "default-jdk-headless".to_owned())
}

fn apt_update() -> Result<()> {
    shell::run(Command::new("apt-get").arg("update"))
}

/// Installs packages when we may, otherwise fails with the command that would.
pub fn install_packages(packages: &[&str], what: &str) -> Result<()> {
    let command = format!("apt-get install --yes --no-install-recommends {}", packages.join(" "));
    if which("apt-get").is_none() {
        bail!("{what} is needed: install it with this system's package manager and run this again");
    }
    if !is_root() {
        bail!(
            "{what} is needed; as root run\n\n    apt-get update && {command}\n\nand then this again"
        );
    }
    println!("installing {what}: {command}");
    let install = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "--yes", "--no-install-recommends"])
            .args(packages);
        apt
    };
    // The package lists of a fresh container are empty, and old ones name files that are gone.
    if !succeeds(install().arg("--simulate")) {
        apt_update()?;
    }
    shell::run(&mut install()).or_else(|_| {
        apt_update()?;
        shell::run(&mut install())
    })
}
