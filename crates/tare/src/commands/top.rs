//! `tare top`: a JVM live in the terminal, or printed for scripts.
//!
//! What is shown is made in `tare-top`; here a recording in memory is kept going (`feed`), read as it
//! grows (`watch`), and put on the terminal (`screen`) or on standard output (`printed`). `weigh`
//! counts one method exactly, `machine` asks the system.

mod feed;
mod machine;
mod others;
mod printed;
mod screen;
mod watch;
mod weigh;

use crate::cli::TopArgs;
use crate::figures::{fit, remark_aside};
use crate::{interrupt, term};
use anyhow::{Result, bail};
use feed::{Feed, How};
use std::time::Duration;
use tare_top::Paint;
use watch::Watch;

const LONGEST: Duration = Duration::from_secs(60);

pub fn run(args: &TopArgs) -> Result<()> {
    if args.last.is_some_and(|last| !(Duration::from_secs(1)..=LONGEST).contains(&last)) {
        bail!("--last is between 1s and 60s: what is older is not kept");
    }
    let jvm = tare_attach::find(&args.jvm)?;
    let stop = interrupt::flag()?;
    let how = How { interval: args.interval, light: args.light, timeout: args.patience.timeout };
    let prints = args.prints() || !term::can_be_full();
    let feed = Feed::begin(jvm, how, args.wall)?;
    let mut watch = Watch::new(feed);
    let shown = match prints {
        true => printed::run(args, &mut watch, &stop),
        false => screen::run(args, &mut watch, &stop),
    };
    let ended = watch.end();
    let last = watch.feed.shared().recorded.take();
    if let Some(path) = last.or(watch.recorded.take()) {
        let path = path.display().to_string();
        remark_aside(&format!("the recording is in {}", term::plain(&path)));
    }
    shown.and(ended)
}

/// A name that was cut has a sign of it that every console has.
fn fit_ascii(text: &str, width: usize) -> String {
    fit(text, width).replace('…', "~")
}

/// What the terminal can show, as far as its environment tells.
fn paint() -> Paint {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = locale.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    let is_utf8 = locale.to_uppercase().replace('-', "").contains("UTF8");
    // A console of the kernel has few of the characters that lines are made of.
    let is_console = std::env::var("TERM").is_ok_and(|term| term == "linux");
    let is_other = !locale.is_empty() && !is_utf8;
    let ascii = is_console || is_other;
    let fit = if ascii { fit_ascii } else { fit };
    Paint { colours: !set("NO_COLOR"), ascii, fit }
}
