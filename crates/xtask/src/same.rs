//! `cargo xtask same`: whether real programs give the same profile in bytecodes in every run, and
//! whether `tare check` finds a small regression on a busy machine and blames nothing else.

use anyhow::{Context, Result, bail};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tare_toolbox::jars::{fetch, jars_in};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::setup;
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;

pub const HELP: &str = "\
Whether profiles in bytecodes are the same in every run.

Usage: cargo xtask same [--write-docs] [NAME…]
                                     all programs, or some of: demo, h2, javac, scala, xml; their rows of the
                                     table in docs/measured/same.md are written anew if asked for
       cargo xtask same --check [CLEAN [BAD]]
                                     how often `tare check` blames clean runs of a real library, and
                                     how often it finds one method that got about 3 % dearer, with
                                     every processor busy (50 and 10 times unless said otherwise)

With --tare FILE as the first words it is this `tare`, with the agent beside it, and none is built.

Each program runs twice on every JDK that it can run on. Its profile, each context with its calls and
bytecodes, must be the same both times; and the same on all JDKs, where none of it is the JDK's.
";

/// The page with the table, and what stands around it there.
const PAGE: &str = "docs/measured/same.md";
const MARKS: [&str; 2] = ["<!-- same -->\n", "<!-- /same -->"];

/// Why a program of the JDK's differs.
const JDK_CODE: Option<(u32, &str)> = Some((0, "what is counted is the JDK's"));

const H2: &str = "com.h2database:h2:2.3.232";
const SCALA: &str = "org.scala-lang:scala-compiler:2.13.16";
const LANG: &str = "org.apache.commons:commons-lang3:3.17.0:jar:sources";

