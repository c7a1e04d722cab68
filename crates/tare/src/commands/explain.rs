//! `tare explain`: why a method is woven or not, from the recording that is under way.

use crate::cli::ExplainArgs;
use crate::figures::roughly;
use crate::term::{self, BOLD, DIM, plain};
use anyhow::{Result, bail};
use tare_protocol::{Explained, Request, Response};
use tare_session::client::{self, Found};

pub fn run(args: &ExplainArgs) -> Result<()> {
    let jvm = tare_attach::find(&args.target.jvm)?;
    let Found::Ours(mut agent) = client::find(&jvm, args.target.patience.timeout)? else {
        bail!(
            "JVM {0} is not being recorded; begin with `tare record --exact --root METHOD {0}`",
            jvm.pid
        );
    };
    let all = match agent.ask(&Request::Explain(args.method.clone()))? {
        Response::Explained(all) => all,
        Response::Error { message, .. } => bail!("{}", plain(&message)),
        _ => bail!("the agent sent an unexpected answer"),
    };
    if all.methods.is_empty() {
        bail!(
            "no method of a loaded class fits {}; of the JDK's only those are known that the program \
             overrides",
            args.method
        );
    }
    all.methods.iter().for_each(print);
    if all.more > 0 {
        errln!(
            "{}, {} woven; a narrower METHOD than {} shows more of them",
            match all.more {
                1 => "1 more method fits".to_owned(),
                more => format!("{} fit", roughly(more, "more method")),
            },
            term::count(all.more_woven),
            args.method
        );
    }
    Ok(())
}

fn print(method: &Explained) {
    let loader = match method.loader {
        0 => String::new(),
        number => format!(" {DIM}(loader {number}){DIM:#}"),
    };
    let name = format!("{}.{}", method.class.replace('/', "."), method.method);
    outln!("{BOLD}{}{BOLD:#}{}{loader}", plain(&name), plain(&method.descriptor));
    let state = match (method.woven, method.reason.as_str(), method.chain.is_empty()) {
        (true, ..) => "woven".to_owned(),
        (false, "", true) => "not woven: nothing that ran below a root calls it".to_owned(),
        (false, "", false) => "reachable, not woven yet, or without code".to_owned(),
        (false, reason, _) => format!("not woven: {reason}"),
    };
    outln!("  {}", plain(&state));
    // Each step but the last is a call; that one says how the first of the callers is reached.
    let [_, callers @ ..] = method.chain.as_slice() else { return };
    let why = plain(method.chain.last().map_or("", |(_, how)| how));
    if callers.is_empty() {
        outln!("  {why}");
    }
    for (at, (caller, _)) in callers.iter().enumerate() {
        let end = if at + 1 == callers.len() { format!(": {why}") } else { String::new() };
        outln!("  {DIM}called by{DIM:#} {}{end}", plain(caller));
    }
}
