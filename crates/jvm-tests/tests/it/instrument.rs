//! Programs that `tare instrument` wove: they count what `tare record --bytecodes` counts, on every
//! JVM, with nothing but the portable runtime, and go on whatever becomes of it.

use crate::bytecodes::contexts_of;
use crate::recording::Recorded;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tare_jvm_tests::{
    Jdk, Scratch, Tare, compiled, jdk, jdk_tool, on_each_jdk, on_jdk, path, program_classes,
    wait_until,
};

fn text(path: &Path) -> String {
    path.to_str().expect("a plain path").to_owned()
}

/// A jar of the small programs, which begins with all of them.
fn programs(scratch: &Scratch) -> PathBuf {
    let jar = scratch.join("app.jar");
    let classes = text(program_classes());
    jdk_tool("jar", &["cfe", &text(&jar), "programs.All", "-C", &classes, "."]);
    jar
}

fn instrument(words: &[&str]) -> String {
    let outcome = Tare::this().run(&[&["instrument"], words].concat());
    outcome.ok();
    outcome.err.clone()
}

/// Runs Java, with a recording at the end.
fn java(jdk: &Jdk, recording: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(jdk.java());
    command.arg(format!("-Dtare.output={}", text(recording))).arg("-Xverify:all").args(words);
    command.output().expect("java can be started")
}

#[track_caller]
fn good(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complaints}");
    assert!(!complaints.contains("tare:"), "{complaints}");
    said
}

on_each_jdk! {
    /// Every context of twelve programs, with both analyses: exceptions, threads, lambdas,
    /// monitors.
    fn what_is_counted_is_what_a_recording_counts(jdk) {
        let scratch = Scratch::new();
        let app = programs(&scratch);
        for blocks in ["default", "precise"] {
            let woven = scratch.join(&format!("{blocks}.jar"));
            instrument(&[&text(&app), "-o", &text(&woven), "--blocks", blocks]);
            let offline = scratch.join("offline.tare");
            let said = good(&java(jdk, &offline, &["-jar", &text(&woven)]));

            let recorded = text(&scratch.join("recorded.tare"));
            let java = text(&jdk.java());
            let words = ["record", "--bytecodes", "--blocks", blocks, "-o", &recorded, "--", &java, "-jar", &text(&app)];
            let under_the_agent = Tare::this().run(&words);
            assert!(under_the_agent.ok().starts_with(&said), "the program says the same: {said}");

            assert!(Recorded::open(&offline).losses().is_empty());
            let contexts = contexts_of(&text(&offline));
            assert!(contexts.lines().count() > 1000, "{contexts}");
            assert!(contexts == contexts_of(&recorded), "{blocks}: not what a recording has");
        }
    }

    /// A directory of classes, and several inputs at once with a jar in a folder.
    fn directories(jdk) {
        let scratch = Scratch::new();
        let classes = text(program_classes());
        let (woven, recording) = (scratch.join("woven"), scratch.join("x.tare"));
        instrument(&[&classes, "-o", &text(&woven)]);
        let class_path = path(&[&woven, &scratch.join("tare-runtime.jar")]).into_string().expect("plain");
        good(&java(jdk, &recording, &["-cp", &class_path, "programs.All", "Queens", "Json"]));
        let by_classes = contexts_of(&text(&recording));
        assert!(by_classes.contains("programs.Queens.place"), "{by_classes}");

        // The program's classes in a jar that another one names.
        let (lib, main, both) = (scratch.join("lib"), scratch.join("main.jar"), scratch.join("both"));
        fs::create_dir(&lib).expect("our own directory");
        fs::rename(programs(&scratch), lib.join("app.jar")).expect("our own directory");
        let manifest = scratch.join("main.mf");
        fs::write(&manifest, "Main-Class: programs.All\nClass-Path: lib/app.jar\n").expect("our own file");
        jdk_tool("jar", &["cfm", &text(&main), &text(&manifest)]);
        instrument(&[&text(&main), &text(&lib), "-o", &text(&both)]);
        let begin = text(&both.join("main.jar"));
        good(&java(jdk, &recording, &["-jar", &begin, "Queens", "Json"]));
        assert_eq!(contexts_of(&text(&recording)), by_classes);
    }

    /// Many threads of both kinds: each platform thread by its name, virtual ones together.
    fn threads(jdk) {
        let scratch = Scratch::new();
        let classes = scratch.join("classes");
        compiled(&classes, &[("Crowd.java", CROWD)]);
        instrument(&[&text(&classes), "-o", &text(&scratch.join("woven"))]);
        let class_path = path(&[&scratch.join("woven"), &scratch.join("tare-runtime.jar")]);
        let recording = scratch.join("x.tare");
        good(&java(jdk, &recording, &["-cp", class_path.to_str().expect("plain"), "Crowd"]));
        let recorded = Recorded::open(&recording);
        assert_eq!(recorded.at("named", &["Crowd.run", "Crowd.work"]), 1);
        let virtually = if jdk.major >= 21 { 3000 } else { 0 };
        assert_eq!(recorded.counts()["Crowd.work"], 1 + 1500 + virtually);
        if virtually > 0 {
            assert_eq!(recorded.at("virtual threads", &["Crowd.run", "Crowd.work"]), virtually);
        }
    }
}

