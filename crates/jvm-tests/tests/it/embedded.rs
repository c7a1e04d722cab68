//! JVMs that no `java` command started: a C program that makes one, and one that merely has the
//! library in its memory.

use crate::common::assert_no_trace;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, on_each_jdk, skip};

/// Makes a JVM and calls `Idle.main`.
const EMBEDDER: &str = r#"
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    char path[4096];
    snprintf(path, sizeof path, "-Djava.class.path=%s", argv[1]);
    JavaVMOption options[] = {{path, NULL}, {"-Xmx64m", NULL}, {"-Xcheck:jni", NULL}};
    JavaVMInitArgs args = {JNI_VERSION_10, 3, options, JNI_FALSE};
    JavaVM *vm;
    JNIEnv *env;
    if (JNI_CreateJavaVM(&vm, (void **)&env, &args) != JNI_OK) return 1;
    jclass idle = (*env)->FindClass(env, "Idle");
    if (idle == NULL) return 2;
    jmethodID run = (*env)->GetStaticMethodID(env, idle, "main", "([Ljava/lang/String;)V");
    if (run == NULL) return 2;
    jclass string = (*env)->FindClass(env, "java/lang/String");
    if (string == NULL) return 2;
    jobjectArray none = (*env)->NewObjectArray(env, 0, string, NULL);
    if (none == NULL) return 2;
    (*env)->CallStaticVoidMethod(env, idle, run, none);
    if ((*env)->ExceptionCheck(env)) return 3;
    (*vm)->DestroyJavaVM(vm);
    return 0;
}
"#;

/// Has libjvm in its memory and no JVM: SIGQUIT would kill it.
const HOLDER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (dlopen(argv[1], RTLD_NOW) == NULL) { puts(dlerror()); return 1; }
    puts("ready");
    fflush(stdout);
    char c;
    while (read(0, &c, 1) > 0) { }
    return 0;
}
"#;

/// Compiles a C program against a JDK; `None`, said loudly, where that cannot be done.
fn compile(jdk: &Jdk, scratch: &Scratch, name: &str, source: &str) -> Option<PathBuf> {
    let include = jdk.home.join("include");
    if !include.join("jni.h").is_file() {
        skip(&format!("an embedded JVM of Java {}", jdk.major), "this runtime has no jni.h");
        return None;
    }
    let (file, program) = (scratch.join(&format!("{name}.c")), scratch.join(name));
    fs::write(&file, source).unwrap();
    let server = jdk.home.join("lib/server");
    let output = Command::new("cc")
        .arg("-o")
        .arg(&program)
        .arg(&file)
        .arg(format!("-I{}", include.display()))
        .arg(format!("-I{}/linux", include.display()))
        .arg(format!("-L{}", server.display()))
        .arg(format!("-Wl,-rpath,{}", server.display()))
        .args(["-ljvm", "-ldl"])
        .output()
        .expect("cc, which cargo needs too");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

on_each_jdk! {
    fn a_jvm_inside_a_c_program(jdk) {
        let scratch = Scratch::new();
        let Some(program) = compile(jdk, &scratch, "embedder", EMBEDDER) else { return };
        let mut command = Command::new(program);
        command.arg(classes());
        let mut target = Target::spawn(command);
        target.wait_for("ready");
        let (pid, name) = (target.pid(), target.name());
        let entry = Tare::this().listed(pid).expect("listed");
        assert!(entry["jdk"].as_str().unwrap().starts_with(&jdk.major.to_string()), "{entry}");
        assert_eq!(Tare::this().status(&name)["loaded_by"], "attach");
        target.check_works();
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(pid);
        target.check_works();
        target.finish();
    }

    fn a_library_without_a_jvm(jdk) {
        let scratch = Scratch::new();
        let Some(program) = compile(jdk, &scratch, "holder", HOLDER) else { return };
        let mut command = Command::new(program);
        command.arg(jdk.home.join("lib/server/libjvm.so"));
        let mut target = Target::spawn(command);
        target.wait_for("ready");
        for _ in 0..3 {
            let outcome = Tare::this().run(&["status", &target.name(), "--timeout", "2s"]);
            outcome.fails(1, &[&target.name()]);
            assert!(target.is_alive(), "a signal killed it");
        }
        target.finish();
    }
}
