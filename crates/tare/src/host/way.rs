//! Which verb goes how if a place is named: JVMs are there, files are here.

use crate::cli::{Command, HeapArgs, HeapWhat, RecordArgs};
use std::path::{Path, PathBuf};

pub enum Way {
    /// It is about files, or about nothing at all.
    Here,
    /// It runs there; what it prints and its file come back.
    Asked {
        /// Where the file goes.
        output: Option<PathBuf>,
        /// Its text is for a pager if it is long.
        paged: bool,
    },
    /// It records there, and the recording grows here.
    Recorded(Wanted),
    /// It records there, and the page is served here.
    Viewed,
    Refused(String),
}

/// What is made of a recording here.
pub struct Wanted {
    pub output: Option<PathBuf>,
    pub quiet: bool,
    pub by_thread: bool,
    pub json: bool,
}

pub fn of(command: Option<&Command>) -> Way {
    let asked = |output: Option<&PathBuf>| Way::Asked { output: output.cloned(), paged: false };
    match command {
        Some(
            Command::Diff(_)
            | Command::Export(_)
            | Command::Instrument(_)
            | Command::Class(_)
            | Command::Relay(_),
        ) => Way::Here,
        Some(Command::Report(args)) if args.file.exists() => Way::Here,
        Some(Command::Report(args)) => match &args.view.samples {
            Some(file) => refused("--samples", file),
            None => Way::Asked { output: None, paged: !args.no_pager },
        },
        Some(Command::Threads(args)) => Way::Asked { output: None, paged: !args.watch },
        Some(Command::View(args)) if args.what.exists() => Way::Here,
        Some(Command::View(args)) => match &args.new {
            Some(new) => refused("NEW", new),
            None => Way::Viewed,
        },
        Some(Command::Heap(args)) => heap(args),
        Some(Command::Dump { output, .. }) => {
            // Its usual name is made of the pid, which is known there.
            Way::Asked { output: output.clone(), paged: false }
        }
        Some(Command::Record(args)) => record(args),
        Some(Command::Climb(args)) if !args.command.is_empty() => starts("climb"),
        Some(Command::Climb(args)) if args.background => Way::Refused(
            "--background leaves a climb behind, and over --host everything ends with the \
             connection; leave it out"
                .to_owned(),
        ),
        Some(Command::Climb(args)) => Way::Recorded(Wanted {
            output: args.output.clone(),
            quiet: args.quiet,
            by_thread: false,
            json: args.json,
        }),
        Some(Command::Check(_)) => starts("check"),
        Some(Command::Run { .. }) => starts("run"),
        Some(Command::CalibrateTarget(_)) => starts("calibrate-target"),
        _ => asked(None),
    }
}

fn record(args: &RecordArgs) -> Way {
    if !args.command.is_empty() {
        return starts("record");
    }
    for (flag, file) in [("--target", &args.target), ("--sample", &args.sample)] {
        if let Some(file) = file {
            return refused(flag, file);
        }
    }
    Way::Recorded(Wanted {
        output: args.output.clone(),
        quiet: args.quiet,
        by_thread: args.threads,
        json: false,
    })
}

fn heap(args: &HeapArgs) -> Way {
    if Path::new(&args.target).exists() {
        return Way::Here;
    }
    if let Some(file) = &args.recording {
        return refused("--recording", file);
    }
    let output = match &args.what {
        Some(HeapWhat::Diff { new }) if Path::new(new).exists() => {
            return refused("NEW", new.as_ref());
        }
        Some(HeapWhat::Export { file } | HeapWhat::Html { file }) => {
            if args.output.is_some() {
                return Way::Refused(
                    "over --host one file comes back: leave -o out, or make the other of the \
                     snapshot that it writes"
                        .to_owned(),
                );
            }
            Some(file.clone())
        }
        _ => args.output.clone(),
    };
    Way::Asked { output, paged: false }
}

/// What is read must be where it is read.
fn refused(flag: &str, file: &Path) -> Way {
    Way::Refused(format!(
        "{flag} {} is a file, which the far side cannot read; record there without it, and use it \
         here with the recording",
        file.display()
    ))
}

fn starts(verb: &str) -> Way {
    Way::Refused(format!(
        "--host is for JVMs that run already, and `tare {verb}` starts a program; start it there, \
         or leave --host (TARE_HOST) out"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn way(line: &str) -> &'static str {
        let cli = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|e| panic!("{line}: {e}"));
        match of(cli.command.as_ref()) {
            Way::Here => "here",
            Way::Asked { output: None, paged: true } => "paged",
            Way::Asked { output: None, paged: false } => "asked",
            Way::Asked { output: Some(_), .. } => "asked for a file",
            Way::Recorded(_) => "recorded",
            Way::Viewed => "viewed",
            Way::Refused(_) => "refused",
        }
    }

    #[test]
    fn jvms_are_there_and_files_are_here() {
        // Of this package, where tests run.
        let file = "Cargo.toml";
        for (line, expected) in [
            ("tare", "asked"),
            ("tare ps --json", "asked"),
            ("tare doctor", "asked"),
            ("tare threads 1", "paged"),
            ("tare threads 1 --watch", "asked"),
            ("tare stop 1", "asked"),
            ("tare dump 1 -o x.html", "asked for a file"),
            ("tare report 1", "paged"),
            (&format!("tare report {file}"), "here"),
            ("tare export x.tare -o x.html", "here"),
            ("tare diff a b", "here"),
            ("tare view 1", "viewed"),
            (&format!("tare view {file}"), "here"),
            ("tare record 1", "recorded"),
            ("tare record --exact 1 -o x.tare", "recorded"),
            ("tare record -- java Main", "refused"),
            ("tare record --bytecodes --target t.txt 1", "refused"),
            ("tare climb 1", "recorded"),
            ("tare climb 1 --background", "refused"),
            ("tare run -- java Main", "refused"),
            ("tare heap 1", "asked"),
            ("tare heap 1 -o x.tareheap", "asked for a file"),
            ("tare heap 1 html x.html", "asked for a file"),
            ("tare heap 1 -o x.tareheap html x.html", "refused"),
            (&format!("tare heap {file}"), "here"),
            ("tare heap 1 --recording x.tare", "refused"),
        ] {
            assert_eq!(way(line), expected, "{line}");
        }
    }
}
