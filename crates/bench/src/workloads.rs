//! The programs that are measured: their input, and which of their methods are woven.
//!
//! Their Java side is below `bench/src`. Jars come through Maven into the cache that the weaving
//! corpus uses as well; what was fetched once is never fetched again.

use super::program::Amount;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_toolbox::jars::{fetch, jars_in, unpack};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::runtimes::jars_of;
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;

/// A workload, ready to run.
pub struct Workload {
    pub name: &'static str,
    /// What the profiler weaves.
    pub include: &'static str,
    /// Where the profile begins when only what one method calls is looked at.
    pub root: String,
    /// For the reader of the results.
    pub what: String,
    pub class_path: Vec<PathBuf>,
    /// Of the JVM.
    pub options: Vec<String>,
    /// Of `bench.Main`, after the name.
    pub arguments: Vec<String>,
    /// Whether it needs a JDK and not only a runtime.
    pub needs_compiler: bool,
    /// The first JDK that it runs on.
    pub since: u32,
    pub warm_up: Amount,
    /// For how many seconds more it is waited until iterations get no faster.
    pub settles_within: f64,
    pub measured: Amount,
}

/// What is known of a workload before anything is fetched.
struct Recipe {
    name: &'static str,
    include: &'static str,
    /// Of Maven; what these depend on comes along.
    artifacts: &'static [&'static str],
    /// How much to do: in a quick run, and in a real one.
    sizes: [u32; 2],
    /// What it is, after the artifacts.
    what: &'static str,
    /// Whether its class below `bench/with` is compiled against the artifacts.
    compiled_with: bool,
    /// The first JDK that it runs on.
    since: u32,
    amounts: Amounts,
}

const fn micro(name: &'static str, include: &'static str, sizes: [u32; 2]) -> Recipe {
    let what = "";
    let (artifacts, compiled_with, since, amounts) = (&[], false, 0, SMALL);
    Recipe { name, include, artifacts, sizes, what, compiled_with, since, amounts }
}

const fn real(
    name: &'static str,
    include: &'static str,
    artifacts: &'static [&'static str],
    sizes: [u32; 2],
    what: &'static str,
) -> Recipe {
    let (compiled_with, since, amounts) = (false, 0, LARGE);
    Recipe { name, include, artifacts, sizes, what, compiled_with, since, amounts }
}

/// Real programs first, then small ones that are nothing but one hard case.
const RECIPES: [Recipe; 18] = [
    real("javac", "com.sun.tools.javac.**", &[SOURCES], [0, 0], ""),
    real("h2", "org.h2.**", &["com.h2database:h2:2.3.232"], [500, 3000], "in memory, orders:"),
    real("scala", "scala.tools.**", &["org.scala-lang:scala-compiler:2.13.16"], [0, 0], ""),
    Recipe {
        compiled_with: true,
        ..real(
            "lucene",
            "org.apache.lucene.**",
            &["org.apache.lucene:lucene-core:9.12.1"],
            [500, 6000],
            "in memory, documents:",
        )
    },
    Recipe {
        compiled_with: true,
        ..real(
            "jetty",
            "org.eclipse.jetty.**",
            &["org.eclipse.jetty:jetty-servlet:11.0.24", "org.slf4j:slf4j-nop:2.0.9"],
            [500, 20_000],
            "with two clients on loopback, requests:",
        )
    },
    Recipe {
        compiled_with: true,
        ..real("web", "**", &[SERVER], [50, 300], "answering one connection, requests:")
    },
    real(
        "saxon",
        "net.sf.saxon.**",
        &["net.sf.saxon:Saxon-HE:12.5"],
        [500, 40_000],
        "transforming a document, orders:",
    ),
    Recipe {
        compiled_with: true,
        ..real(
            "pdfbox",
            "org.apache.pdfbox.**",
            &["org.apache.pdfbox:pdfbox:3.0.3"],
            [5, 400],
            "writing and reading a document, pages:",
        )
    },
    Recipe {
        compiled_with: true,
        ..real(
            "json",
            "com.google.gson.**",
            &["com.google.code.gson:gson:2.11.0"],
            [500, 20_000],
            "writing and reading texts, orders:",
        )
    },
    real(
        "clojure",
        "clojure.**",
        &["org.clojure:clojure:1.12.0"],
        [6, 10],
        "compiling and running a script, size:",
    ),
    real("spark", "org.apache.spark.**", &[], [20_000, 1_000_000], "on two threads, rows:"),
    micro("fib", "bench.Fib", [32, 36]),
    micro("trees", "bench.Trees*", [500, 20_000]),
    micro("throws", "bench.Throws*", [50_000, 1_500_000]),
    micro("locks", "bench.Locks*", [100_000, 3_000_000]),
    micro("parks", "bench.Parks*", [10_000, 300_000]),
    micro("garbage", "bench.Garbage*", [2_000_000, 200_000_000]),
    Recipe { since: 21, ..micro("virtual", "bench.Virtual*", [10_000, 300_000]) },
];

