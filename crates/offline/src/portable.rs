//! The runtime that needs no agent: its jar, and the probes that call it. What it does is told in
//! `runtime-portable/`; how a program is woven for it, in the other files.

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
        count: Some(CountProbe { blocks, flush: counted("flush"), threshold: FLUSH }),
        ..ProbeSet::default()
    }
}
