//! Programs behave the same woven: compilers write the same files, a database gives the same
//! answers, interpreters say the same.
//!
//! Each program runs untouched and then woven, in full verification; all that it writes to standard
//! output and into its directory must be equal. javac and the database run on a woven java.base
//! as well, so that nearly every instruction of theirs is woven.

use super::subjects;
use super::{Corpus, HUGE, judge, weave};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tare_toolbox::jars::jars_in;
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell;

/// What a program wrote: its output, and each file below its directory.
#[derive(PartialEq, Eq)]
struct Written {
    said: String,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// A program whose own jars are woven.
struct Program {
    name: &'static str,
    group: &'static str,
    /// `OUT` stands for a directory, `IN` for that of the sources below, `PATH` for the class path.
    words: &'static [&'static str],
    source: Option<(&'static str, &'static str)>,
    /// Whether the JDK itself is woven too.
    on_woven_jdk: bool,
}

const KOTLIN: &str = r#"
package shop
data class Item(val name: String, val price: Double, val tags: List<String> = emptyList())
sealed interface Shape { val area: Double }
class Circle(val r: Double) : Shape { override val area get() = Math.PI * r * r }
class Square(val a: Double) : Shape { override val area by lazy { a * a } }
inline fun <reified T> Iterable<*>.only(): List<T> = filterIsInstance<T>()
suspend fun twice(f: suspend (Int) -> Int): Int = f(1) + f(2)
fun <T : Comparable<T>> List<T>.largest(): T? = fold(null as T?) { m, x -> if (m == null || x > m) x else m }
tailrec fun gcd(a: Int, b: Int): Int = if (b == 0) a else gcd(b, a % b)
fun describe(s: Shape) = when (s) { is Circle -> "circle ${s.r}"; is Square -> "square ${s.a}" }
fun main() {
    val items = (1..20).map { Item("item$it", it * 1.5, listOf("t${it % 3}")) }
    println(items.groupBy { it.tags.first() }.mapValues { (_, v) -> v.sumOf(Item::price) })
    try { error("no") } catch (e: IllegalStateException) { println(e.message) } finally { println(gcd(48, 18)) }
    println(listOf(Circle(1.0), Square(2.0)).only<Shape>().map(::describe))
}
"#;

const SCALA: &str = r#"
package shop
case class Item(name: String, price: Double, tags: List[String] = Nil)
sealed trait Shape { def area: Double }
final case class Circle(r: Double) extends Shape { lazy val area = math.Pi * r * r }
final case class Square(a: Double) extends Shape { def area = a * a }
object Main {
  implicit class Rich[A](private val as: List[A]) extends AnyVal { def every(n: Int): List[A] = as.zipWithIndex.collect { case (a, i) if i % n == 0 => a } }
  def describe(s: Shape): String = s match { case Circle(r) if r > 1 => s"big $r"; case Circle(r) => s"circle $r"; case Square(a) => s"square $a" }
  @annotation.tailrec def gcd(a: Int, b: Int): Int = if (b == 0) a else gcd(b, a % b)
  def main(args: Array[String]): Unit = {
    val items = (1 to 20).toList.map(i => Item(s"item$i", i * 1.5, List(s"t${i % 3}")))
    println(items.groupBy(_.tags.head).map { case (k, v) => k -> v.map(_.price).sum }.toList.sorted)
    for { a <- 1 to 3; b <- a to 3 if a != b } yield gcd(a, b)
    println(List[Shape](Circle(1), Square(2)).map(describe).every(2))
    try sys.error("no") catch { case e: RuntimeException => println(e.getMessage) } finally println("done")
  }
}
"#;