const SCALA_SOURCE: &str = "
case class Item(name: String, price: Double)
object Main {
  def gcd(a: Int, b: Int): Int = if (b == 0) a else gcd(b, a % b)
  def main(args: Array[String]): Unit =
    println((1 to 9).map(i => Item(s\"item$i\", i * 1.5)).groupBy(_.price > 5).size + gcd(12, 8))
}
";

/// A program, ready to run.
struct Program {
    name: &'static str,
    include: &'static str,
    words: Vec<String>,
    /// Whether only JDKs with a compiler can run it.
    needs_compiler: bool,
    /// The first JDK from which on it does something else, if any, and why.
    differs: Option<(u32, &'static str)>,
}

struct Bench {
    tare: PathBuf,
    work: PathBuf,
    javac: Jdk,
    runtimes: Vec<Jdk>,
    root: PathBuf,
}

pub fn run(options: &[&str]) -> Result<()> {
    let workspace = Workspace::open()?;
    let mut stages = Stages::new();
    let ready = setup::prepare()?;
    let (tare, options) = match options {
        ["--tare", file, rest @ ..] => (PathBuf::from(file), rest),
        _ => (workspace.release()?.join("tare"), options),
    };
    let is_check = options.first() == Some(&"--check");
    let work = workspace.target.join(if is_check { "same-check" } else { "same" });
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work)?;
    let bench = Bench {
        tare,
        work,
        javac: ready.javac,
        runtimes: ready.runtimes.into_iter().filter_map(|(_, jdk)| jdk.ok()).collect(),
        root: workspace.root.clone(),
    };
    match options {
        ["--check", counts @ ..] => {
            let count = |at: usize, otherwise: usize| match counts.get(at) {
                Some(text) => text.parse().with_context(|| format!("{text} is no number")),
                None => Ok(otherwise),
            };
            let (clean, bad) = (count(0, 50)?, count(1, 10)?);
            stages.run("tare check", || power(&bench, clean, bad));
        }
        words => {
            let (flags, names): (Vec<&str>, Vec<&str>) =
                words.iter().partition(|word| word.starts_with('-'));
            if let Some(flag) = flags.iter().find(|flag| **flag != "--write-docs") {
                bail!("unknown option {flag}\n\n{HELP}");
            }
            let mut rows = Vec::new();
            for name in ["demo", "h2", "javac", "scala", "xml"] {
                if names.is_empty() || names.contains(&name) {
                    let program = bench.program(name, &mut Stages::new());
                    stages.run(name, || {
                        rows.push(bench.same(&program?)?);
                        Ok(())
                    });
                }
            }
            if !flags.is_empty() {
                stages.run(PAGE, || write_rows(&workspace.root.join(PAGE), &rows));
            }
        }
    }
    stages.finish()
}

impl Bench {
    fn program(&self, name: &str, stages: &mut Stages) -> Result<Program> {
        let text = |path: PathBuf| path.display().to_string();
        let jars = |stages: &mut Stages, name: &str, artifact: &str| -> Result<Vec<String>> {
            let place = fetch(stages, name, &[artifact]).context("what it needs cannot be had")?;
            Ok(jars_in(&place)?.into_iter().map(text).collect())
        };
        let classes = text(self.work.join("classes"));
        let class_path = |mut parts: Vec<String>| {
            parts.insert(0, classes.clone());
            ["-cp".to_owned(), parts.join(":")]
        };
        let words = |before: &[String], after: &[&str]| -> Vec<String> {
            before.iter().cloned().chain(after.iter().map(|word| (*word).to_owned())).collect()
        };
        Ok(match name {
            "demo" => {
                self.compile(&self.root.join("demo/src"), &[])?;
                let orders =
                    ["shop.Main", "--orders", "3000", "--threads", "1", "--report-every", "0"];
                let words = words(&class_path(Vec::new()), &orders);
                let include = "shop.**";
                Program { name: "demo", include, words, needs_compiler: false, differs: None }
            }
            "h2" => {
                let jars = jars(stages, "h2", H2)?;
                let source = self.root.join("crates/jvm-tests/java/weave/H2Work.java");
                self.compile(&source, &jars)?;
                let mut all = words(&class_path(jars), &["weave.H2Work", "1000"]);
                // A cache of values by their hash: among them the time of day.
                all.insert(0, "-Dh2.objectCache=false".to_owned());
                Program {
                    name: "h2",
                    include: "org.h2.**",
                    words: all,
                    needs_compiler: false,
                    differs: Some((25, "sorts around elements that ThreadLocalRandom chooses")),
                }
            }
            "javac" => {
                let main = "jdk.compiler/com.sun.tools.javac.Main";
                let mut all = words(&[], &["-m", main, "-d", "OUT"]);
                all.extend(java_files(&self.root.join("demo/src"))?.into_iter().map(text));
                let include = "com.sun.tools.javac.**";
                Program {
                    name: "javac",
                    include,
                    words: all,
                    needs_compiler: true,
                    differs: JDK_CODE,
                }
            }
            "scala" => {
                let jars = jars(stages, "scala", SCALA)?;
                let source = self.work.join("Main.scala");
                fs::write(&source, SCALA_SOURCE)?;
                let mut all =
                    words(&class_path(jars), &["scala.tools.nsc.Main", "-usejavacp", "-d", "OUT"]);
                // What it compiles against is part of its input; otherwise the JDK that it runs on.
                let system = self.runtimes.first().context("no Java runtime")?;
                all.extend(["-system".to_owned(), text(system.home.clone()), text(source)]);
                Program {
                    name: "scala",
                    include: "scala.**",
                    words: all,
                    needs_compiler: false,
                    differs: Some((
                        21,
                        "read by DataInputStream; the JDK takes identity hash codes, too",
                    )),
                }
            }
            _ => {
                self.compile(&self.root.join("bench/src/same/Transform.java"), &[])?;
                let words = words(&class_path(Vec::new()), &["same.Transform"]);
                let include = "com.sun.org.apache.**";
                Program { name: "xml", include, words, needs_compiler: false, differs: JDK_CODE }
            }
        })
    }

    fn compile(&self, source: &Path, jars: &[String]) -> Result<()> {
        let files = if source.is_dir() { java_files(source)? } else { vec![source.to_owned()] };
        let mut javac = Command::new(self.javac.home.join("bin/javac"));
        javac.args(["--release", "17", "-nowarn", "-d"]).arg(self.work.join("classes"));
        if !jars.is_empty() {
            javac.arg("-cp").arg(jars.join(":"));
        }
        shell::run(javac.args(files))
    }

    /// Runs a program twice on each JDK, with different collectors, and compares; a row of the
    /// table.
    fn same(&self, program: &Program) -> Result<String> {
        let mut first: Option<Print> = None;
        let (mut differs, mut seen) = (Vec::new(), Vec::new());
        for jdk in self.runtimes.iter().filter(|jdk| jdk.javac || !program.needs_compiler) {
            let [one, two] =
                ["-XX:+UseSerialGC", "-XX:+UseParallelGC"].map(|gc| self.print(program, jdk, gc));
            let (one, two) = (one?, two?);
            let same = one.digest == two.digest;
            println!(
                "{} on {}: {} contexts, {} bytecodes, {}",
                program.name,
                jdk.version,
                one.contexts,
                one.bytecodes,
                if same { "twice the same" } else { "DIFFERENT" }
            );
            if !same {
                differs.push(format!("two runs on {}", jdk.version));
            }
            let (contexts, bytecodes) = (grouped(one.contexts), grouped(one.bytecodes));
            seen.push(format!("{}: {contexts}, {bytecodes}", jdk.major));
            let is_alike = program.differs.is_none_or(|(from, _)| jdk.major < from);
            if is_alike && first.get_or_insert(one).digest != two.digest {
                differs.push(format!("{} from the first JDK", jdk.version));
            }
        }
        if !differs.is_empty() {
            bail!("not the same: {}", differs.join(", "));
        }
        let across = match program.differs {
            None => "yes".to_owned(),
            Some((0, why)) => format!("no: {why}"),
            Some((from, why)) => format!("until {from}: {why}"),
        };
        println!("{}: the same on all JDKs: {across}", program.name);
        let (name, include) = (program.name, program.include);
        Ok(format!("| {name} | `{include}` | {} | yes | {across} |", seen.join("; ")))
    }

    fn print(&self, program: &Program, jdk: &Jdk, collector: &str) -> Result<Print> {
        let (file, out) = (self.work.join("run.tare"), self.work.join("out"));
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out)?;
        let mut command = Command::new(&self.tare);
        command.args(["record", "--bytecodes", "--quiet", "--memory", "1900M", "--include"]);
        command.arg(program.include).arg("-o").arg(&file).arg("--").arg(jdk.home.join("bin/java"));
        command.arg(collector);
        for word in &program.words {
            command.arg(if word == "OUT" { out.as_os_str() } else { word.as_ref() });
        }
        shell::output(&mut command)?;
        let mut print = Print::default();
        for metric in ["bytecodes", "invocations"] {
            // As a file it would take more than ten gigabytes for a compiler.
            let text = self.work.join("run.collapsed");
            let _ = fs::remove_file(&text);
            shell::run(Command::new("mkfifo").arg(&text))?;
            let mut export = Command::new(&self.tare);
            export.arg("export").arg(&file).args(["--metric", metric, "-o"]).arg(&text);
            let mut export = export.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            for line in BufReader::new(fs::File::open(&text)?).lines() {
                let line = line?;
                let mut hash = DefaultHasher::new();
                (metric, &line).hash(&mut hash);
                // Which thread began first is no part of it, so the order is not either.
                print.digest = print.digest.wrapping_add(hash.finish());
                if metric == "bytecodes" {
                    print.contexts += 1;
                    let value = line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
                    print.bytecodes += value.unwrap_or(0);
                }
            }
            let ended = export.wait()?;
            if !ended.success() {
                bail!("tare export ended with {ended}");
            }
        }
        Ok(print)
    }
}

/// Puts rows in the place of those of the same programs, or after the others.
fn write_rows(page: &Path, rows: &[String]) -> Result<()> {
    let text = fs::read_to_string(page)?;
    let parts = MARKS.map(|mark| text.split_once(mark));
    let [Some((before, _)), Some((_, after))] = parts else { bail!("the page has no table") };
    let old = &text[before.len() + MARKS[0].len()..text.len() - after.len() - MARKS[1].len()];
    let program = |row: &str| row.split('|').nth(1).map(str::to_owned);
    let mut table: Vec<&str> = old.lines().collect();
    for row in rows {
        match table.iter_mut().find(|old| program(old) == program(row)) {
            Some(old) => *old = row,
            None => table.push(row),
        }
    }
    let [begin, end] = MARKS;
    fs::write(page, format!("{before}{begin}{}\n{end}{after}", table.join("\n")))?;
    Ok(())
}

/// A number that people read: `1,798,690`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = (digits.len() + 2) % 3 + 1;
    let (head, tail) = digits.split_at(first);
    let groups = tail.as_bytes().chunks(3).map(String::from_utf8_lossy);
    groups.fold(head.to_owned(), |text, group| text + "," + &group)
}

/// What is left of a profile to compare.
#[derive(Default)]
struct Print {
    contexts: u64,
    bytecodes: u64,
    digest: u64,
}

fn java_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|e| e == "java") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Processes that keep the machine busy, ended with their owner.
struct Load(Vec<Child>);