/// One thread with a name, many that end soon, and as many virtual ones as make trees merge.
const CROWD: &str = r#"
public class Crowd implements Runnable {
    static int sum;
    public void run() { sum += work(3); }
    static int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
    public static void main(String[] args) throws Exception {
        Thread named = new Thread(new Crowd(), "named");
        named.start();
        named.join();
        for (int i = 0; i < 1500; i++) {
            Thread thread = new Thread(new Crowd());
            thread.start();
            thread.join();
        }
        try {
            var start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            for (int i = 0; i < 3000; i++) {
                ((Thread) start.invoke(null, new Crowd())).join();
            }
        } catch (NoSuchMethodException e) {
            // Before Java 21.
        }
    }
}
"#;

const MODULE: &[(&str, &str)] = &[
    ("module-info.java", "module sample { requires java.logging; exports sample; }"),
    (
        "sample/Main.java",
        "package sample;
         public class Main {
             public static void main(String[] args) {
                 System.out.println(Which.version() + \" \" + Main.class.getModule().getName());
                 java.util.logging.Logger.getLogger(\"x\").fine(\"y\");
             }
         }",
    ),
    ("sample/Which.java", "package sample; class Which { static int version() { return 8; } }"),
];

/// The class for newer JVMs executes more, so that counts tell which of them ran.
const NEWER: &str = "package sample;
    class Which { static int version() { int n = 0; while (n < 17) n++; return n; } }";

/// A modular, multi-release and signed jar.
fn sample(scratch: &Scratch) -> PathBuf {
    let (classes, newer, jar) =
        (scratch.join("classes"), scratch.join("newer"), scratch.join("sample.jar"));
    compiled(&classes, MODULE);
    compiled(&newer, &[("sample/Which.java", NEWER)]);
    let jar = text(&jar);
    let (classes, newer) = (text(&classes), text(&newer));
    jdk_tool(
        "jar",
        &["cfe", &jar, "sample.Main", "-C", &classes, ".", "--release", "17", "-C", &newer, "."],
    );
    let keys = text(&scratch.join("keys"));
    let store = ["-keystore", &keys, "-storepass", "secret"];
    let key = ["-genkeypair", "-alias", "me", "-keyalg", "EC", "-dname", "CN=me"];
    jdk_tool("keytool", &[&key[..], &store].concat());
    jdk_tool("jarsigner", &[&store[..], &[&jar, "me"]].concat());
    PathBuf::from(jar)
}

/// As a module, on the class path, and as a program of its own.
#[test]
fn modules_versions_and_signatures() {
    let scratch = Scratch::new();
    let jar = sample(&scratch);
    let woven = scratch.join("woven.jar");
    let said = instrument(&[&text(&jar), "-o", &text(&woven)]);
    for part in ["Signatures left out: 2 files", "now require tare.runtime: 1", "tare-runtime.jar"]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    let runtime = scratch.join("tare-runtime.jar");
    let plain = |jar: &Path| path(&[jar, &runtime]).into_string().expect("plain");
    for version in [17, 21, 25] {
        on_jdk(version, |jdk| {
            let recorded = text(&scratch.join("recorded.tare"));
            let words = ["record", "--bytecodes", "-o", &recorded, "--", &text(&jdk.java())];
            Tare::this()
                .run(&[&words[..], &["-p", &text(&jar), "-m", "sample/sample.Main"]].concat())
                .ok();
            let expected = contexts_of(&recorded);
            assert!(expected.contains("sample.Which.version"), "{expected}");
            let recording = scratch.join("x.tare");
            for (words, module) in [
                (vec!["-p", &plain(&woven), "-m", "sample/sample.Main"], "sample"),
                (vec!["-cp", &plain(&woven), "sample.Main"], "null"),
                (vec!["-jar", &text(&woven)], "null"),
            ] {
                let said = good(&java(jdk, &recording, &words));
                assert_eq!(said.trim(), format!("17 {module}"), "{words:?}");
                assert_eq!(contexts_of(&text(&recording)), expected, "{words:?}");
            }
        });
    }
}

/// A program that counts its own steps, and ends as it is told.
const ENDS: &str = r#"
public class Ends {
    static int deep(int n) { return n == 0 ? 0 : 1 + deep(n - 1); }
    static int over(int n) { return over(n + 1) + 1; }
    public static void main(String[] args) throws Exception {
        int sum = 0;
        for (int i = 0; i < 100; i++) sum += deep(i);
        try {
            over(0);
        } catch (StackOverflowError e) {
            sum += deep(3);
        }
        System.out.println("sum " + sum);
        System.out.flush();
        switch (args[0]) {
            case "exit": System.exit(3);
            case "halt": Thread.sleep(Long.MAX_VALUE);
            default:
        }
    }
}
"#;

fn ends(scratch: &Scratch) -> String {
    let classes = scratch.join("classes");
    compiled(&classes, &[("Ends.java", ENDS)]);
    instrument(&[&text(&classes), "-o", &text(&scratch.join("woven"))]);
    let class_path = path(&[&scratch.join("woven"), &scratch.join("tare-runtime.jar")]);
    class_path.into_string().expect("plain")
}

/// Calls of `deep`, exactly, though the stack overflowed in between.
const DEEP: i64 = 100 * 101 / 2 + 4;

on_each_jdk! {
    /// System.exit has a recording, and so has a program that is killed, of what was a while ago.
    fn ends_of_all_kinds(jdk) {
        let scratch = Scratch::new();
        let class_path = ends(&scratch);
        let recording = scratch.join("x.tare");
        let output = java(jdk, &recording, &["-cp", &class_path, "Ends", "exit"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert_eq!(Recorded::open(&recording).counts()["Ends.deep"], DEEP);

        fs::remove_file(&recording).expect("it was written");
        let mut killed = Command::new(jdk.java())
            .args([&format!("-Dtare.output={}", text(&recording)), "-Dtare.flush=1"])
            .args(["-cp", &class_path, "Ends", "halt"])
            .spawn()
            .expect("java can be started");
        wait_until("a first writing with all calls", || {
            recording.exists() && Recorded::open(&recording).counts().get("Ends.deep") == Some(&DEEP)
        });
        killed.kill().expect("our own child");
        killed.wait().expect("our own child");
        assert_eq!(Recorded::open(&recording).counts()["Ends.deep"], DEEP);
    }
}

/// No room for contexts, no place to write to: the program goes on, sums stay true, and it is said.
#[test]
fn what_is_missing_is_said() {
    let scratch = Scratch::new();
    let class_path = ends(&scratch);
    let recording = scratch.join("x.tare");
    let narrow = ["-Dtare.contexts=20", "-cp", &class_path, "Ends", "end"];
    good(&java(jdk(), &recording, &narrow));
    let recorded = Recorded::open(&recording);
    let losses = recorded.losses().join("\n");
    assert!(losses.contains("calls in new contexts"), "{losses}");
    let counts = recorded.counts();
    assert!(counts["Ends.deep"] < DEEP && counts[".[no room]"] > DEEP, "{counts:?}");

    let nowhere = scratch.join("missing").join("x.tare");
    let output = java(jdk(), &nowhere, &["-cp", &class_path, "Ends", "end"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("tare: cannot write") && said.contains("missing"), "{said}");

    // Without a word about it the file is named after program and pid.
    let mut command = Command::new(jdk().java());
    command.args(["-cp", &class_path, "Ends", "end"]).current_dir(scratch.path());
    let child = command.spawn().expect("java can be started");
    let named = scratch.join(&format!("Ends-{}.tare", child.id()));
    child.wait_with_output().expect("our own child");
    assert!(named.exists(), "no {}", named.display());
}

#[test]
fn bad_input_is_refused_with_a_remedy() {
    let scratch = Scratch::new();
    let app = text(&programs(&scratch));
    let file = |name: &str| text(&scratch.join(name));
    let run = |words: &[&str]| Tare::this().run(&[&["instrument"], words].concat());
    run(&[&file("nothing.jar"), "-o", &file("x.jar")]).fails(1, &["there is no", "nothing.jar"]);
    run(&[&app, "-o", &app]).fails(1, &["input and output"]);
    run(&[&app, "-o", &file("no/x.jar")]).fails(1, &["no directory", "create it"]);
    run(&[&app, "-o", &text(scratch.path())]).fails(1, &["name the file", "app.jar"]);
    run(&[&app, "-o", &file("tare-runtime.jar")]).fails(1, &["where the runtime goes"]);
    fs::create_dir(scratch.join("in")).expect("our own directory");
    run(&[&file("in"), "-o", &file("in")]).fails(1, &["input and output"]);
    fs::write(scratch.join("a.txt"), "text").expect("our own file");
    run(&[&file("a.txt"), "-o", &file("b.txt")]).fails(1, &["neither a class file nor a jar"]);
    fs::write(scratch.join("broken.jar"), b"PK\x03\x04 but not a jar").expect("our own file");
    run(&[&file("broken.jar"), "-o", &file("b.jar")]).fails(1, &["not a readable jar"]);
    assert!(!scratch.join("b.jar").exists());
    let list = fs::read_dir(scratch.path()).expect("our own directory");
    let names: Vec<String> = list.map(|e| text(&e.expect("an entry").path())).collect();
    assert!(!names.iter().any(|name| name.contains("part")), "{names:?}");
    fs::write(scratch.join("tare-runtime.jar"), "mine").expect("our own file");
    run(&[&app, "-o", &file("x.jar")]).fails(1, &["in the way"]);
    fs::remove_file(scratch.join("tare-runtime.jar")).expect("our own file");

    // Twice is once; nothing chosen is said.
    instrument(&[&app, "-o", &file("once.jar")]);
    let said = instrument(&[&file("once.jar"), "-o", &file("twice.jar")]);
    assert!(said.contains("instrumented already") && said.contains("no class was woven"), "{said}");
    let said = instrument(&[&app, "-o", &file("x.jar"), "--include", "com.acme.**"]);
    assert!(said.contains("none is chosen"), "{said}");
}
