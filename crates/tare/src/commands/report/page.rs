//! The page for people: findings first, then what to look at.

use super::classes;
use super::jni_refs;
use super::list::{self, Outside, Which};
use super::locks::{self, Extent};
use super::{Report, head, labels_like, lengths, pauses, sites, slowest, tree};
use crate::cli::By;
use crate::figures::{fit, percent, value, wrap};
use crate::stdout_file;
use crate::term::{self, BAD, BOLD, DIM, GOOD, WARN, plain};
use anyhow::Result;
use std::io::Write as _;
use std::path::Path;
use tare_analysis::{FindingKind, LabelId, LabelKind, NodeId, ThreadShare, Tree, neighbours};
use tare_formats::Format;
use tare_profile::{MethodKind, ThreadKind, Unit};

/// Unless told otherwise the tree is folded at the first of these shares that leaves a page of it.
const MIN_SHARES: [f64; 5] = [0.01, 0.02, 0.03, 0.05, 0.1];
const PAGE: usize = 60;
/// However little is folded by the last of them, unless it is asked for there are no more lines.
const MOST_LINES: usize = 500;
/// More methods than this are not shown around, however many a pattern means.
const METHODS: usize = 5;

/// A terminal of fewer columns than this gets fewer columns of figures, so that names have room.
pub const NARROW: usize = 100;

pub fn print(report: &Report<'_>) -> Result<()> {
    let width = term::width().unwrap_or(usize::MAX);
    let mut text = Vec::new();
    write(&Page { report, width, brief: false }, &mut text)?;
    if report.args.brief && term::is_longer_than_screen(&text) {
        text.clear();
        write(&Page { report, width, brief: true }, &mut text)?;
    }
    term::show(&text, !report.args.no_pager)
}

fn write(page: &Page<'_>, out: &mut Vec<u8>) -> Result<()> {
    let Page { report, width, brief } = *page;
    head::print(out, report, width)?;
    if let Some(text) = &report.args.method {
        return page.around(out, text);
    }
    if report.args.threads {
        return page.threads(out);
    }
    page.findings(out)?;
    if report.args.locks {
        return locks::print(out, report, Extent::All, false, width);
    }
    if report.args.classes || classes::is_of_classes(report) {
        classes::print(out, report, width, brief)?;
    }
    if report.args.classes {
        return Ok(());
    }
    jni_refs::print(out, report, width)?;
    if report.args.jni_refs {
        return Ok(());
    }
    if report.args.slowest {
        return slowest::print(out, report, width);
    }
    if report.args.gc {
        return pauses::print(out, report, true, width);
    }
    super::regions::print(out, report, width)?;
    super::climb::print(out, report, width)?;
    if pauses::is_worth(report) {
        pauses::print(out, report, false, width)?;
    }
    let extent = locks::extent(report);
    if let Some(extent) = extent {
        locks::print(out, report, extent, brief, width)?;
    }
    if report.tree.is_empty() {
        return Ok(());
    }
    let outside = Outside::of(report, &report.args.view.filter().shape())?;
    match report.sites() {
        Some(memory) => sites::print(out, report, memory, width)?,
        // Locks by blocked time are what that list would have.
        None if extent == Some(Extent::Page) || classes::is_of_classes(report) => {}
        None => list::print(out, report, &outside, Which::Itself, width)?,
    }
    if brief {
        return page.next_steps(out);
    }
    list::print(out, report, &outside, Which::WithCalled, width)?;
    lengths::print(out, report, width)?;
    writeln!(out)?;
    let title =
        if report.args.bottom_up { "Callers, from the hot methods up" } else { "Call tree" };
    page.title(out, title)?;
    let (shown, min_share) = page.tree();
    let asked = report.args.full || report.args.view.min_share.is_some();
    let most = if asked { usize::MAX } else { MOST_LINES };
    let shape = tree::Shape { width, min_share, full: report.args.full, most };
    tree::print(out, &shown, page.unit(), &shape)?;
    if min_share > 0.0 {
        let below = percent(min_share);
        let below = below.trim();
        writeln!(out, "{DIM}  what is below {below} is folded; --min-share sets it{DIM:#}")?;
    }
    page.next_steps(out)
}