impl Load {
    fn new() -> Result<Self> {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let busy = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        let all: std::io::Result<Vec<Child>> = (0..processors * 2).map(busy).collect();
        Ok(Load(all.context("keeping the machine busy")?))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One method of commons-lang3, as it is and dearer: a few passes more.
const METHOD: &str = "org.apache.commons.lang3.StringUtils.getLevenshteinDistance";
const AS_IT_IS: &str = "            upperleft = p[0];\n            jOfT = t.charAt(j - 1);\n";
const DEARER: &str = "            upperleft = p[0];\n            jOfT = t.charAt(j - 1);\n\
                      for (int twice = n / 14; twice >= 0; twice--) {\n jOfT = t.charAt(j - 1);\n }\n";

fn power(bench: &Bench, clean: usize, bad: usize) -> Result<()> {
    let place = fetch(&mut Stages::new(), "commons-lang3-sources", &[LANG]);
    let place = place.context("the sources cannot be had")?;
    let source = bench.work.join("lang3");
    fs::create_dir_all(&source)?;
    for jar in jars_in(&place)? {
        let mut unpack = Command::new(bench.javac.home.join("bin/jar"));
        shell::run(unpack.current_dir(&source).arg("-xf").arg(jar))?;
    }
    let utils = source.join("org/apache/commons/lang3/StringUtils.java");
    let text = fs::read_to_string(&utils)?;
    if text.matches(AS_IT_IS).count() != 1 {
        bail!("{METHOD} does not look as expected");
    }
    let built = |name: &str, text: &str| -> Result<PathBuf> {
        let classes = bench.work.join(name);
        fs::write(&utils, text)?;
        let mut javac = Command::new(bench.javac.home.join("bin/javac"));
        javac.args(["--release", "17", "-nowarn", "-proc:none", "-d"]).arg(&classes);
        javac.arg("-sourcepath").arg(&source).arg(&utils);
        shell::run(javac.arg(bench.root.join("bench/src/same/Strings.java")))?;
        Ok(classes)
    };
    let usual = built("usual", &text)?;
    let dearer = built("dearer", &text.replace(AS_IT_IS, DEARER))?;
    let jdk = bench.runtimes.first().context("no Java runtime")?;
    let baseline = bench.work.join("perf.tare");
    let check = |classes: &Path, update: bool| -> Result<(bool, String)> {
        let mut command = Command::new(&bench.tare);
        command.arg("check").arg("--baseline").arg(&baseline);
        command.args(update.then_some("--update"));
        command
            .arg("--")
            .arg(jdk.home.join("bin/java"))
            .arg("-cp")
            .arg(classes)
            .arg("same.Strings");
        let output = command.output().context("tare check")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.code() {
            Some(0) => Ok((true, said)),
            Some(3) => Ok((false, said)),
            other => bail!(
                "tare check ended with {other:?}: {said}{}",
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    };
    check(&usual, true)?;
    let _load = Load::new()?;
    let mut blamed = 0;
    for _ in 0..clean {
        blamed += usize::from(!check(&usual, false)?.0);
    }
    let (mut found, mut said) = (0, String::new());
    for _ in 0..bad {
        let (passed, text) = check(&dearer, false)?;
        found += usize::from(!passed && text.contains(METHOD));
        said = text;
    }
    println!("{said}");
    println!("{blamed} of {clean} clean runs were blamed, {found} of {bad} regressions found");
    if blamed > 0 || found < bad {
        bail!("{blamed} false alarms, {} regressions missed", bad - found);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_program_are_replaced_and_others_kept() {
        let page = std::env::temp_dir().join(format!("tare-same-{}.md", std::process::id()));
        fs::write(&page, "a\n<!-- same -->\n| program |\n| demo | 1 |\n<!-- /same -->\nz\n")
            .unwrap();
        write_rows(&page, &["| demo | 2 |".to_owned(), "| h2 | 3 |".to_owned()]).unwrap();
        let text = fs::read_to_string(&page).unwrap();
        fs::remove_file(&page).unwrap();
        assert_eq!(
            text,
            "a\n<!-- same -->\n| program |\n| demo | 2 |\n| h2 | 3 |\n<!-- /same -->\nz\n"
        );
    }

    #[test]
    fn numbers_are_grouped() {
        let numbers = [0, 12, 123, 1234, 123_456, 1_234_567];
        assert_eq!(numbers.map(grouped), ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }
}
