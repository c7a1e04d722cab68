//! The page for people: findings first, then what to look at.

use super::{Report, labels_like, tree};
use crate::cli::By;
use crate::commands::record::WOVEN_AFTER;
use crate::figures::{fit, percent, value};
use crate::term::{self, BAD, BOLD, DIM, GOOD, WARN, plain};
use anyhow::Result;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tare_analysis::{
    FindingKind, Hot, JOINED, LabelId, LabelKind, NodeId, TargetError, Tree, neighbours,
};
use tare_formats::Format;
use tare_profile::{Estimate, MethodKind, RunInfo, ThreadKind, Unit};

/// Unless told otherwise the tree is folded at the first of these shares that leaves a page of it.
const MIN_SHARES: [f64; 5] = [0.01, 0.02, 0.03, 0.05, 0.1];
const PAGE: usize = 60;
/// However little is folded by the last of them, unless it is asked for there are no more lines.
const MOST_LINES: usize = 500;
/// More methods than this are not shown around, however many a pattern means.
const METHODS: usize = 5;

pub fn print(report: &Report<'_>) -> Result<()> {
    let page = Page { report, width: term::width().unwrap_or(usize::MAX) };
    let out = &mut term::stdout();
    page.head(out)?;
    if let Some(text) = &report.args.method {
        return page.around(out, text);
    }
    if report.args.threads {
        return page.threads(out);
    }
    page.findings(out)?;
    super::regions::print(out, report, page.width)?;
    if report.tree.is_empty() {
        return Ok(());
    }
    page.list(out, "itself", |hot| hot.own[0])?;
    page.list(out, "with all it called", |hot| hot.total[0])?;
    writeln!(out)?;
    let title =
        if report.args.bottom_up { "Callers, from the hot methods up" } else { "Call tree" };
    page.title(out, title)?;
    let (shown, min_share) = page.tree();
    let asked = report.args.full || report.args.view.min_share.is_some();
    let most = if asked { usize::MAX } else { MOST_LINES };
    let shape = tree::Shape { width: page.width, min_share, full: report.args.full, most };
    tree::print(out, &shown, page.unit(), &shape)?;
    if min_share > 0.0 {
        let below = percent(min_share);
        let below = below.trim();
        writeln!(out, "{DIM}  what is below {below} is folded; --min-share sets it{DIM:#}")?;
    }
    page.next_steps(out)
}

/// How long it took until all was woven, if that is worth a word.
fn woven_after(run: &RunInfo) -> Option<String> {
    let (_, after) = run.options.iter().find(|(key, _)| key == WOVEN_AFTER)?;
    let after = Duration::from_nanos(after.parse().ok()?);
    (after >= Duration::from_millis(100))
        .then(|| format!("all of it woven after {}", term::time(after)))
}

struct Page<'a> {
    report: &'a Report<'a>,
    width: usize,
}

