//! Who may depend on whom: the table, and its comparison with cargo's metadata.
//!
//! Dependencies point downwards only. What runs inside a JVM and what runs outside share nothing
//! but the protocol, so that the agent stays small and can be reasoned about.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The file whose `AGENT_SOURCES` must name every crate that ends up in the agent.
pub const AGENT_SOURCES_FILE: &str = "crates/protocol/build.rs";

struct Rule {
    package: &'static str,
    /// Packages of ours that it may use, in its tests too.
    ours: &'static [&'static str],
    /// Packages of others that it may link; `None` leaves the choice to its author.
    others: Option<&'static [&'static str]>,
}

const RULES: &[Rule] = &[
    Rule { package: "tare-java-names", ours: &[], others: Some(&[]) },
    Rule { package: "tare-perf-events", ours: &[], others: Some(&["libc"]) },
    Rule { package: "tare-protocol", ours: &["tare-java-names"], others: Some(&[]) },
    Rule { package: "tare-classfile", ours: &[], others: Some(&[]) },
    Rule {
        package: "tare-weaver",
        ours: &["tare-classfile", "tare-java-names"],
        others: Some(&[]),
    },
    Rule { package: "tare-callgraph", ours: &["tare-classfile"], others: Some(&[]) },
    Rule { package: "tare-arena", ours: &[], others: Some(&[]) },
    Rule { package: "tare-unwind", ours: &[], others: Some(&["libc"]) },
    // Everything here ends up in somebody's production JVM.
    Rule {
        package: "tare-agent",
        ours: &[
            "tare-arena",
            "tare-callgraph",
            "tare-classfile",
            "tare-java-names",
            "tare-perf-events",
            "tare-protocol",
            "tare-unwind",
            "tare-weaver",
        ],
        others: Some(&["jvmti-bindings", "libc"]),
    },
    Rule { package: "tare-attach", ours: &["tare-protocol"], others: Some(&["rustix"]) },
    Rule {
        package: "tare-offline",
        ours: &["tare-classfile", "tare-java-names", "tare-weaver"],
        others: Some(&["zip"]),
    },
    // Data and computation, without files or JVMs.
    Rule { package: "tare-profile", ours: &[], others: Some(&[]) },
    Rule {
        package: "tare-analysis",
        ours: &["tare-java-names", "tare-profile"],
        others: Some(&[]),
    },
    Rule { package: "tare-symbols", ours: &["tare-unwind"], others: None },
    Rule { package: "tare-recording", ours: &["tare-profile"], others: None },
    Rule { package: "tare-formats", ours: &["tare-java-names", "tare-profile"], others: None },
    Rule {
        package: "tare-heapdump",
        ours: &["tare-java-names"],
        others: Some(&["flate2", "serde", "serde_json"]),
    },
    // Every front end sits on it: it knows no flags, prints nothing, and its errors can be matched.
    Rule {
        package: "tare-session",
        ours: &[
            "tare-analysis",
            "tare-arena",
            "tare-attach",
            "tare-classfile",
            "tare-heapdump",
            "tare-java-names",
            "tare-perf-events",
            "tare-profile",
            "tare-protocol",
            "tare-recording",
            "tare-symbols",
        ],
        others: Some(&["libc", "rustix", "signal-hook", "zip"]),
    },
    // It serves whatever it is given, and touches no file and no JVM.
    Rule {
        package: "tare-view",
        ours: &["tare-analysis", "tare-java-names", "tare-profile"],
        others: Some(&["httparse", "serde_json"]),
    },
    // It makes pictures of what it is given, and knows neither terminals nor JVMs.
    Rule {
        package: "tare-top",
        ours: &["tare-analysis", "tare-profile"],
        others: Some(&["ratatui-core"]),
    },
    // Bytes and words of a connection that somebody else makes: it starts nothing and waits for nobody.
    Rule { package: "tare-relay", ours: &["tare-protocol"], others: Some(&[]) },
    // A browser for tests and pictures knows nothing of what it shows.
    Rule { package: "tare-browser", ours: &[], others: Some(&["anyhow", "serde_json"]) },
    Rule {
        package: "tare-cli",
        ours: &[
            "tare-analysis",
            "tare-arena",
            "tare-attach",
            "tare-browser",
            "tare-classfile",
            "tare-formats",
            "tare-heapdump",
            "tare-java-names",
            "tare-offline",
            "tare-profile",
            "tare-protocol",
            "tare-recording",
            "tare-relay",
            "tare-session",
            "tare-symbols",
            "tare-top",
            "tare-view",
        ],
        others: None,
    },
    // A witness shares nothing with what it testifies about.
    Rule { package: "tare-step-counter", ours: &[], others: Some(&["jvmti-bindings"]) },
    Rule { package: "tare-test-natives", ours: &[], others: Some(&["jvmti-bindings"]) },
    // It calls whatever reads bytes of others.
    Rule {
        package: "tare-fuzz-targets",
        ours: &[
            "tare-arena",
            "tare-attach",
            "tare-classfile",
            "tare-formats",
            "tare-heapdump",
            "tare-offline",
            "tare-profile",
            "tare-protocol",
            "tare-recording",
            "tare-session",
            "tare-symbols",
            "tare-unwind",
            "tare-view",
        ],
        others: Some(&["flate2", "lz4_flex", "rustix", "serde_json", "zip"]),
    },
    // These must build quickly on a fresh machine, before anything else.
    Rule {
        package: "tare-toolbox",
        ours: &["tare-browser"],
        others: Some(&["anyhow", "serde_json"]),
    },
    Rule {
        package: "tare-xtask",
        ours: &["tare-browser", "tare-toolbox"],
        others: Some(&["anyhow", "serde_json"]),
    },
    // It knows Tare by its commands, as a user does.
    Rule {
        package: "tare-bench",
        ours: &["tare-toolbox"],
        others: Some(&["anyhow", "serde_json"]),
    },
    // It knows Tare as a user does: by its binaries, its protocol, what travels along with that,
    // and its recordings.
    Rule {
        package: "tare-jvm-tests",
        ours: &[
            "tare-arena",
            "tare-browser",
            "tare-heapdump",
            "tare-profile",
            "tare-protocol",
            "tare-recording",
        ],
        others: None,
    },
];

