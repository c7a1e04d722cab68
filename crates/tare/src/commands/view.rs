//! `tare view`: a page of a recording, or of a JVM that is sampled meanwhile, served on loopback.
//! What the page asks is answered by `tare-view`; here is where its figures come from, and what is
//! said in the terminal.

mod code;
mod dump;
mod exactly;
mod live;
mod source;
mod there;

use crate::cli::{HostArgs, ViewerArgs};
use crate::figures::remark_aside;
use crate::interrupt;
use crate::term::{BOLD, DIM, plain};
use anyhow::{Context, Result, bail};
use source::Recorded;
use std::env;
use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tare_view::{Handle, Server, Source};

pub fn run(args: &ViewerArgs) -> Result<()> {
    let stop = interrupt::flag()?;
    if args.redact {
        crate::source::redact();
    }
    // Before a JVM is entered for it.
    tare_session::sources::checked(&args.source)?;
    if args.what.exists() {
        if let Some(flag) = args.for_jvm() {
            bail!("{flag} is for a JVM that is recorded, and {} is a file", args.what.display());
        }
        if dump::is_one(&args.what) {
            let dump = match &args.new {
                Some(new) if !dump::is_one(new) => {
                    bail!("{} is a heap dump, and {} is none", args.what.display(), new.display())
                }
                Some(new) => dump::Dump::open(new, Some(&args.what), &stop)?,
                None => dump::Dump::open(&args.what, None, &stop)?,
            };
            return serve(args, Arc::new(dump), &stop);
        }
        let source = match &args.new {
            Some(new) => Recorded::of_file(new, &args.source)?.compared_with(&args.what)?,
            None => Recorded::of_file(&args.what, &args.source)?,
        };
        let source = Arc::new(source);
        return serve(args, source, &stop);
    }
    if let Some(new) = &args.new {
        bail!("{} is no file that {} could be compared with", args.what.display(), new.display());
    }
    let name = args.what.display().to_string();
    let jvm = tare_attach::find(&name)
        .with_context(|| format!("there is no file {name}, and no JVM to look into"))?;
    let live = live::begin(args, jvm, &stop)?;
    let source = Arc::new(Recorded::of_live(&live, &args.source)?);
    let served = serve(args, source, &stop);
    stop.store(true, Ordering::Relaxed);
    served.and(live.end())
}

/// The same of a JVM elsewhere, which is recorded there and shown here.
pub fn run_there(args: &ViewerArgs, at: &HostArgs) -> Result<()> {
    let stop = interrupt::flag()?;
    let live = there::begin(args, at, &stop)?;
    let source = Arc::new(Recorded::of_there(&live));
    let served = serve(args, source, &stop);
    stop.store(true, Ordering::Relaxed);
    served.and(live.end())
}

/// Until Ctrl-C.
fn serve(args: &ViewerArgs, source: Arc<dyn Source>, stop: &Arc<AtomicBool>) -> Result<()> {
    let server = Server::bind(args.port, source).with_context(|| match args.port {
        0 => "this machine's loopback address cannot be listened on".to_owned(),
        port => format!("port {port} cannot be listened on; leave --port out for any that is free"),
    })?;
    let handle = server.handle();
    server.start()?;
    let link = handle.link("")?;
    outln!("{BOLD}{link}{BOLD:#}");
    let opened = !args.no_open && open(&link);
    let browser = if opened { "opened in the browser; " } else { "" };
    let enter = if io::stdin().is_terminal() { "Enter makes a new link, " } else { "" };
    remark_aside(&format!("{browser}the link opens one page, within a minute; {enter}Ctrl-C ends"));
    if io::stdin().is_terminal() {
        let handle = handle.clone();
        std::thread::spawn(move || more_links(&handle));
    }
    while !interrupt::is_set(stop) {
        std::thread::sleep(Duration::from_millis(50));
    }
    handle.stop();
    Ok(())
}

/// A new link whenever somebody presses Enter.
fn more_links(handle: &Handle) {
    for line in io::stdin().lock().lines() {
        let Ok(_) = line else { return };
        if let Ok(link) = handle.link("") {
            outln!("{BOLD}{link}{BOLD:#}");
        }
    }
}

/// Whether a browser was found to open it in. Without a display it would be one in the terminal.
fn open(link: &str) -> bool {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(is_set);
    let is_mac = cfg!(target_os = "macos");
    if !has_display && !is_mac {
        return false;
    }
    let opener = if is_mac { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // Nobody waits for a browser, but its end is to be noticed by somebody.
            std::thread::spawn(move || child.wait());
            true
        }
        Err(error) => {
            errln!("{DIM}no browser was opened: {}: {}{DIM:#}", opener, plain(&error.to_string()));
            false
        }
    }
}

/// The name of a file without what leads to it.
fn file_name(path: &Path) -> String {
    // Memory of a `tare` that records has a name of its own behind the number of its descriptor.
    if path.starts_with("/proc")
        && let Ok(link) = std::fs::read_link(path)
        && let Some(name) = link.to_str().and_then(|link| link.strip_prefix("/memfd:"))
    {
        return name.trim_end_matches(" (deleted)").to_owned();
    }
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