impl Page<'_> {
    fn unit(&self) -> Unit {
        self.report.info().kind.unit()
    }

    /// The tree, and the share below which it is folded.
    fn tree(&self) -> (Tree, f64) {
        let whole = self.report.tree.fold_runs();
        let shown = |share: f64| self.report.shown_tree(&whole, share);
        if let Some(share) = self.report.args.view.min_share {
            return (shown(share), share);
        }
        let last = MIN_SHARES[MIN_SHARES.len() - 1];
        let shares = MIN_SHARES.into_iter().map(|share| (shown(share), share));
        let fits =
            |tree: &Tree, share: f64| tree::lines(tree, share, self.report.args.full).len() <= PAGE;
        shares
            .into_iter()
            .find(|(tree, share)| fits(tree, *share))
            .unwrap_or_else(|| (shown(last), last))
    }

    fn title(&self, out: &mut impl Write, text: &str) -> Result<()> {
        Ok(writeln!(out, "{BOLD}{text}{BOLD:#}")?)
    }

    fn line(&self, out: &mut impl Write, text: &str) -> Result<()> {
        Ok(writeln!(out, "{}", term::clip(text, self.width))?)
    }

    fn head(&self, out: &mut impl Write) -> Result<()> {
        let run = &self.report.profile.run;
        let program = match (run.main_class.as_str(), run.command_line.join(" ")) {
            ("", command) if command.is_empty() => String::new(),
            ("", command) => command,
            (main, _) => main.to_owned(),
        };
        let mut facts = vec![program];
        if let Some(pid) = run.pid {
            facts.push(format!("pid {pid}"));
        }
        if !run.jdk.is_empty() {
            facts.push(format!("JDK {}", run.jdk));
        }
        facts.push(run.host.clone());
        if run.duration > 0 {
            facts.push(format!("measured for {}", term::time(Duration::from_nanos(run.duration))));
            facts.extend(woven_after(run));
        }
        facts.push(run.tool.clone());
        facts.retain(|fact| !fact.is_empty());
        if !facts.is_empty() {
            self.line(out, &facts.join(", "))?;
        }
        let info = self.report.info();
        // `cpu-time`, not `cpu cpu-time`; but `parked wall-time`.
        let kind = info.kind.name();
        let mut what = match kind.starts_with(&info.name) {
            true => kind.to_owned(),
            false => format!("{} {kind}", info.name),
        };
        if info.period > 0 {
            let period = value(
                info.period as i64,
                info.period_kind.as_ref().map_or(Unit::Count, |k| k.unit()),
            );
            what.push_str(&format!(", one per {period}"));
        }
        if let Some(error) = TargetError::of(self.report.profile, info) {
            what.push_str(&format!(", {}", error.told()));
        }
        let sum = self.report.tree.sum(0);
        if sum != 0 || self.report.regions.is_empty() {
            writeln!(out, "{}{DIM} of {}{DIM:#}", value(sum, self.unit()), plain(&what))?;
        }
        let joined = run.options.iter().find(|(key, _)| key == JOINED && info.name == JOINED);
        let joined = joined.map(|(_, text)| format!("exact counts joined with samples: {text}"));
        if let Some(text) = joined.or_else(|| sampled(run)) {
            for line in wrap(&text, self.width) {
                writeln!(out, "{DIM}{line}{DIM:#}")?;
            }
        }
        Ok(writeln!(out)?)
    }

    fn findings(&self, out: &mut impl Write) -> Result<()> {
        if self.report.findings.is_empty() {
            return Ok(());
        }
        self.title(out, "Findings")?;
        for finding in &self.report.findings {
            let (mark, style) = match finding.kind {
                FindingKind::Dominates => ("▸", BAD),
                FindingKind::Lost => ("−", WARN),
                FindingKind::Trust => ("±", GOOD),
            };
            for (at, line) in wrap(&finding.text, self.width.saturating_sub(4)).iter().enumerate() {
                let mark = if at == 0 { mark } else { " " };
                writeln!(out, "  {style}{mark}{style:#} {line}")?;
            }
        }
        Ok(())
    }

    /// A hot list, sorted by one of its figures.
    fn list(&self, out: &mut impl Write, what: &str, by: impl Fn(&Hot) -> i64) -> Result<()> {
        let tree = &self.report.tree;
        let mut hot: Vec<&Hot> = self.report.hot.iter().filter(|hot| by(hot) != 0).collect();
        hot.sort_by_key(|hot| -i128::from(by(hot)));
        writeln!(out)?;
        let subject = match self.report.args.view.by {
            By::Method => "Methods",
            By::Line => "Lines",
            By::Class => "Classes",
            By::Package => "Packages",
            By::Jar => "Modules, jars and libraries",
            By::Loader => "Loaders",
        };
        self.title(out, &format!("{subject}, by what each takes {what}"))?;
        let calls = tree.metrics() > 1;
        let per_call = calls && self.unit() == Unit::Nanoseconds;
        let joined = self.report.bounds.is_some_and(|bounds| bounds.joined.is_some());
        // Times by probes are estimates, and how good they are is not known.
        let estimated = self.report.info().estimate == Estimate::Compensated && !joined;
        let mut head =
            format!("   itself    total {:>11}", if estimated { "~ value" } else { "value" });
        if joined {
            head.push_str(&format!("{:>10}", "±"));
        }
        if calls {
            head.push_str("       calls");
        }
        if per_call {
            head.push_str(&format!("{:>10}", "per call"));
        }
        writeln!(out, "{DIM}{head}{DIM:#}")?;
        let mut doubtful = 0;
        for hot in hot.iter().take(self.report.args.top) {
            let mut line = format!(
                "  {}  {} {:>11}",
                percent(tree.share(hot.own[0])),
                percent(tree.share(hot.total[0])),
                value(by(hot), self.unit()),
            );
            let mut style = anstyle::Style::new();
            if let Some(bounds) = self.report.bounds {
                let own = by(hot) == hot.own[0];
                let of = |metric: usize| if own { hot.own[metric] } else { hot.total[metric] };
                let (lower, upper) = bounds.interval(of);
                let half = upper.saturating_sub(lower) / 2;
                if joined {
                    line.push_str(&format!("{:>10}", value(half, self.unit())));
                }
                if half > by(hot) / 2 {
                    style = DIM;
                    doubtful += 1;
                }
            }
            if calls {
                line.push_str(&format!("{:>12}", value(hot.own[1], Unit::Count)));
            }
            if per_call {
                let one = by(hot).checked_div(hot.own[1]);
                let one = one.map_or_else(String::new, |one| value(one, self.unit()));
                line.push_str(&format!("{one:>10}"));
            }
            let room = self.width.saturating_sub(line.chars().count() + 2).max(12);
            writeln!(out, "{style}{line}{style:#}  {}", self.name(hot.label, room))?;
        }
        if doubtful > 0 {
            let hint = match joined {
                true => "more samples tell more, see docs/time.md",
                false => "mostly probes; record with --cpu, see docs/time.md",
            };
            writeln!(out, "{DIM}  grey: the truth may be half of it or less; {hint}{DIM:#}")?;
        }
        if let Some(more @ 1..) = hot.len().checked_sub(self.report.args.top) {
            writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
        }
        Ok(())
    }

    fn name(&self, label: LabelId, room: usize) -> String {
        name(self.report.tree.label(label).kind, &self.report.tree.label(label).text, room)
    }

    fn around(&self, out: &mut impl Write, text: &str) -> Result<()> {
        let tree = &self.report.tree;
        let labels = labels_like(tree, &self.report.hot, text)?;
        for (at, label) in labels.iter().take(METHODS).enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            let around = neighbours(tree, *label);
            let figures = |number: i64| {
                format!("  {} {:>11}", percent(tree.share(number)), value(number, self.unit()))
            };
            self.title(out, &plain(&tree.label(*label).text))?;
            writeln!(out, "{}  itself", figures(around.own))?;
            writeln!(out, "{}  with all it called", figures(around.total))?;
            for (title, list) in [("Called by", &around.callers), ("Calls", &around.callees)] {
                if list.is_empty() {
                    continue;
                }
                writeln!(out, "{title}")?;
                for (other, value) in list.iter().take(self.report.args.top) {
                    let nobody = *other == tree.label_id(NodeId::ROOT);
                    let room = self.width.saturating_sub(24).max(12);
                    let text = match nobody {
                        true => "[nobody: the stack begins here]".to_owned(),
                        false => self.name(*other, room),
                    };
                    writeln!(out, "{}  {text}", figures(*value))?;
                }
                if let Some(more @ 1..) = list.len().checked_sub(self.report.args.top) {
                    writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
                }
            }
        }
        if let Some(more @ 1..) = labels.len().checked_sub(METHODS) {
            writeln!(out, "\n{DIM}{text:?} means {more} more; a longer name means fewer{DIM:#}")?;
        }
        Ok(())
    }

    fn threads(&self, out: &mut impl Write) -> Result<()> {
        let (profile, tree) = (self.report.profile, &self.report.tree);
        self.title(out, "Threads")?;
        let name_of = |share: &tare_analysis::ThreadShare| {
            let kind = match profile.threads.get(share.thread).kind {
                ThreadKind::Java => "",
                ThreadKind::Virtual => " (virtual)",
                ThreadKind::Vm => " (of the JVM)",
                ThreadKind::Native => " (native)",
            };
            profile.thread_name(share.thread) + kind
        };
        let shown = self.report.threads.iter().take(self.report.args.top);
        let longest = shown.clone().map(|share| name_of(share).chars().count()).max().unwrap_or(0);
        let longest = longest.min(self.width.saturating_sub(24) / 2).max(8);
        for share in shown {
            let top = match &share.top {
                Some((label, own)) if share.value != 0 => {
                    let part = percent(*own as f64 / share.value as f64);
                    let room = self.width.saturating_sub(36 + longest).max(12);
                    format!("{DIM}{part} in {}{DIM:#}", fit(&label.text, room))
                }
                _ => String::new(),
            };
            writeln!(
                out,
                "  {} {:>11}  {:<longest$}  {top}",
                percent(tree.share(share.value)),
                value(share.value, self.unit()),
                term::clip(&name_of(share), longest),
            )?;
        }
        if let Some(more @ 1..) = self.report.threads.len().checked_sub(self.report.args.top) {
            writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
        }
        Ok(())
    }

    fn next_steps(&self, out: &mut impl Write) -> Result<()> {
        let tree = &self.report.tree;
        let method = self.report.hot.iter().find(|hot| !tree.label(hot.label).is_special());
        let file = &self.report.args.file;
        writeln!(out)?;
        if let Some((format, _)) = Format::of_path(file).filter(|(format, _)| !format.is_read()) {
            let (file, about) = (quoted(file), format.about());
            writeln!(out, "{DIM}{file}: {about}.{DIM:#}")?;
            return Ok(writeln!(
                out,
                "{DIM}`tare report` can be asked more of a .tare file.{DIM:#}"
            )?);
        }
        let file = quoted(file);
        if let Some(hot) = method.filter(|_| self.report.args.view.by == By::Method) {
            let name = super::bare(&tree.label(hot.label).text);
            let short: Vec<&str> = name.rsplitn(3, '.').take(2).collect();
            let short: Vec<&str> = short.into_iter().rev().collect();
            let text = format!("tare report {file} --method '{}'", plain(&short.join(".")));
            writeln!(out, "{DIM}Its callers and callees:  {text}{DIM:#}")?;
        }
        Ok(writeln!(out, "{DIM}All that can be asked:    tare report --help{DIM:#}")?)
    }
}

