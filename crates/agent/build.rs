//! Compiles the probe runtime, the Java classes that the agent brings into a JVM, and says how the
//! library is linked.

#[path = "build/javac.rs"]
mod javac;
#[path = "build/layout.rs"]
mod layout;
#[path = "build/link.rs"]
mod link;

use javac::sources;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    // From the package's directory, where cargo runs this: a target directory that is copied with
    // its tree must not look at the tree where it was made.
    let runtime = Path::new("../../runtime");
    let mut sources = sources(&runtime.join("java/lang"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    println!("cargo:rerun-if-changed={}", runtime.display());
    link::without_libc(&out);
    write_export(&out);
    let generated = out.join("TareLayout.java");
    fs::write(&generated, layout::java()).expect("the layout can be written");
    sources.push(generated);

    let classes = out.join("classes");
    let _ = fs::remove_dir_all(&classes);
    fs::create_dir_all(&classes).expect("a directory for the classes");
    // The classes live in java.lang, so they are compiled as a part of java.base.
    let patch = format!("java.base={}", runtime.display());
    javac::compile(
        &["-source", "17", "-target", "17", "--patch-module", &patch],
        &classes,
        &sources,
    );
    write_classes(&out, &classes);
}

/// A table of the compiled classes.
fn write_classes(out: &Path, classes: &Path) {
    let files = fs::read_dir(classes.join("java/lang")).expect("javac wrote classes");
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    let mut code = "const CLASSES: &[(&str, &[u8])] = &[\n".to_owned();
    for file in files {
        let name = file.file_stem().expect("a name").to_string_lossy();
        assert!(name.starts_with("Tare") && !name.contains('$'), "{name} cannot be renamed");
        code += &format!("    (\"java/lang/{name}\", include_bytes!({:?})),\n", file.display());
    }
    code += "];\n";
    fs::write(out.join("classes.rs"), code).expect("the table can be written");
}

/// The native methods of the runtime, under the names by which the JVM looks for them in classes
/// whose names carry the build. (Binding it by RegisterNatives would make the JVM print a warning.)
fn write_export(out: &Path) {
    let id = env::var("DEP_TARE_PROTOCOL_BUILD_ID").expect("from tare-protocol's build script");
    let code = format!(
        "#[unsafe(export_name = \"Java_java_lang_TareClock_1{id}_ticks\")]\n\
         extern \"system\" fn java_ticks(_: *mut c_void, _: *mut c_void) -> i64 {{\n    \
             super::clock::probe_clock().cast_signed()\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareTrace_1{id}_rest\")]\n\
         extern \"system\" fn java_rest(_: *mut c_void, _: *mut c_void) {{\n    \
             super::trace::rest();\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareTree_1{id}_more\")]\n\
         extern \"system\" fn java_more(\n    \
             _: *mut c_void, _: *mut c_void, base: i64, end: i64, rest: u8,\n\
         ) -> u8 {{\n    \
             gate::enter(0, || u8::from(super::memory::more(base, end, rest != 0)))\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareDiscovery_1{id}_first\")]\n\
         extern \"system\" fn java_first(jni: *mut JNIEnv, _: *mut c_void, id: i32) {{\n    \
             gate::enter((), || super::first(Jni(jni), id));\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareDiscovery_1{id}_reveal\")]\n\
         extern \"system\" fn java_reveal(\n    \
             jni: *mut JNIEnv, _: *mut c_void, member: jobject, wait: u8,\n\
         ) -> u8 {{\n    \
             gate::enter(0, || u8::from(super::revealed(Jni(jni), member, wait != 0)))\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareWatch_1{id}_made\")]\n\
         extern \"system\" fn java_made(\n    \
             jni: *mut JNIEnv, _: *mut c_void, object: jobject, node: i64, bytes: i64,\n\
         ) {{\n    \
             gate::enter((), || crate::alloc::made(Jni(jni), object, node, bytes));\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareParks_1{id}_replace\")]\n\
         extern \"system\" fn java_replace(jni: *mut JNIEnv, _: *mut c_void) {{\n    \
             gate::enter((), || crate::locks::parks::replace(Jni(jni)));\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareParks_1{id}_begin\")]\n\
         extern \"system\" fn java_begin(\n    \
             jni: *mut JNIEnv, _: *mut c_void, thread: i64, kind: i32, class: jclass,\n    \
             instance: i32, node: i32, queue: i32, owner: i64, handle: i64,\n\
         ) -> i64 {{\n    \
             let [instance, node, queue] = [instance, node, queue].map(i32::cast_unsigned);\n    \
             let [thread, owner, handle] = [thread, owner, handle].map(i64::cast_unsigned);\n    \
             let kind = u64::from(kind.cast_unsigned());\n    \
             let seen = crate::locks::parks::Seen {{\n        \
                 thread, kind, class, instance, node, queue, owner, handle,\n    \
             }};\n    \
             gate::enter(0, || crate::locks::parks::begin(Jni(jni), &seen))\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareParks_1{id}_end\")]\n\
         extern \"system\" fn java_end(_: *mut JNIEnv, _: *mut c_void, token: i64) {{\n    \
             let token = crate::locks::parks::Token::from_raw(token);\n    \
             gate::enter((), || crate::locks::parks::end(token));\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareParks_1{id}_submitted\")]\n\
         extern \"system\" fn java_submitted(\n    \
             jni: *mut JNIEnv, _: *mut c_void, executor: jclass, task: i32,\n\
         ) {{\n    \
             gate::enter((), || crate::locks::parks::submitted(Jni(jni), executor, task));\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareParks_1{id}_waitsForThread\")]\n\
         extern \"system\" fn java_waits(_: *mut JNIEnv, _: *mut c_void, task: i32) -> u8 {{\n    \
             gate::enter(0, || u8::from(crate::locks::parks::waits_for_thread(task)))\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareParks_1{id}_started\")]\n\
         extern \"system\" fn java_started(\n    \
             jni: *mut JNIEnv, _: *mut c_void, class: jclass, task: i32,\n\
         ) {{\n    \
             gate::enter((), || crate::locks::parks::started(Jni(jni), class, task));\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareHooks_1{id}_called\")]\n\
         extern \"system\" fn java_called(jni: *mut JNIEnv, _: *mut c_void, hook: i32) -> i64 {{\n    \
             gate::enter(0, || crate::hooks::called(Jni(jni), hook))\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareHooks_1{id}_returns\")]\n\
         extern \"system\" fn java_returns(_: *mut JNIEnv, _: *mut c_void, token: i64) {{\n    \
             gate::enter((), || crate::hooks::returns(token));\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareAgents_1{id}_name\")]\n\
         extern \"system\" fn java_name(jni: *mut JNIEnv, _: *mut c_void, id: i32) -> jobject {{\n    \
             gate::enter(std::ptr::null_mut(), || super::agents::name(Jni(jni), id))\n\
         }}\n\
         #[unsafe(export_name = \"Java_java_lang_TareAgents_1{id}_failed\")]\n\
         extern \"system\" fn java_failed(jni: *mut JNIEnv, _: *mut c_void, reason: jobject) {{\n    \
             gate::enter((), || super::agents::failed(Jni(jni), reason));\n\
         }}\n"
    );
    fs::write(out.join("export.rs"), code).expect("the export can be written");
}
