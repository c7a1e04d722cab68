//! `cargo xtask`: the one entry for set-up, demo, tests and house rules.
//!
//! This file only reads the command line. What a command does is told by the module of its name;
//! plain building and running of single tests is left to cargo itself.
#![forbid(unsafe_code)]

mod agent_symbols;
mod alone;
mod api;
mod bench;
mod chaos;
mod corpus;
mod demo;
mod dist;
mod fuzz;
mod heap_oracle;
mod ledger;
mod page;
mod processes;
mod repeat;
mod same;
mod soak;
mod test;
mod tidy;

use std::process::ExitCode;
use tare_toolbox::setup;

const HELP: &str = "\
Everything in this repository that is not plain cargo.

Usage: cargo xtask COMMAND

Commands:
  demo            build Tare, start the demo program, and let Tare find it, attach to it, print
                  its status and leave it again; at last the page of what was sampled, or without
                  a display a picture of it
  test [FILTER…]  the whole test command: formatting, house rules, lints, unit tests, and tests
                  against real JVMs (JDK 17, 21 and 25). With FILTER only the tests whose name
                  contains one of the words run, and the checks of the sources are left out.
                  Without FILTER, up to three tests against JVMs that failed run once more,
                  alone; those that pass then are named as UNSTEADY at the end
                  --times N runs the tests N times, whatever fails, counts the failures of each
                  and keeps what failing runs said in the target directory; --beside N has N busy
                  loops run beside the tests; --write-docs adds runs of all tests to the account
                  in docs/measured/soak.md
  setup           only install what demo and test need
  weave-corpus    weave every class of the JDKs and of many jars, and let JVMs verify the result;
                  see `cargo xtask weave-corpus --help`
  bench [NAME…]   measure what profiling costs beside the plain program; see
                  `cargo xtask bench --help`
  same [NAME…]    whether profiles in bytecodes are the same in every run, and what `tare check`
                  finds; see `cargo xtask same --help`
  soak            whether sampling every 50 µs or heap snapshots ever end a JVM; see
                  `cargo xtask soak --help`
  fuzz [TARGET…]  everything that reads bytes of others, with inputs that are changed seeds; see
                  `cargo xtask fuzz --help`
  chaos           try to break Tare and the programs that it profiles, by a seed; see
                  `cargo xtask chaos --help`
  dist            what a release consists of: tarball, Debian package, image, checksums; see
                  `cargo xtask dist --help`
  heap-oracle     whether Eclipse MAT and VisualVM say the same of a heap; see
                  `cargo xtask heap-oracle --help`
  api             build tare-api.jar and the example agents, into the target directory
  tidy            only check the house rules (who may depend on whom, what a file must have)

demo and test install what is missing: a JDK from Debian's packages if we are root (otherwise
they print the command to run), and for the tests Chromium from there and further Java runtimes by
pip. Once everything is there, nothing is fetched again and no network is needed.

Environment:
  JAVA_HOME       a JDK to look at first; JDKs in the usual places are found without it
  TARE_CACHE      where fetched Java runtimes are kept (default: ~/.cache/tare)
  CARGO_TARGET_DIR as cargo knows it; everything that is built goes there

Examples:
  cargo xtask demo
  cargo xtask test
  cargo xtask test namespaces jdk25     only tests with either word in their name
  cargo xtask test --times 10 --beside 14   what ever fails on a busy machine
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["bench", options @ ..] => return bench::run(options),
        ["chaos", "--help" | "-h"] => {
            print!("{}", chaos::HELP);
            Ok(())
        }
        ["dist", "--help" | "-h"] => {
            print!("{}", dist::HELP);
            Ok(())
        }
        ["fuzz", "--help" | "-h"] => {
            print!("{}", fuzz::HELP);
            Ok(())
        }
        ["heap-oracle", "--help" | "-h"] => {
            print!("{}", heap_oracle::HELP);
            Ok(())
        }
        ["same", "--help" | "-h"] => {
            print!("{}", same::HELP);
            Ok(())
        }
        ["soak", "--help" | "-h"] => {
            print!("{}", soak::HELP);
            Ok(())
        }
        ["weave-corpus", "--help" | "-h"] => {
            print!("{}", corpus::HELP);
            Ok(())
        }
        [] | ["help" | "--help" | "-h", ..] | [_, "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["api"] => api::run(),
        ["chaos", options @ ..] => chaos::run(options),
        ["demo"] => demo::run(),
        ["dist", options @ ..] => dist::run(options),
        ["fuzz", options @ ..] => fuzz::run(options),
        ["heap-oracle", subjects @ ..] => heap_oracle::run(subjects),
        ["same", options @ ..] => same::run(options),
        ["setup"] => setup::run(),
        ["soak", options @ ..] => soak::run(options),
        ["tidy"] => tidy::run(),
        ["test", words @ ..] => match repeat::Options::parse(words) {
            Ok(options) => test::run(&options),
            Err(error) => {
                eprintln!("xtask: test: {error:#}\n\n{HELP}");
                return ExitCode::from(2);
            }
        },
        ["weave-corpus", options @ ..] => corpus::run(options),
        _ => {
            eprintln!("xtask: unknown: {}\n\n{HELP}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
