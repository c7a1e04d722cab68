//! JVMs that Tare does not work with are named, not tried: OpenJ9, and HotSpot on musl libc if the
//! agent is linked with glibc.
//!
//! Neither is at hand in a test run, so a process stands in that has what they are told by: a
//! library of that name in its memory. It has no handler for SIGQUIT and would not survive one.

use std::fs;
use std::path::Path;
use std::process::Command;
use tare_jvm_tests::{Scratch, Tare, Target};

const HOLDER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (dlopen(argv[i], RTLD_NOW) == NULL) { puts(dlerror()); return 1; }
    puts("ready");
    fflush(stdout);
    char c;
    while (read(0, &c, 1) > 0) { }
    return 0;
}
"#;

fn cc(words: &[&Path], more: &[&str]) {
    let output = Command::new("cc").args(more).arg("-o").args(words).output();
    let output = output.expect("cc, which cargo needs too");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refused(tare: &Tare, libraries: &[&str], parts: &[&str]) {
    let scratch = Scratch::new();
    let (source, program) = (scratch.join("holder.c"), scratch.join("java"));
    fs::write(&source, HOLDER).unwrap();
    cc(&[&program, &source], &["-ldl"]);
    let empty = scratch.join("empty.c");
    fs::write(&empty, "int nothing(void) { return 0; }\n").unwrap();
    let mut command = Command::new(&program);
    for library in libraries {
        let library = scratch.join(library);
        cc(&[&library, &empty], &["-shared", "-fPIC"]);
        command.arg(library);
    }
    let mut target = Target::spawn(command);
    target.wait_for("ready");
    let outcome = tare.run(&["status", &target.name(), "--timeout", "2s"]);
    outcome.fails(1, parts);
    assert!(target.is_alive(), "a signal killed it");
    target.finish();
}

#[test]
fn openj9() {
    refused(&Tare::this(), &["libjvm.so", "libj9vm29.so"], &["OpenJ9", "HotSpot"]);
    refused(&Tare::this(), &["libj9vm29.so"], &["OpenJ9", "HotSpot"]);
}

#[test]
fn musl() {
    let scratch = Scratch::new();
    let version = Tare::this().run(&["--version"]);
    let build =
        version.ok().split("(build ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    let (source, agent) = (scratch.join("agent.c"), scratch.join("agent.so"));
    let code =
        format!("#include <stdio.h>\nvoid f(void) {{ puts(\"tare-build-id:{build};\"); }}\n");
    fs::write(&source, code).unwrap();
    cc(&[&agent, &source], &["-shared", "-fPIC"]);
    let tare = Tare::this().var("TARE_AGENT_LIBRARY", agent.to_str().unwrap());
    refused(&tare, &["ld-musl-x86_64.so.1", "libjvm.so"], &["musl", "glibc"]);
}