struct Page<'a> {
    report: &'a Report<'a>,
    width: usize,
    /// Without the tree.
    brief: bool,
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
        let first = shown(MIN_SHARES[0]);
        let folded = |share: f64| match self.report.args.bottom_up {
            true => shown(share),
            false => first.fold_smaller(share),
        };
        let shares = MIN_SHARES.into_iter().map(|share| (folded(share), share));
        let fits = |tree: &Tree, share: f64| {
            tree::lines(tree, share, self.report.args.full, tree::Indent::ANY).len() <= PAGE
        };
        shares
            .into_iter()
            .find(|(tree, share)| fits(tree, *share))
            .unwrap_or_else(|| (folded(last), last))
    }

    fn title(&self, out: &mut Vec<u8>, text: &str) -> Result<()> {
        Ok(writeln!(out, "{BOLD}{text}{BOLD:#}")?)
    }

    fn findings(&self, out: &mut Vec<u8>) -> Result<()> {
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

    fn name(&self, label: LabelId, room: usize) -> String {
        name(self.report.tree.label(label).kind, &self.report.tree.label(label).text, room)
    }

    fn around(&self, out: &mut Vec<u8>, text: &str) -> Result<()> {
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
            self.title(out, &fit(&tree.label(*label).text, self.width))?;
            writeln!(out, "{}  itself", figures(around.own))?;
            writeln!(out, "{}  with all it called", figures(around.total))?;
            for (title, list) in [("Called by", &around.callers), ("Calls", &around.callees)] {
                if list.is_empty() {
                    continue;
                }
                writeln!(out, "{title}")?;
                for (other, value) in list.iter().take(self.report.args.top()) {
                    let nobody = *other == tree.label_id(NodeId::ROOT);
                    let room = self.width.saturating_sub(24).max(12);
                    let text = match nobody {
                        true => "[nobody: the stack begins here]".to_owned(),
                        false => self.name(*other, room),
                    };
                    writeln!(out, "{}  {text}", figures(*value))?;
                }
                if let Some(more @ 1..) = list.len().checked_sub(self.report.args.top()) {
                    writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
                }
            }
        }
        if let Some(more @ 1..) = labels.len().checked_sub(METHODS) {
            writeln!(out, "\n{DIM}{text:?} means {more} more; a longer name means fewer{DIM:#}")?;
        }
        Ok(())
    }

    fn threads(&self, out: &mut Vec<u8>) -> Result<()> {
        let (profile, tree) = (self.report.profile, &self.report.tree);
        self.title(out, "Threads")?;
        let name_of = |share: &ThreadShare| {
            let kind = match profile.threads.get(share.thread).kind {
                ThreadKind::Java => "",
                ThreadKind::Virtual => " (virtual)",
                ThreadKind::Vm => " (of the JVM)",
                ThreadKind::Native => " (native)",
            };
            profile.thread_name(share.thread) + kind
        };
        let aside = self.report.aside;
        let idle = aside.and_then(|aside| aside.idle.as_ref());
        let is_native = |share: &&ThreadShare| {
            let kind = profile.threads.get(share.thread).kind;
            aside.is_some_and(|aside| !aside.parts.is_empty())
                && matches!(kind, ThreadKind::Vm | ThreadKind::Native)
        };
        let is_idle = |share: &&ThreadShare| {
            idle.is_some_and(|idle| share.value == 0 || idle.threads.contains(&share.thread))
        };
        let all = self.report.threads.iter();
        let of_jvm: Vec<&ThreadShare> = all.clone().filter(is_native).collect();
        let listed: Vec<&ThreadShare> =
            all.filter(|share| !is_native(share) && !is_idle(share)).collect();
        let shown = listed.iter().take(self.report.args.top());
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
        if let Some(more @ 1..) = listed.len().checked_sub(self.report.args.top()) {
            writeln!(out, "{DIM}  … {more} more; --top N shows them{DIM:#}")?;
        }
        let sum = of_jvm.iter().fold(0_i64, |sum, share| sum.saturating_add(share.value));
        if sum != 0 {
            let (share, count) = (percent(tree.share(sum)), of_jvm.len());
            let sum = value(sum, self.unit());
            writeln!(out, "  {share} {sum:>11}  {count} of the JVM itself; --native shows each")?;
        }
        if let Some(idle) = idle {
            let text = idle.told(tree.sum(0));
            for line in wrap(&text, self.width.saturating_sub(2)) {
                writeln!(out, "  {line}")?;
            }
        }
        Ok(())
    }

    fn next_steps(&self, out: &mut Vec<u8>) -> Result<()> {
        let tree = &self.report.tree;
        // The class of a lock is called by nobody.
        let is_code = |label: LabelId| {
            let label = tree.label(label);
            let is_lock = label.is_class() && locks::is_of_locks(self.report);
            !label.is_special() && !is_lock
        };
        let method = self.report.hot.iter().find(|hot| is_code(hot.label));
        let file = &self.report.args.file;
        if stdout_file::is_passed_on(file) {
            return Ok(());
        }
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
        if self.brief {
            writeln!(out, "{DIM}With the call tree:       tare report {file}{DIM:#}")?;
        }
        let memory = self.report.memory.as_ref().filter(|memory| memory.has_classes());
        if memory.is_some() && self.report.sites().is_none() {
            writeln!(
                out,
                "{DIM}What is allocated, and stays:  tare report {file} --metric alloc{DIM:#}"
            )?;
        }
        if self.report.classes.is_some() {
            writeln!(out, "{DIM}All about classes:        tare report {file} --classes{DIM:#}")?;
        }
        if !self.report.slowest.is_empty() {
            writeln!(out, "{DIM}The slowest calls:        tare report {file} --slowest{DIM:#}")?;
        }
        if locks::extent(self.report).is_some() {
            writeln!(out, "{DIM}All about locks:          tare report {file} --locks{DIM:#}")?;
        }
        if let Some(hot) = method.filter(|_| self.report.args.view.by() == By::Method) {
            let name = super::bare(&tree.label(hot.label).text);
            let short: Vec<&str> = name.rsplitn(3, '.').take(2).collect();
            let short: Vec<&str> = short.into_iter().rev().collect();
            let text = format!("tare report {file} --method '{}'", plain(&short.join(".")));
            // A command stays whole, to be copied.
            let gap = if text.chars().count() + 26 > self.width { "\n  " } else { "  " };
            writeln!(out, "{DIM}Its callers and callees:{gap}{text}{DIM:#}")?;
        }
        Ok(writeln!(out, "{DIM}All that can be asked:    tare report --help{DIM:#}")?)
    }
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