/// An embedded server, which needs no more than itself.
pub const SERVER: &str = "org.apache.tomcat.embed:tomcat-embed-core:10.1.40";

/// Where that server takes a request over from the part that knows the network.
pub const WEB_ROOT: &str = "org.apache.catalina.connector.CoyoteAdapter.service\
                            (org.apache.coyote.Request,org.apache.coyote.Response)";

impl Workload {
    /// For small inputs whose figures are to mean something.
    pub fn warm_up_well(&mut self) {
        // Code with probes in it is compiled late, and what was woven piece by piece begins anew
        // each time.
        self.warm_up = Amount { iterations: 3, seconds: 8.0 };
        self.settles_within = 25.0;
        self.measured = Amount { iterations: 3, seconds: 2.0 };
    }

    /// For programs that are woven anew while they run: what a budget comes to is seen when that is
    /// over, and all of it is compiled.
    pub fn warm_up_for_long(&mut self) {
        self.warm_up = Amount { iterations: 3, seconds: 40.0 };
        self.measured = Amount { iterations: 5, seconds: 4.0 };
    }

    /// For a look at all of them in a quarter of an hour. The seconds of the warm-up stay: with
    /// less of them, times of woven programs are those of the interpreter.
    pub fn be_brief(&mut self) {
        self.warm_up.iterations = self.warm_up.iterations.min(3);
        self.measured = Amount { iterations: 1, seconds: 1.0 };
    }
}

/// The method of ours that calls all the rest; of a server, which is called by its own threads, its
/// own.
fn root(name: &str) -> String {
    let mut letters = name.chars();
    match (name, letters.next()) {
        ("web", _) => WEB_ROOT.to_owned(),
        (_, Some(first)) => format!("bench.{}{}.iterate", first.to_uppercase(), letters.as_str()),
        (_, None) => String::new(),
    }
}

/// The names of all workloads.
pub fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|recipe| recipe.name)
}

/// Whether it is one of ours, made of one hard case.
pub fn is_small(name: &str) -> bool {
    let named = RECIPES.iter().find(|recipe| recipe.name == name);
    named.is_some_and(|recipe| recipe.include.starts_with("bench."))
}

/// Those that are measured unless others are named: each tells something of its own.
pub const DEFAULT: [&str; 3] = ["fib", "javac", "h2"];

const SOURCES: &str = "org.apache.commons:commons-lang3:3.17.0:jar:sources";
const SCALA_SOURCES: &str =
    "org.scala-lang.modules:scala-parser-combinators_2.13:2.4.0:jar:sources";
/// Of PyPI's pyspark.
const SPARK: &str = "4.2.1";

/// The package that javac compiles, of about eight thousand lines.
const PACKAGE: &str = "org/apache/commons/lang3/time";

const QUICK: Amounts =
    (Amount { iterations: 1, seconds: 0.0 }, Amount { iterations: 2, seconds: 1.0 });
/// One method is compiled soon; a whole compiler or database takes its time.
const SMALL: Amounts =
    (Amount { iterations: 2, seconds: 1.0 }, Amount { iterations: 3, seconds: 1.0 });
const LARGE: Amounts =
    (Amount { iterations: 4, seconds: 3.0 }, Amount { iterations: 3, seconds: 1.5 });

/// Of warm-up and of measurement.
type Amounts = (Amount, Amount);

/// The Java side, compiled, but for what is compiled with libraries.
pub fn compile(workspace: &Workspace, javac: &Jdk, work: &Path) -> Result<PathBuf> {
    let classes = work.join("classes");
    compile_into(&classes, &workspace.root.join("bench/src/bench"), &[], javac)?;
    Ok(classes)
}

fn compile_into(place: &Path, sources: &Path, with: &[PathBuf], javac: &Jdk) -> Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(sources)
        .with_context(|| format!("the Java side of the benchmarks, {}", sources.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "java"))
        .collect();
    files.sort();
    let mut command = Command::new(javac.home.join("bin/javac"));
    command.args(["--release", "17", "-g", "-d"]).arg(place);
    if !with.is_empty() {
        command.arg("-cp").arg(std::env::join_paths(with).context("the class path")?);
    }
    shell::run(command.args(files)).context("compiling the Java side of the benchmarks")
}

/// What `prepare` needs to know.
pub struct Kitchen<'a> {
    pub workspace: &'a Workspace,
    pub javac: &'a Jdk,
    pub classes: &'a Path,
    pub work: &'a Path,
    pub quick: bool,
}