/// A package of the workspace.
pub struct Package {
    name: String,
    /// Its directory, relative to the workspace.
    directory: String,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    ours: bool,
    /// Used by tests, examples and benchmarks only.
    dev: bool,
}

pub fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let root = metadata["workspace_root"].as_str().context("metadata without workspace_root")?;
    let list = metadata["packages"].as_array().context("metadata without packages")?;
    list.iter().map(|package| read_package(package, root)).collect()
}

fn read_package(package: &Value, root: &str) -> Result<Package> {
    let text = |value: &Value, key: &str| {
        value[key].as_str().map(str::to_owned).with_context(|| format!("metadata without {key}"))
    };
    let manifest = text(package, "manifest_path")?;
    let directory = manifest
        .strip_prefix(root)
        .and_then(|path| path.strip_suffix("/Cargo.toml"))
        .map(|path| path.trim_start_matches('/').to_owned())
        .with_context(|| format!("{manifest} is not in the workspace"))?;
    let dependencies =
        package["dependencies"].as_array().context("metadata without dependencies")?;
    let dependencies = dependencies
        .iter()
        .map(|dependency| {
            Ok(Dependency {
                name: text(dependency, "name")?,
                ours: !dependency["path"].is_null(),
                dev: dependency["kind"] == "dev",
            })
        })
        .collect::<Result<_>>()?;
    Ok(Package { name: text(package, "name")?, directory, dependencies })
}

/// The parser of command lines, and who has one.
const FLAGS: &str = "clap";
const HAS_FLAGS: &str = "tare-cli";