/// How a run was sampled, if it was: by what, how often, how much of it.
fn sampled(run: &RunInfo) -> Option<String> {
    let get = |key: &str| run.options.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
    let mut text = format!("sampled by {} every {}", get("engine")?, get("interval")?);
    let mut add = |key: &str, before: &str, after: &str| {
        if let Some(value) = get(key) {
            text.push_str(&format!("{before}{value}{after}"));
        }
    };
    add("interval got", " (", " got)");
    add("samples", ": ", " samples");
    add("threads seen", " of ", " threads");
    add("overruns", ", ", " overruns");
    add("samples of idle threads", ", ", " of them of threads that had not run since");
    add("sampled CPU time", "; ", " of CPU time");
    let process = if get("sampled CPU time").is_some() {
        " of the process's "
    } else {
        "; the process used "
    };
    add(
        "CPU time of the process",
        process,
        if process.starts_with(';') { " of CPU time" } else { "" },
    );
    Some(text)
}

/// A name with a mark of what is not Java.
pub fn name(kind: LabelKind, text: &str, room: usize) -> String {
    let mark = match kind {
        LabelKind::Method(MethodKind::Native) => " (native)",
        LabelKind::Method(MethodKind::Kernel) => " (kernel)",
        _ => "",
    };
    let style = if matches!(kind, LabelKind::Method(MethodKind::Special) | LabelKind::Folded) {
        DIM
    } else {
        anstyle::Style::new()
    };
    format!("{style}{}{mark}{style:#}", fit(text, room.saturating_sub(mark.len())))
}

/// A path as a shell takes it, and as no command takes it for a flag.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Lines of whole words; a word that is longer than a line is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let word = term::clip(word, width.max(1));
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] = word;
        } else if lines[last].chars().count() + 1 + word.chars().count() <= width {
            lines[last].push(' ');
            lines[last].push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_a_shell_would_part_them() {
        let check = |path: &str, text: &str| assert_eq!(quoted(Path::new(path)), text);
        check("/tmp/x-1.tare", "/tmp/x-1.tare");
        check("my run.tare", "'my run.tare'");
        check("it's.tare", r"'it'\''s.tare'");
        check("-x.tare", "./-x.tare");
    }
}