const PROGRAMS: &[Program] = &[
    Program {
        name: "h2 at work",
        group: "h2",
        words: &["weave.H2Work", "2000"],
        source: None,
        on_woven_jdk: true,
    },
    Program {
        name: "kotlin compiler",
        group: "kotlin",
        words: &[
            "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
            "-no-reflect",
            "-no-stdlib",
            "-cp",
            "PATH",
            "-d",
            "OUT",
            "IN/Main.kt",
        ],
        source: Some(("Main.kt", KOTLIN)),
        on_woven_jdk: false,
    },
    Program {
        name: "scala compiler",
        group: "scala",
        words: &["scala.tools.nsc.Main", "-usejavacp", "-d", "OUT", "IN/Main.scala"],
        source: Some(("Main.scala", SCALA)),
        on_woven_jdk: false,
    },
    Program {
        name: "clojure",
        group: "clojure",
        words: &[
            "clojure.main",
            "-e",
            "(println (reduce + (map #(* % %) (filter even? (range 1000)))) \
             (try (/ 1 0) (catch ArithmeticException e (.getMessage e))) \
             (into (sorted-map) (frequencies \"mississippi\")))",
        ],
        source: None,
        on_woven_jdk: false,
    },
    Program {
        name: "groovy",
        group: "groovy",
        words: &[
            "groovy.ui.GroovyMain",
            "-e",
            "println((1..20).findAll { it % 3 }.collect { it * it }.groupBy { it % 5 }); \
             try { null.x() } catch (e) { println e.class.name }",
        ],
        source: None,
        on_woven_jdk: false,
    },
    Program {
        name: "jython",
        group: "jython",
        words: &[
            "org.python.util.jython",
            "-c",
            "print(sorted(dict((x, x*x) for x in range(20) if x % 3).items())); \
             import re; print(re.sub('[aeiou]', '*', 'mississippi'))",
        ],
        source: None,
        on_woven_jdk: false,
    },
];

pub fn run(corpus: &mut Corpus) -> Result<()> {
    let jdks: Vec<Jdk> = corpus.jdks.iter().filter(|jdk| jdk.javac).cloned().collect();
    if jdks.is_empty() {
        bail!("a JDK with a compiler is needed");
    }
    let modes = default_modes(corpus);
    for jdk in &jdks {
        let dump = || subjects::jdk(jdk, &corpus.driver, &corpus.work, false);
        let name = format!("classes of JDK {}", jdk.major);
        let Some(platform) = corpus.stages.run(&name, dump) else { continue };
        for mode in &modes {
            let woven = corpus.work.join("woven").join(format!("jdk{}-{mode}", jdk.major));
            let stage = format!("JDK {} woven with {mode}", jdk.major);
            let done = corpus.stages.run(&stage, || {
                let _ = fs::remove_dir_all(&woven);
                weave(&corpus.tare, &platform, mode, &woven)
            });
            if done.is_none() {
                continue;
            }
            javac(corpus, jdk, mode, &woven);
            for program in PROGRAMS {
                if corpus.args.wants(program.group) {
                    other(corpus, program, jdk, mode, &woven);
                }
            }
            let _ = fs::remove_dir_all(&woven);
        }
    }
    Ok(())
}

fn default_modes(corpus: &Corpus) -> Vec<String> {
    let asked = &corpus.args.modes;
    if asked.len() > 2 { vec!["entry,count".to_owned(), HUGE.to_owned()] } else { asked.clone() }
}

/// The JDK's own compiler on our own sources and on a library's.
fn javac(corpus: &mut Corpus, jdk: &Jdk, mode: &str, woven: &Path) {
    if !corpus.args.wants("javac") {
        return;
    }
    let Some(sources) = sources(corpus) else { return };
    let stage = format!("javac on JDK {} woven with {mode}", jdk.major);
    let work = corpus.work.join("behaviour");
    let driver = &corpus.driver;
    corpus.stages.run(&stage, || {
        let run = |out: &Path, jars: &[PathBuf]| {
            let mut command = driver.java(jdk);
            command.args(["-Xverify:all", "-XX:-PrintWarnings", "-XX:TieredStopAtLevel=4"]);
            command.args(judge::patches(driver, jars, !jars.is_empty()));
            command.arg("--add-modules=ALL-SYSTEM");
            command.args(["-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-g"]);
            command.args(["-proc:none", "-encoding", "UTF-8", "-d"]).arg(out).args(&sources);
            command
        };
        let untouched = written(&work, |out| run(out, &[]))?;
        let jars = jars_in(woven)?;
        let changed = written(&work, |out| run(out, &jars))?;
        same(&untouched, &changed, 100)
    });
}

/// A library's sources when Maven can bring them, otherwise the demo's.
fn sources(corpus: &mut Corpus) -> Option<Vec<PathBuf>> {
    let artifact = "org.apache.commons:commons-lang3:3.17.0:jar:sources";
    let directory = corpus.work.join("javac-sources");
    if !directory.is_dir()
        && let Some(jars) =
            tare_toolbox::jars::fetch(&mut corpus.stages, "commons-lang3-sources", &[artifact])
    {
        corpus.stages.run("unpacking sources", || {
            fs::create_dir_all(&directory)?;
            for jar in jars_in(&jars)? {
                let python = ["-m", "zipfile", "-e"];
                shell::run(Command::new("python3").args(python).arg(jar).arg(&directory))?;
            }
            Ok(())
        });
    }
    let root = shell::root();
    let place = if directory.is_dir() { directory } else { root.join("demo/src") };
    let mut files = Vec::new();
    collect(&place, &mut |file| {
        if file.extension().is_some_and(|e| e == "java") {
            files.push(file.to_owned());
        }
    });
    files.sort();
    Some(files)
}

