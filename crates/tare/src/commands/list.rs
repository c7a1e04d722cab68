//! `tare` alone and `tare ps`: the JVMs on this machine.

use crate::figures::fit;
use crate::term::{self, BOLD, DIM, plain};
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use tare_attach::{AgentSeen, Jvm, VmKind};
use tare_session::exact::vm;

/// `tare` alone: the list, and what to try next.
pub fn overview() -> Result<()> {
    let jvms = tare_attach::list();
    let mut out = term::stdout();
    if jvms.is_empty() {
        writeln!(out, "No JVM is running here that this user can see.")?;
        writeln!(out, "\nStart one with the agent inside:  tare run -- java …")?;
        writeln!(out, "All commands:                     tare --help")?;
        return Ok(());
    }
    table(&mut out, &jvms)?;
    let pid = jvms.iter().find(|jvm| is_hotspot(jvm)).unwrap_or(&jvms[0]).pid;
    writeln!(out, "\nTry next:")?;
    for (command, what) in [
        ("record", "sample where its time goes, until Ctrl-C"),
        ("record --exact", "count every call; slows the program down"),
        ("status", "attach, and say how that JVM is"),
        ("doctor", "what Tare can do with it, and what would help"),
    ] {
        writeln!(out, "  {BOLD}tare {command:<14} {pid}{BOLD:#}  {DIM}# {what}{DIM:#}")?;
    }
    Ok(())
}

pub fn ps(json: bool) -> Result<()> {
    let jvms = tare_attach::list();
    if json {
        let rows: Vec<Row> = jvms.iter().map(Row::new).collect();
        return term::json(&rows);
    }
    let mut out = term::stdout();
    if jvms.is_empty() {
        errln!("No JVM is running here that this user can see.");
        return Ok(());
    }
    table(&mut out, &jvms)
}

/// What `--json` shows of a JVM. A promise to scripts: fields are added, never renamed.
#[derive(Serialize)]
pub struct Row {
    pid: u32,
    user: String,
    uid: u32,
    jdk: Option<String>,
    vm: String,
    main: Option<String>,
    uptime_ms: u64,
    agent: String,
    container: bool,
    command_line: Vec<String>,
}

impl Row {
    pub fn new(jvm: &Jvm) -> Self {
        Row {
            pid: jvm.pid,
            user: jvm.user_name(),
            uid: jvm.uid,
            jdk: jvm.java_version.clone(),
            vm: vm(jvm),
            main: jvm.main.clone(),
            uptime_ms: u64::try_from(jvm.uptime.as_millis()).unwrap_or(u64::MAX),
            agent: agent(jvm).to_owned(),
            container: jvm.in_container,
            command_line: jvm.command_line.clone(),
        }
    }
}

/// Whether it is a JVM that we can do something with.
pub fn is_hotspot(jvm: &Jvm) -> bool {
    matches!(jvm.vm, VmKind::HotSpot { .. })
}

/// `active`: it listens; `leaving`: it was sent away, and restores what it had changed; `detached`:
/// it was there, and its library is still mapped.
fn agent(jvm: &Jvm) -> &'static str {
    let is_mapped = |seen: &AgentSeen| matches!(seen, AgentSeen::Library { .. });
    match jvm.tare_agents.iter().any(is_mapped) {
        _ if jvm.has_agent() => "active",
        true if tare_attach::has_control_thread(jvm.pid) => "leaving",
        true => "detached",
        false => "none",
    }
}

fn table(out: &mut impl Write, jvms: &[Jvm]) -> Result<()> {
    let head = ["PID", "USER", "JDK", "UPTIME", "AGENT", "MAIN"].map(str::to_owned);
    let rows = jvms.iter().map(|jvm| {
        let mut main = jvm.name().to_owned();
        if !jvm.details {
            main.push_str("  [of another user; root sees more]");
        } else if !is_hotspot(jvm) {
            main = format!("{main}  [{}]", vm(jvm));
        } else if jvm.in_container {
            main.push_str("  [container]");
        }
        [
            jvm.pid.to_string(),
            jvm.user_name(),
            jvm.java_version.clone().unwrap_or_else(|| "?".to_owned()),
            term::time(jvm.uptime),
            agent(jvm).to_owned(),
            main,
        ]
        .map(|cell| plain(&cell).into_owned())
    });
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    // Only the last column gives way to a narrow terminal: the rest is what one needs to act.
    let taken: usize = widths[..5].iter().map(|w| w + 2).sum();
    let last = term::width().map_or(usize::MAX, |w| w.saturating_sub(taken).max(12));
    for (number, row) in rows.iter().enumerate() {
        let mut line = format!("{:>width$}  ", row[0], width = widths[0]);
        for column in 1..5 {
            line.push_str(&format!("{:<width$}  ", row[column], width = widths[column]));
        }
        // The class's own name tells more than its packages.
        let (name, rest) = row[5].split_at(row[5].find(' ').unwrap_or(row[5].len()));
        let name = fit(name, last.saturating_sub(rest.chars().count()).max(12));
        line.push_str(&term::clip(&(name + rest), last));
        if number == 0 {
            writeln!(out, "{DIM}{line}{DIM:#}")?;
        } else {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}
