//! What one JVM allows: its version, its flags, the capabilities that it grants now.

use super::Check;
use crate::commands::list::is_hotspot;
use crate::commands::status;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tare_attach::Jvm;
use tare_protocol::Status;
use tare_session::agents::{leave, wait_for_threads};
use tare_session::client::{self, Found};
use tare_session::exact::vm;

/// Versions that the tests run on.
const TESTED: [u32; 3] = [17, 21, 25];

pub fn checks(jvm: &Jvm, attach: bool, patience: Duration) -> Vec<Check> {
    if !jvm.details {
        return closed(jvm);
    }
    let mut out = vec![version(jvm), namespaces(jvm)];
    if !is_hotspot(jvm) {
        return out;
    }
    out.push(system_calls(jvm));
    if !attach {
        out.push(Check::limited("attach", "not tried (--no-attach); what follows needs it"));
        return out;
    }
    match ask(jvm, patience) {
        Ok(status) => {
            out.push(Check::works("attach", "the agent loads, answers and leaves"));
            out.extend(warning(jvm));
            out.extend(capabilities(jvm, &status));
        }
        Err(e) => out.push(Check::no("attach", format!("{e:#}"))),
    }
    match Flags::ask(jvm, patience) {
        Ok(flags) => out.extend(flags.checks()),
        Err(e) => out.push(Check::limited("flags", format!("the JVM does not tell them: {e}"))),
    }
    out
}

/// A JVM that does not let us look into it, as one of another user: what is known all the same, and
/// who can tell the rest.
fn closed(jvm: &Jvm) -> Vec<Check> {
    let (user, own) = (jvm.user_name(), rustix::process::geteuid().as_raw());
    let why = format!(
        "cannot be known as uid {own}: the JVM belongs to {user} and lets nobody else look"
    );
    let remedy = match jvm.uid == own {
        true => format!("run `sudo tare doctor {}`", jvm.pid),
        false => format!("run `sudo tare doctor {0}`, or `tare doctor {0}` as {user}", jvm.pid),
    };
    let unknown = |name| Check::unknown(name, why.as_str()).remedy(remedy.as_str());
    vec![unknown("JVM"), unknown("place"), system_calls(jvm), unknown("attach")]
}

fn version(jvm: &Jvm) -> Check {
    let name = "JVM";
    let Some(text) = &jvm.java_version else {
        return Check::limited(name, format!("{} of unknown version", vm(jvm)));
    };
    let finding = format!("{}, Java {text}", vm(jvm));
    if !is_hotspot(jvm) {
        return Check::no(name, format!("{finding} is not supported: Tare speaks to HotSpot only"))
            .remedy("run the program on an OpenJDK build with HotSpot");
    }
    match jvm.feature() {
        Some(f) if TESTED.contains(&f) => Check::works(name, finding),
        Some(f) if f < 11 => {
            Check::no(name, format!("{finding} is older than 11, the oldest that works"))
        }
        Some(_) => Check::limited(
            name,
            format!("{finding}: should work, but only 17, 21 and 25 are tested"),
        ),
        None => Check::limited(name, finding),
    }
}

fn namespaces(jvm: &Jvm) -> Check {
    let name = "place";
    if jvm.in_container {
        Check::works(name, format!("in a container, as pid {} there", jvm.ns_pid))
    } else {
        Check::works(name, "in our own namespaces")
    }
}

/// What the machine's checks found is true of `tare`; a JVM may be under a filter of its own.
fn system_calls(jvm: &Jvm) -> Check {
    let name = "system calls";
    if !jvm.is_filtered() {
        let whose = match jvm.uid == rustix::process::geteuid().as_raw() {
            true => "as this machine allows them".to_owned(),
            // What was tried above, was tried by us.
            false => format!("as this machine allows them to {}", jvm.user_name()),
        };
        return Check::works(name, format!("not filtered: perf events {whose}"));
    }
    Check::limited(
        name,
        "filtered (seccomp): sampling takes timers and does not try perf events, for which \
         a filter may end the JVM",
    )
    .remedy("where the filter is known to permit perf_event_open: `--engine perf-clock`")
}

