//! Other profilers that see every call: VisualVM's, without its windows, and an agent that does
//! what hprof did. Their Java and C sides are below `bench/peers`.

use super::config::Extent;
use super::workloads::{Kitchen, Workload};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::runtimes::cache_dir;
use tare_toolbox::shell::{self, which};
use tare_toolbox::stages::Stages;

/// Debian's packages with VisualVM's profiler and what it stands on.
const PACKAGES: [&str; 3] = ["visualvm", "libvisualvm-jni", "libnb-platform18-java"];

/// It refuses later JDKs.
pub const VISUAL_VM_KNOWS: u32 = 19;

const PORT: &str = "5141";

/// What of them can be had here.
#[derive(Default)]
pub struct Peers {
    pub visual_vm: Option<VisualVm>,
    pub method_events: Option<PathBuf>,
}

pub struct VisualVm {
    libraries: PathBuf,
    class_path: String,
}

impl Peers {
    /// Fetches and builds them; what does not work is noted and left out.
    pub fn prepare(kitchen: &Kitchen<'_>, jdk: &Jdk, stages: &mut Stages) -> Self {
        let mut noted = |what: &str, error: anyhow::Error| {
            stages.note(format!("NOT COVERED: {what}: {error:#}"));
        };
        let visual_vm = VisualVm::prepare(kitchen, jdk);
        let visual_vm = visual_vm.map_err(|error| noted("VisualVM", error)).ok();
        let events = build_events(kitchen, jdk).map_err(|error| noted("method events", error));
        Peers { visual_vm, method_events: events.ok() }
    }

    /// The driver in place of the program that it starts.
    pub fn visual_vm(
        &self,
        java: &Command,
        jdk: &Jdk,
        workload: &Workload,
        extent: Extent,
    ) -> Result<Command> {
        let peer = self.visual_vm.as_ref().context("VisualVM is not here")?;
        let (class, method) = workload.root.rsplit_once('.').context("a root")?;
        let mut driver = peer.driver(jdk);
        driver.arg(PORT).arg(if extent == Extent::Whole { "whole" } else { "root" });
        // All roots of the workloads are `long iterate()`.
        driver.args([class, method, "()J", workload.include]);
        driver.args(java.get_args());
        Ok(driver)
    }
}

impl VisualVm {
    pub fn prepare(kitchen: &Kitchen<'_>, jdk: &Jdk) -> Result<VisualVm> {
        if jdk.major > VISUAL_VM_KNOWS {
            bail!("it knows no JDK after {VISUAL_VM_KNOWS}");
        }
        let share = fetch()?.join("usr/share");
        let tool = share.join("visualvm/visualvm");
        let platform = share.join("netbeans/platform18/lib");
        let classes = kitchen.work.join("visualvm");
        let jars = [
            tool.join("modules/org-graalvm-visualvm-lib-jfluid.jar"),
            tool.join("lib/jfluid-server.jar"),
            tool.join("lib/jfluid-server-15.jar"),
            platform.join("org-openide-util.jar"),
            platform.join("org-openide-util-lookup.jar"),
            platform.join("org-openide-modules.jar"),
            classes.clone(),
        ];
        let class_path = jars.map(|jar| jar.display().to_string()).join(":");
        let mut javac = Command::new(kitchen.javac.home.join("bin/javac"));
        javac.args(["--release", "17", "-cp", &class_path, "-d"]).arg(&classes);
        javac.arg(kitchen.workspace.root.join("bench/peers/JFluid.java"));
        shell::run(&mut javac)?;
        let peer = VisualVm { libraries: tool.join("lib"), class_path };
        shell::run(peer.driver(jdk).arg("calibrate"))?;
        Ok(peer)
    }

    /// The driver in place of a program, of which it tells every method's calls and own time.
    /// `main` is the class where it begins, `include` what is instrumented.
    pub fn of_methods(&self, java: &Command, jdk: &Jdk, main: &str, include: &str) -> Command {
        let mut driver = self.driver(jdk);
        driver.args([PORT, "methods", main, "main", "([Ljava/lang/String;)V", include]);
        driver.args(java.get_args());
        driver
    }

    /// With a bound on its memory: it keeps what it gets of the program, and can take a machine
    /// with it.
    fn driver(&self, jdk: &Jdk) -> Command {
        let mut driver = Command::new(jdk.home.join("bin/java"));
        driver.args(["-Xmx3g", "-cp", &self.class_path, "JFluid"]).arg(&self.libraries);
        driver
    }
}

/// The packages, unpacked into the cache; nothing is installed.
fn fetch() -> Result<PathBuf> {
    let place = cache_dir()?.join("visualvm");
    if place.join("usr/share/visualvm").is_dir() {
        return Ok(place);
    }
    if which("apt-get").is_none() || which("dpkg-deb").is_none() {
        bail!("it comes as a Debian package, and there is no apt-get here");
    }
    let work = cache_dir()?.join(format!(".fetching-visualvm-{}", std::process::id()));
    fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let outcome = unpack_packages(&work).and_then(|unpacked| {
        let _ = fs::remove_dir_all(&place);
        fs::rename(&unpacked, &place).context("moving VisualVM to its place")
    });
    let _ = fs::remove_dir_all(&work);
    outcome.map(|()| place)
}

fn unpack_packages(work: &Path) -> Result<PathBuf> {
    println!("fetching {} …", PACKAGES.join(", "));
    shell::output(Command::new("apt-get").current_dir(work).arg("download").args(PACKAGES))?;
    let unpacked = work.join("unpacked");
    for entry in fs::read_dir(work)?.flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "deb") {
            shell::run(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(&unpacked))?;
        }
    }
    Ok(unpacked)
}

fn build_events(kitchen: &Kitchen<'_>, jdk: &Jdk) -> Result<PathBuf> {
    build(&kitchen.workspace.root, kitchen.work, [jdk, kitchen.javac], "method_events")
}

/// A library of `bench/peers`, by the headers of the first of these JDKs that has some: those of
/// all versions say the same.
pub fn build(root: &Path, work: &Path, jdks: [&Jdk; 2], name: &str) -> Result<PathBuf> {
    let homes = jdks.map(|jdk| jdk.home.join("include"));
    let include = homes.into_iter().find(|place| place.join("jvmti.h").is_file());
    let include = include.context("no JDK here has jvmti.h")?;
    let library = work.join(format!("{name}.so"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O2"]).arg(format!("-I{}", include.display()));
    cc.arg(format!("-I{}", include.join("linux").display())).arg("-o").arg(&library);
    shell::run(cc.arg(root.join(format!("bench/peers/{name}.c"))))?;
    Ok(library)
}
