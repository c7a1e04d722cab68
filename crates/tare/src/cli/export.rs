//! The flags of `tare export`, and its help, whose list of formats is made of what can be written.

use super::profiles::ViewArgs;
use clap::Args;
use std::path::PathBuf;
use tare_formats::Format;

#[derive(Args)]
pub struct ExportArgs {
    /// The recording to read: Tare's own, JFR, pprof or collapsed stacks
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The file to write; its ending chooses the format. -.html and the like go to standard output
    #[arg(long, short, value_name = "OUT.EXT", allow_hyphen_values = true, value_parser = super::values::output)]
    pub output: PathBuf,
    /// Colour an .html flame graph by the difference to this recording
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Begin collapsed stacks with their thread: [main tid=42];…
    #[arg(long)]
    pub threads: bool,
    /// The title, for formats that have one [default: the name of the input file]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    #[command(flatten)]
    pub view: ViewArgs,
}

/// The formats and what they are for, and examples.
pub fn help() -> String {
    let mut text = String::from("FORMATS, by the ending of the file that is written:\n");
    for format in Format::ALL {
        text += &format!("  {:<17} {}\n", format.endings()[0], format.about());
    }
    text += "Further endings: ";
    let others: Vec<&str> = Format::ALL.iter().flat_map(|f| &f.endings()[1..]).copied().collect();
    text += &others.join(", ");
    text += ", callgrind.out.*; each also with .gz appended.\n\n\
             A format that can hold several metrics gets all of them; the others get the most important \
             one, or that of --metric. With a filter (--thread, --package, --hide-jdk, …) the output is a \
             call tree without threads, lines and times.\n\n";
    text += patterns!();
    text += "\n\nEXAMPLES:\n  \
             tare export run.tare -o run.html               a flame graph for the browser\n  \
             tare export production.jfr -o production.pb.gz  then: go tool pprof -http : production.pb.gz\n  \
             tare export run.tare -o gc.trace.json          a timeline for ui.perfetto.dev\n  \
             tare export new.jfr --baseline old.jfr -o diff.html   red grew, blue shrank\n  \
             tare export run.tare --metric allocated-bytes -o alloc.collapsed\n  \
             tare export run.tare --hide-jdk --fold-recursion -o mine.html";
    text
}