/// The agent's own view. An agent that was not there before is not there afterwards.
fn ask(jvm: &Jvm, patience: Duration) -> anyhow::Result<Status> {
    let was_there = matches!(client::find(jvm, patience)?, Found::Ours(_));
    let mut agent = status::enter_quietly(jvm, patience)?;
    let answer = agent.status();
    if !was_there {
        let never = AtomicBool::new(false);
        if leave(&mut agent, jvm, &never)? {
            wait_for_threads(jvm, patience, &never)?;
        }
    }
    Ok(answer?)
}

fn warning(jvm: &Jvm) -> Option<Check> {
    let modern = jvm.feature().is_some_and(|f| f >= 21);
    modern.then(|| {
        Check::limited(
            "attach warning",
            "JDK 21 and newer print a warning in the program's output when an agent attaches",
        )
        .remedy("harmless; -XX:+EnableDynamicAgentLoading or `tare run -- java …` avoids it")
    })
}

/// What commands need of the JVM, under a name: capabilities, and what for.
const NEEDS: [(&str, &[&str], &str); 8] = [
    (
        "change code",
        &[
            "can_retransform_classes",
            "can_tag_objects",
            "can_get_constant_pool",
            "can_get_bytecodes",
        ],
        "exact profiles and traces",
    ),
    (
        "see classes load",
        &["can_generate_all_class_hook_events"],
        "exact profiles of classes that are loaded later",
    ),
    (
        "monitors",
        &["can_generate_monitor_events"],
        "exact times without waits for threads that weaving held up",
    ),
    (
        "see the JIT",
        &["can_generate_compiled_method_load_events"],
        "compilations in traces and in `tare status JVM --watch`",
    ),
    (
        "collections",
        &["can_generate_garbage_collection_events"],
        "collections in `tare status JVM --watch`",
    ),
    ("CPU clocks", &["can_get_thread_cpu_time"], "processor time of threads"),
    ("lines", &["can_get_line_numbers", "can_get_source_file_name"], "source lines of samples"),
    ("virtual threads", &["can_support_virtual_threads"], "exact profiles of virtual threads"),
];

/// Which of it the JVM grants.
fn capabilities(jvm: &Jvm, status: &Status) -> Vec<Check> {
    let has =
        |name: &str| status.capabilities.iter().chain(&status.capabilities_held).any(|c| c == name);
    let modern = jvm.feature().is_some_and(|f| f >= 21);
    NEEDS
        .iter()
        .filter(|(name, ..)| modern || *name != "virtual threads")
        .map(|(name, needed, what)| {
            let missing: Vec<&str> = needed.iter().copied().filter(|n| !has(n)).collect();
            if missing.is_empty() {
                Check::works(name, *what)
            } else {
                Check::no(name, format!("{what}: not granted now: {}", missing.join(", ")))
                    .remedy("another agent may hold it; `tare run -- java …` asks for it first")
            }
        })
        .collect()
}

/// The JVM's flags, as it tells them over the attach protocol.
struct Flags {
    values: HashMap<String, String>,
    arguments: String,
}

impl Flags {
    fn ask(jvm: &Jvm, patience: Duration) -> Result<Self, tare_attach::Error> {
        let text = tare_attach::jcmd(jvm, "jcmd", "VM.flags -all", patience)?;
        let arguments = tare_attach::jcmd(jvm, "jcmd", "VM.command_line", patience)?;
        Ok(Flags { values: parse_flags(&text), arguments })
    }

    fn is(&self, flag: &str, value: &str) -> bool {
        self.values.get(flag).is_some_and(|v| v == value)
    }

    fn given(&self, text: &str) -> bool {
        self.arguments.lines().filter(|l| l.starts_with("jvm_args:")).any(|l| l.contains(text))
    }

