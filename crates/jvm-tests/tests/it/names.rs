//! JVMs are listed with what a person needs to tell them apart, and can be named by a part of their
//! main class or jar.

use std::process::Command;
use tare_jvm_tests::{Scratch, Tare, Target, classes_in, env, jdk, on_each_jdk};

/// A class of a name that nothing else on this machine has, which does what `Idle` does.
fn class_of_its_own(scratch: &Scratch, name: &str) {
    let source = format!(
        "public class {name} {{
            public static void main(String[] args) throws Exception {{
                System.out.println(\"ready\");
                while (System.in.read() >= 0) {{ }}
            }}
        }}"
    );
    classes_in(scratch.path(), name, &source);
}

on_each_jdk! {
    fn listed(jdk) {
        let target = Target::idle(jdk).arg("some").arg("words").start();
        let tare = Tare::this();
        let entry = tare.listed(target.pid()).expect("listed");
        assert_eq!(entry["main"], "Idle");
        assert!(entry["jdk"].as_str().unwrap().starts_with(&jdk.major.to_string()), "{entry}");
        let whoami = Command::new("id").arg("-un").output().unwrap().stdout;
        assert_eq!(entry["user"], String::from_utf8(whoami).unwrap().trim());
        assert_eq!(entry["agent"], "none");
        assert!(entry["uptime_ms"].as_u64().is_some_and(|ms| ms < 600_000), "{entry}");

        let table = tare.run(&["ps"]).ok().to_owned();
        let row = table.lines().find(|line| line.contains(&target.name())).expect("a row");
        assert!(row.contains("Idle"), "{row}");
        let alone = tare.run::<&str>(&[]).ok().to_owned();
        assert!(alone.contains(&target.name()) && alone.contains("Try next"), "{alone}");
        target.finish();
    }

    /// Without the file that a JVM leaves for its friends.
    fn listed_without_perf_data(jdk) {
        let mut target = Target::idle(jdk).vm("-XX:-UsePerfData").start();
        let entry = Tare::this().listed(target.pid()).expect("listed");
        assert_eq!(entry["main"], "Idle");
        assert!(entry["jdk"].as_str().unwrap().starts_with(&jdk.major.to_string()), "{entry}");
        assert_eq!(Tare::this().status(&target.name())["loaded_by"], "attach");
        target.check_works();
        target.finish();
    }
}

#[test]
fn by_a_part_of_the_main_class() {
    let scratch = Scratch::new();
    let name = format!("Solitaire{}", std::process::id());
    class_of_its_own(&scratch, &name);
    let start = || Target::idle(jdk()).class_path(scratch.path()).main(&name).start();
    let tare = Tare::this();

    let one = start();
    for part in [name.as_str(), &name.to_lowercase()[2..]] {
        assert_eq!(tare.status(part)["jvm"]["pid"], one.pid(), "by {part}");
    }
    tare.run(&["detach", &name[1..]]).ok();

    let two = start();
    for verb in ["status", "detach", "doctor"] {
        let outcome = tare.run(&[verb, &name]);
        outcome.fails(1, &[&name, "2 JVMs", &one.name(), &two.name()]);
    }
    let gone = one.pid();
    one.finish();
    assert_eq!(tare.status(&name)["jvm"]["pid"], two.pid());
    two.finish();
    tare.run(&["status", &name]).fails(1, &[&name]);
    tare.run(&["status", &gone.to_string()]).fails(1, &["no process"]);
}

#[test]
fn by_a_jar() {
    let scratch = Scratch::new();
    let name = format!("Patience{}", std::process::id());
    class_of_its_own(&scratch, &name);
    let jar = scratch.join(&format!("{}.jar", name.to_lowercase()));
    let made = Command::new(env().javac.home.join("bin/jar"))
        .arg("--create")
        .arg("--file")
        .arg(&jar)
        .args(["--main-class", &name, "-C"])
        .arg(scratch.path())
        .arg(format!("{name}.class"))
        .output();
    match made {
        Ok(output) if output.status.success() => {}
        _ => return tare_jvm_tests::skip("a JVM named by its jar", "there is no jar tool"),
    }
    let target = Target::jar(jdk(), &jar).start();
    let entry = Tare::this().listed(target.pid()).expect("listed");
    assert!(entry["main"].as_str().unwrap().ends_with(".jar"), "{entry}");
    assert_eq!(Tare::this().status(&name.to_lowercase())["jvm"]["pid"], target.pid());
    target.finish();
}