/// Prepares a workload; `None` if what it needs cannot be had, which the stages then tell.
pub fn prepare(name: &str, kitchen: &Kitchen<'_>, stages: &mut Stages) -> Result<Option<Workload>> {
    let Some(recipe) = RECIPES.iter().find(|recipe| recipe.name == name) else {
        bail!("no workload is called {name}; there are {}", names().collect::<Vec<_>>().join(", "));
    };
    let prepared = match name {
        "javac" => javac(kitchen, stages)?,
        "scala" => scala(recipe, kitchen, stages)?,
        "spark" => spark(recipe, kitchen, stages)?,
        _ => by_size(recipe, kitchen, stages)?,
    };
    let Some((what, libraries, arguments)) = prepared else { return Ok(None) };
    let (warm_up, measured) = if kitchen.quick { QUICK } else { recipe.amounts };
    Ok(Some(Workload {
        name: recipe.name,
        include: recipe.include,
        root: root(recipe.name),
        what: format!("{what}, all of `{}` woven", recipe.include),
        class_path: [vec![kitchen.classes.to_owned()], libraries].concat(),
        arguments,
        options: if name == "spark" { opened() } else { Vec::new() },
        needs_compiler: name == "javac",
        since: recipe.since,
        warm_up,
        settles_within: 0.0,
        measured,
    }))
}

/// What it is, libraries and arguments.
type Prepared = Option<(String, Vec<PathBuf>, Vec<String>)>;

/// A workload that only has to know how much to do.
fn by_size(recipe: &Recipe, kitchen: &Kitchen<'_>, stages: &mut Stages) -> Result<Prepared> {
    let size = recipe.sizes[usize::from(!kitchen.quick)];
    if recipe.artifacts.is_empty() {
        let what = format!("`{} {size}`", recipe.name);
        return Ok(Some((what, Vec::new(), vec![size.to_string()])));
    }
    let Some(place) = fetch(stages, recipe.name, recipe.artifacts) else { return Ok(None) };
    let mut libraries = jars_in(&place)?;
    if recipe.compiled_with {
        libraries = with_own(recipe.name, libraries, kitchen)?;
    }
    let what = format!("{} {} {size}", recipe.artifacts[0], recipe.what);
    Ok(Some((what, libraries, vec![size.to_string()])))
}

/// Libraries, and before them our class that is compiled against them.
fn with_own(name: &str, mut jars: Vec<PathBuf>, kitchen: &Kitchen<'_>) -> Result<Vec<PathBuf>> {
    let sources = kitchen.workspace.root.join("bench/with").join(name).join("bench");
    let own = kitchen.work.join(format!("classes-{name}"));
    let with = [vec![kitchen.classes.to_owned()], jars.clone()].concat();
    compile_into(&own, &sources, &with, kitchen.javac)?;
    jars.insert(0, own);
    Ok(jars)
}

fn javac(kitchen: &Kitchen<'_>, stages: &mut Stages) -> Result<Prepared> {
    // The demo is small enough for a quick run, and needs no network.
    let (root, directory, what) = if kitchen.quick {
        let demo = kitchen.workspace.root.join("demo/src");
        (demo.clone(), demo, "demo/src".to_owned())
    } else {
        let group = "commons-lang3-sources";
        let Some(place) = fetch(stages, group, &[SOURCES]) else { return Ok(None) };
        let root = unpack(kitchen.javac, kitchen.work, &place, group)?;
        (root.clone(), root.join(PACKAGE), format!("`{PACKAGE}` of {SOURCES}"))
    };
    let arguments = [root, directory].map(|path| path.display().to_string()).into();
    Ok(Some((format!("the JDK's compiler on {what}"), Vec::new(), arguments)))
}

fn scala(recipe: &Recipe, kitchen: &Kitchen<'_>, stages: &mut Stages) -> Result<Prepared> {
    let group = "scala-parser-sources";
    let (Some(compiler), Some(sources)) =
        (fetch(stages, recipe.name, recipe.artifacts), fetch(stages, group, &[SCALA_SOURCES]))
    else {
        return Ok(None);
    };
    let jars = jars_in(&compiler)?;
    let library = std::env::join_paths(&jars).context("the class path")?;
    let root = unpack(kitchen.javac, kitchen.work, &sources, group)?;
    let arguments = vec![root.display().to_string(), library.to_string_lossy().into_owned()];
    Ok(Some((format!("{} on {SCALA_SOURCES}", recipe.artifacts[0]), jars, arguments)))
}

/// It comes from PyPI, whose package has all the jars in it.
fn spark(recipe: &Recipe, kitchen: &Kitchen<'_>, stages: &mut Stages) -> Result<Prepared> {
    let jars = match jars_of("pyspark", SPARK) {
        Ok(place) => jars_in(&place)?,
        Err(error) => {
            stages.note(format!("NOT COVERED: spark: {error:#}"));
            return Ok(None);
        }
    };
    let libraries = with_own(recipe.name, jars, kitchen)?;
    let size = recipe.sizes[usize::from(!kitchen.quick)];
    let what = format!("pyspark {SPARK} {} {size}", recipe.what);
    Ok(Some((what, libraries, vec![size.to_string()])))
}

/// What Spark needs of the JDK, as its own scripts ask for it.
fn opened() -> Vec<String> {
    const PACKAGES: [&str; 14] = [
        "java.io",
        "java.lang",
        "java.lang.invoke",
        "java.lang.reflect",
        "java.net",
        "java.nio",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "jdk.internal.ref",
        "sun.nio.ch",
        "sun.nio.cs",
        "sun.security.action",
        "sun.util.calendar",
    ];
    PACKAGES.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")).into()
}