fn other(corpus: &mut Corpus, program: &Program, jdk: &Jdk, mode: &str, platform: &Path) {
    let wanted = |name: &str| name == program.group;
    let Some(subject) = subjects::jars(&mut corpus.stages, wanted).pop() else { return };
    let stage = format!("{} on JDK {} woven with {mode}", program.name, jdk.major);
    let (work, driver, tare) = (corpus.work.join("behaviour"), &corpus.driver, &corpus.tare);
    corpus.stages.run(&stage, || {
        let woven = corpus.work.join("woven").join(format!("{}-{mode}", program.group));
        let _ = fs::remove_dir_all(&woven);
        weave(tare, &subject, mode, &woven)?;
        let input = work.join("in");
        fs::create_dir_all(&input)?;
        if let Some((name, text)) = program.source {
            fs::write(input.join(name), text)?;
        }
        let run = |out: &Path, classes: &Path, jars: &[PathBuf]| {
            let mut path = OsString::from(&driver.classes);
            for jar in jars_in(classes).unwrap_or_default() {
                path.push(":");
                path.push(jar);
            }
            // The compiled program's class path is the same in both runs: it may be written down.
            let library = jars_in(&subject.classes).unwrap_or_default();
            let library: Vec<_> = library.iter().map(|jar| jar.to_string_lossy()).collect();
            let mut command = driver.java(jdk);
            command.args([
                "-Xverify:all",
                "-XX:-PrintWarnings",
                "-XX:TieredStopAtLevel=4",
                "-Xss4m",
            ]);
            let patched = program.on_woven_jdk && !jars.is_empty();
            command.arg("--add-modules=ALL-SYSTEM").args(judge::patches(driver, jars, patched));
            command.arg("-cp").arg(path);
            command.env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
            command.args(program.words.iter().map(|word| {
                word.replace("PATH", &library.join(":"))
                    .replace("OUT", &out.to_string_lossy())
                    .replace("IN/", &format!("{}/", input.display()))
            }));
            command
        };
        let untouched = written(&work, |out| run(out, &subject.classes, &[]))?;
        let jars = jars_in(platform)?;
        let changed = written(&work, |out| run(out, &woven, &jars))?;
        let _ = fs::remove_dir_all(&woven);
        same(&untouched, &changed, if program.source.is_some() { 500 } else { 20 })
    });
}

/// Runs a command that writes into a directory, and takes everything that it wrote.
fn written(work: &Path, command: impl Fn(&Path) -> Command) -> Result<Written> {
    let out = work.join("out");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let begun = Instant::now();
    let mut command = command(&out);
    let said = shell::output(&mut command)?;
    println!("  {:.1} s", begun.elapsed().as_secs_f64());
    let mut files = BTreeMap::new();
    collect(&out, &mut |file| {
        if let (Ok(name), Ok(bytes)) = (file.strip_prefix(&out), fs::read(file)) {
            files.insert(name.to_owned(), bytes);
        }
    });
    Ok(Written { said, files })
}

/// Fails when something differs, or when there is too little that could differ.
fn same(untouched: &Written, woven: &Written, at_least: usize) -> Result<()> {
    let size = untouched.said.len() + untouched.files.values().map(Vec::len).sum::<usize>();
    if size < at_least {
        bail!("the program writes only {size} bytes; there is nothing to compare");
    }
    println!("  {} files, {} bytes compared", untouched.files.len(), size);
    if untouched.said != woven.said {
        let lines = untouched.said.lines().zip(woven.said.lines());
        let first =
            lines.filter(|(a, b)| a != b).map(|(a, b)| format!("{a:?} became {b:?}")).next();
        bail!("the output differs: {}", first.unwrap_or_else(|| "in length".to_owned()));
    }
    for (name, bytes) in &untouched.files {
        if woven.files.get(name) != Some(bytes) {
            bail!("{} is written differently", name.display());
        }
    }
    if untouched.files.len() != woven.files.len() {
        bail!("{} files instead of {}", woven.files.len(), untouched.files.len());
    }
    Ok(())
}

fn collect(directory: &Path, found: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            collect(&path, found);
        } else {
            found(&path);
        }
    }
}
