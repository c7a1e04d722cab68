//! Tries the crate by hand: `list`, `find WHO`, `load PID LIBRARY [OPTIONS]`, `jcmd PID COMMAND…`,
//! `properties PID`, `connect PID`. `TIMEOUT` in the environment is in milliseconds.

use std::time::{Duration, Instant};

fn main() {
    if let Some(served) = tare_attach::run_if_child() {
        std::process::exit(i32::from(served.is_err()));
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Err(error) = run(&words) {
        eprintln!("{error}\n[{:?}]", error.kind());
        std::process::exit(1);
    }
}

fn run(words: &[&str]) -> Result<(), tare_attach::Error> {
    let timeout = std::env::var("TIMEOUT").ok().and_then(|text| text.parse().ok());
    let timeout = Duration::from_millis(timeout.unwrap_or(10_000));
    let start = Instant::now();
    match words {
        ["list"] => {
            for jvm in tare_attach::list() {
                println!(
                    "{:>7} {:>7} {:<10} {:<10} {:<40} {:>8.1} s {:?} details={} container={} {:?}",
                    jvm.pid,
                    jvm.ns_pid,
                    jvm.user_name(),
                    jvm.java_version.as_deref().unwrap_or("-"),
                    jvm.name(),
                    jvm.uptime.as_secs_f64(),
                    jvm.vm,
                    jvm.details,
                    jvm.in_container,
                    jvm.tare_agents,
                );
            }
        }
        ["find", who] => println!("{:#?}", tare_attach::find(who)?),
        ["load", who, library, options @ ..] => {
            let jvm = tare_attach::find(who)?;
            let options = options.first().copied().unwrap_or_default();
            let mut progress = |step| eprintln!("{:>6.1?}: {step}", start.elapsed());
            let library = tare_attach::Library::File(library.into());
            let loaded = tare_attach::load_agent(&jvm, &library, options, timeout, &mut progress)?;
            println!("{loaded:?} after {:?}", start.elapsed());
        }
        ["jcmd", who, command @ ..] => {
            let jvm = tare_attach::find(who)?;
            print!("{}", tare_attach::jcmd(&jvm, "jcmd", &command.join(" "), timeout)?);
        }
        ["properties", who] => {
            let jvm = tare_attach::find(who)?;
            print!("{}", tare_attach::jcmd(&jvm, "properties", "", timeout)?);
        }
        ["connect", who] => {
            let jvm = tare_attach::find(who)?;
            println!("{:?}", tare_attach::connect(&jvm, timeout)?);
        }
        _ => eprintln!("list | find WHO | load WHO LIBRARY [OPTIONS] | jcmd WHO COMMAND… | …"),
    }
    Ok(())
}