pub fn check(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in packages {
        let name = &package.name;
        let Some(rule) = RULES.iter().find(|rule| rule.package == name) else {
            problems.push(format!(
                "package {name} is not in the table of allowed dependencies (xtask, tidy/layers.rs)"
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let other = &dependency.name;
            if dependency.ours && !rule.ours.contains(&other.as_str()) {
                problems.push(format!("{name} must not depend on {other}"));
            }
            let free = name == HAS_FLAGS || other != FLAGS;
            let allowed = rule.others.map_or(free, |others| others.contains(&other.as_str()));
            if !dependency.ours && !dependency.dev && !allowed {
                problems.push(format!("{name} must not link the outside package {other}"));
            }
        }
    }
    problems
}

/// Compares the list from which the build id is made with what the agent is made of.
pub fn check_agent_sources(packages: &[Package], build_script: &str) -> Vec<String> {
    let Some(listed) = listed_sources(build_script) else {
        return vec![format!("{AGENT_SOURCES_FILE} has no readable AGENT_SOURCES")];
    };
    // The probe runtime is Java, which cargo does not know.
    let mut needed = BTreeSet::from(["Cargo.lock", "runtime"].map(str::to_owned));
    needed.extend(closure(packages, "tare-agent"));
    let missing = needed.difference(&listed).map(|path| {
        format!("{AGENT_SOURCES_FILE}: AGENT_SOURCES lacks {path}, which is part of the agent")
    });
    let idle = listed.difference(&needed).map(|path| {
        format!("{AGENT_SOURCES_FILE}: AGENT_SOURCES names {path}, which is not part of the agent")
    });
    missing.chain(idle).collect()
}

/// The directories of a package and of everything of ours that it links.
fn closure(packages: &[Package], root: &str) -> BTreeSet<String> {
    let by_name: BTreeMap<&str, &Package> =
        packages.iter().map(|package| (package.name.as_str(), package)).collect();
    let mut waiting = vec![root];
    let mut directories = BTreeSet::new();
    while let Some(package) = waiting.pop().and_then(|name| by_name.get(name)) {
        if directories.insert(package.directory.clone()) {
            let linked = package.dependencies.iter().filter(|d| d.ours && !d.dev);
            waiting.extend(linked.map(|d| d.name.as_str()));
        }
    }
    directories
}

fn listed_sources(build_script: &str) -> Option<BTreeSet<String>> {
    let (_, rest) = build_script.split_once("const AGENT_SOURCES")?;
    let (_, rest) = rest.split_once("= &[")?;
    let (list, _) = rest.split_once(']')?;
    let quoted = list.split('"').skip(1).step_by(2);
    Some(quoted.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package from `name: dependency dependency`, where `~` marks a dev-dependency.
    fn package(text: &str) -> Package {
        let (name, dependencies) = text.split_once(':').unwrap();
        let dependencies = dependencies
            .split_whitespace()
            .map(|word| {
                let name = word.trim_start_matches('~').to_owned();
                Dependency { ours: name.starts_with("tare-"), dev: word.starts_with('~'), name }
            })
            .collect();
        let directory = format!("crates/{}", name.trim_start_matches("tare-"));
        Package { name: name.to_owned(), directory, dependencies }
    }

    fn problems(text: &str) -> Vec<String> {
        check(&[package(text)])
    }

    #[test]
    fn allowed_dependencies_pass() {
        for text in [
            "tare-agent: tare-protocol jvmti-bindings libc ~anyhow",
            "tare-cli: tare-attach clap anything",
            "tare-weaver: tare-classfile",
        ] {
            assert_eq!(problems(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn forbidden_dependencies_are_named() {
        for (text, expected) in [
            ("tare-agent: tare-attach", "tare-agent must not depend on tare-attach"),
            ("tare-cli: tare-agent", "tare-cli must not depend on tare-agent"),
            ("tare-attach: ~tare-agent", "tare-attach must not depend on tare-agent"),
            ("tare-protocol: tare-classfile", "tare-protocol must not depend on tare-classfile"),
            ("tare-formats: clap", "tare-formats must not link the outside package clap"),
            ("tare-session: clap", "tare-session must not link the outside package clap"),
            ("tare-session: anyhow", "tare-session must not link the outside package anyhow"),
            ("tare-session: tare-formats", "tare-session must not depend on tare-formats"),
            ("tare-agent: serde", "tare-agent must not link the outside package serde"),
            ("tare-classfile: libc", "tare-classfile must not link the outside package libc"),
        ] {
            assert_eq!(problems(text), [expected], "{text}");
        }
        assert!(problems("tare-new:")[0].contains("tare-new is not in the table"));
    }

    #[test]
    fn the_table_itself_points_downwards() {
        let mut below: BTreeSet<&str> = BTreeSet::new();
        for rule in RULES {
            for name in rule.ours {
                assert!(
                    below.contains(name),
                    "{} uses {name}, which stands above it",
                    rule.package
                );
            }
            below.insert(rule.package);
        }
    }

    #[test]
    fn agent_sources_must_be_exactly_the_agents_crates() {
        let packages = [
            package("tare-agent: tare-weaver libc ~tare-attach"),
            package("tare-weaver: tare-classfile"),
            package("tare-classfile:"),
            package("tare-attach:"),
        ];
        let script = |list: &str| format!("x\nconst AGENT_SOURCES: &[&str] = &[{list}];\ny");
        let right = "\"crates/agent\", \"crates/weaver\",\n \"crates/classfile\", \"Cargo.lock\", \"runtime\"";
        assert_eq!(check_agent_sources(&packages, &script(right)), [""; 0]);
        let wrong = script("\"crates/agent\", \"crates/attach\", \"crates/weaver\"");
        let found = check_agent_sources(&packages, &wrong).join("\n");
        for part in ["lacks Cargo.lock", "lacks crates/classfile", "names crates/attach"] {
            assert!(found.contains(part), "{part} is not in\n{found}");
        }
        assert!(check_agent_sources(&packages, "nothing")[0].contains("no readable"));
    }

    #[test]
    fn cargos_metadata_is_understood() {
        let metadata = serde_json::json!({
            "workspace_root": "/w",
            "packages": [{
                "name": "tare-agent",
                "manifest_path": "/w/crates/agent/Cargo.toml",
                "dependencies": [
                    { "name": "tare-attach", "path": "/w/crates/attach", "kind": null },
                    { "name": "serde", "path": null, "kind": "build" },
                    { "name": "anyhow", "kind": "dev" },
                ],
            }],
        });
        let packages = packages(&metadata).unwrap();
        assert_eq!(packages[0].directory, "crates/agent");
        let found = check(&packages);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