    /// Whether the JVM writes an archive of its classes at its end and would not survive that after
    /// an exact recording. Before JDK 21 a flag of its own says so; later ones make archives of the
    /// kind in question only as AOT caches.
    fn archives(&self) -> bool {
        let output = self.values.get("AOTCacheOutput").is_some_and(|file| !file.starts_with('{'));
        self.is("DynamicDumpSharedSpaces", "true") || self.is("AOTMode", "record") || output
    }

    fn checks(&self) -> Vec<Check> {
        let mut out = Vec::new();
        if self.archives() {
            out.push(
                Check::no(
                    "exact profiles",
                    "refused: the JVM makes an archive of its classes, and would crash over changed ones",
                )
                .remedy("leave out -XX:ArchiveClassesAtExit, -XX:AOTMode=record or -XX:AOTCacheOutput"),
            );
        }
        if self.given("+DebugNonSafepoints") || self.is("DebugNonSafepoints", "true") {
            out.push(Check::works(
                "debug information",
                "DebugNonSafepoints is on: inlined frames are exact",
            ));
        } else {
            out.push(
                Check::limited(
                    "debug information",
                    "DebugNonSafepoints is off: samples in inlined methods may land on a caller, and \
                     lines on the nearest call",
                )
                .remedy(
                    "start with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints, as `tare record \
                     -- java …` does; it cannot be switched on later",
                ),
            );
        }
        if self.is("UseInterpreter", "true") && self.given("-Xint") {
            out.push(Check::limited("compiler", "-Xint: nothing is compiled; times say little"));
        } else if self.is("TieredStopAtLevel", "4")
            || !self.values.contains_key("TieredStopAtLevel")
        {
            out.push(Check::works("compiler", "all tiers"));
        } else {
            let level = &self.values["TieredStopAtLevel"];
            out.push(Check::limited(
                "compiler",
                format!("TieredStopAtLevel={level}: not the fastest code"),
            ));
        }
        out
    }
}

/// Lines such as `     bool UsePerfData      = true     {product} {default}`.
fn parse_flags(text: &str) -> HashMap<String, String> {
    text.lines()
        .filter_map(|line| {
            let (left, right) = line.split_once('=')?;
            let name = left.trim_end().trim_end_matches(':').split_whitespace().nth(1)?;
            Some((name.to_owned(), right.split_whitespace().next().unwrap_or("").to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_the_jvm_prints_them() {
        let text = "[Global flags]\n     bool UsePerfData   = true   {product} {default}\n\
                    ccstr Name  =        {product} {default}\n   uintx X  := 5 {product} {command line}\n";
        let flags = parse_flags(text);
        assert_eq!(flags["UsePerfData"], "true");
        assert_eq!(flags["Name"], "{product}");
        assert_eq!(flags["X"], "5");
    }

    /// A claim about what no command uses would be read as a promise.
    #[test]
    fn only_what_the_agent_asks_for_is_told() {
        let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/../agent/src");
        let mut code = String::new();
        let mut folders = vec![std::path::PathBuf::from(agent)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => code += &std::fs::read_to_string(entry.path()).unwrap_or_default(),
                }
            }
        }
        for (name, needed, _) in NEEDS {
            for capability in needed {
                assert!(code.contains(&format!(".set_{capability}(")), "{name}: {capability}");
            }
        }
    }

    #[test]
    fn archives_that_changed_classes_would_spoil_are_known() {
        let archives = |line: &str| {
            let values = parse_flags(&format!("{line} {{product}} {{command line}}\n"));
            Flags { values, arguments: String::new() }.archives()
        };
        assert!(archives(" bool DynamicDumpSharedSpaces = true"));
        assert!(archives(" ccstr AOTMode = record"));
        assert!(archives(" ccstr AOTCacheOutput = x.aot"));
        assert!(!archives(" ccstr AOTCacheOutput = "));
        assert!(!archives(" ccstr AOTMode = on"));
    }
}
