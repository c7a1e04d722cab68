//! The runtime that needs no agent: its jar, and the probes that call it. What it does is told in
//! `runtime-portable/`; how a program is woven for it, in the other files.

use crate::kernels::{Mix, mixes};
use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};
use tare_weaver::{Arg, Blocks, Call, CountProbe, FrameProbe, ProbeSet};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

include!(concat!(env!("OUT_DIR"), "/classes.rs"));

/// The name of the runtime's jar, beside what was woven for it.
pub const JAR: &str = "tare-runtime.jar";

/// The runtime's module.
pub const MODULE: &str = "tare.runtime";

/// The package of all its classes, with a slash at its end.
pub const PACKAGE: &str = "tare/runtime/";

/// The class whose static methods woven code calls.
pub const PROBE: &str = "tare/runtime/Probe";

/// The program that measures what bytecodes cost on a JVM.
pub const TARGET: &str = "tare.runtime.Target";

/// A loop takes its count to the tree once it is larger than this, as under the agent.
const FLUSH: u32 = 4096;

/// The runtime as a jar, the same bytes in every build of the same sources.
pub fn jar() -> zip::result::ZipResult<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default());
    let manifest = format!(
        "Manifest-Version: 1.0\r\nImplementation-Title: {MODULE}\r\nImplementation-Version: {}\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    writer.start_file("META-INF/MANIFEST.MF", options)?;
    writer.write_all(manifest.as_bytes())?;
    for (name, bytes) in CLASSES {
        writer.start_file(*name, options)?;
        writer.write_all(bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

/// The kernels that measure a JVM, and how many bytecodes of which kind a turn of each has.
pub fn kernels() -> Result<BTreeMap<String, Mix>, tare_classfile::Error> {
    mixes(CLASSES)
}

/// Entry and exit of every method, and the bytecodes in between.
pub fn probes(blocks: Blocks) -> ProbeSet {
    let call = |name, descriptor, args: &[Arg]| Call::new(PROBE, name, descriptor, args);
    let counted = |name| call(name, "(Ltare/runtime/Node;I)V", &[Arg::Token, Arg::Count]);
    let enter = call("enter", "(Ljava/lang/String;)Ltare/runtime/Node;", &[Arg::MethodName]);
    ProbeSet {
        frames: vec![FrameProbe {
            enter,
            exit: counted("exit"),
            exit_throw: Some(counted("exit")),
            caught: Some(call("caught", "(Ltare/runtime/Node;)V", &[Arg::Token])),
        }],
        count: Some(CountProbe { blocks, costs: None, flush: counted("flush"), threshold: FLUSH }),
        ..ProbeSet::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_classfile::kinds::Kind;

    #[test]
    fn the_jar_is_as_small_as_the_docs_say() {
        let page = include_str!("../../../docs/guide/offline.md");
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, _) = page.split_once(" KiB that needs only").expect("the page tells its size");
        let (_, size) = before.rsplit_once("less than ").expect("the page tells its size");
        let size: usize = size.parse().expect("a number");
        let jar = jar().expect("our own jar").len();
        assert!(jar < size * 1024 && jar > size * 1024 / 2, "it has {jar} bytes");
    }

    /// What the sources say, counted by hand.
    #[test]
    fn kernels_have_what_their_sources_say() {
        let kernels = kernels().expect("our own classes");
        assert!(kernels.len() > 20, "{:?}", kernels.keys());
        let check = |name: &str, kind: Kind, expected: f64| {
            assert_eq!(kernels[name][kind as usize], expected, "{name} {}", kind.name());
        };
        // Head: two loads and a condition; then the sum, the counter, and back.
        check("plain", Kind::Move, 5.0);
        check("plain", Kind::Arithmetic, 2.0);
        check("plain", Kind::Branch, 2.0);
        check("calls", Kind::Call, 2.0);
        check("calls", Kind::Arithmetic, 3.0);
        check("deepCalls", Kind::Call, 6.0);
        check("virtualCalls", Kind::VirtualCall, 2.0);
        check("interfaceCalls", Kind::InterfaceCall, 2.0);
        check("interfaceCalls", Kind::Product, 2.0);
        check("objects", Kind::Object, 1.0);
        // The constructor, and that of Object.
        check("objects", Kind::Call, 2.0);
        check("exceptions", Kind::Throw, 1.0);
        check("monitors", Kind::Monitor, 2.0);
        check("cases", Kind::Switch, 1.0);
        check("branches", Kind::Branch, 5.0);
        check("casts", Kind::Cast, 2.0);
        for kind in Kind::EACH {
            assert!(kernels.values().any(|mix| mix[kind as usize] > 0.0), "no {}", kind.name());
        }
    }
}
