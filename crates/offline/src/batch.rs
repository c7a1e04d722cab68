//! Weaves class after class with the same settings, and keeps count of what came of it.
//!
//! Ids run on from class to class in the order in which classes come, so the same input gives the
//! same output.

use crate::DEFAULT_RUNTIME;
use crate::modes::{Mode, Modes, default_targets};
use crate::{manifest, module, portable};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_classfile::attributes::LineNumber;
use tare_classfile::mutf8::decode_lossy;
use tare_classfile::{ClassFile, Code};
use tare_java_names::NotWoven;
use tare_weaver::{
    Blocks, ClassError, Line, MethodOutcome, MethodPlan, Options, Outcome, ProbeError, Probes,
    RegionPlan, Report, Weaver,
};

const ALREADY: &str = "instrumented already";

/// What is woven, and what it calls.
#[derive(Clone, Debug)]
pub struct Settings {
    pub modes: Modes,
    /// Internal name of the runtime class; it is never woven itself.
    pub runtime: String,
    pub allow_huge: bool,
    /// With regions: the lines to time. Without it, the middle half of each method's lines.
    pub lines: Option<(Line, Line)>,
    /// Bytecodes after which a loop head takes the count to where a reader finds it.
    pub threshold: u32,
    /// With calls: owner, name, descriptor and id of what to look for.
    pub targets: Vec<(String, String, String, u32)>,
}

impl Settings {
    pub fn new(modes: Modes) -> Self {
        Settings {
            modes,
            runtime: DEFAULT_RUNTIME.to_owned(),
            allow_huge: false,
            lines: None,
            threshold: 10_000,
            targets: default_targets(),
        }
    }
}

/// Sums over all classes of a batch.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub classes: u64,
    /// Classes of which at least one method changed.
    pub changed: u64,
    /// Methods with code.
    pub methods: u64,
    pub woven: u64,
    /// Methods in which the modes have nothing to do, as in one that allocates nothing.
    pub untouched: u64,
    /// Methods that were left as they were, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Classes that were left as they were as a whole, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Classes that were not asked for.
    pub left_out: u64,
    /// Module descriptors that require the runtime's module now.
    pub modules: u64,
    /// Files of signatures that were left out of jars.
    pub signatures: u64,
    /// What was found in a directory and is no input, with the reason.
    pub passed_by: Vec<(PathBuf, &'static str)>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Time in the weaver alone.
    pub time: Duration,
    /// The class that took longest.
    pub slowest: (Duration, String),
}

/// What became of one method that has code.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: u32,
    pub class: String,
    pub name: String,
    pub descriptor: String,
    /// `woven`, `untouched`, or the name of the refusal.
    pub outcome: &'static str,
    /// Why, when it was refused.
    pub reason: Option<String>,
    /// Ids of its allocation sites, first and one past the last.
    pub sites: (u32, u32),
}

/// Which classes are woven, by their internal names, and why others are not.
pub type Wanted = Box<dyn Fn(&str) -> Result<(), NotWoven>>;

pub struct Batch {
    settings: Settings,
    /// For programs that run without an agent: which of their classes are woven.
    portable: Option<Wanted>,
    probes: Probes,
    weaver: Weaver,
    next_id: u32,
    next_site: u32,
    pub totals: Totals,
    /// Filled when [`Batch::keep_rows`] was called.
    pub rows: Vec<Row>,
    keep: bool,
    /// Set by whoever wants no more of it.
    stop: Option<Arc<AtomicBool>>,
}

impl Batch {
    pub fn new(settings: Settings) -> Result<Self, ProbeError> {
        let set = settings.modes.probes(&settings.runtime, settings.threshold, &settings.targets);
        Ok(Self::with(Probes::new(set)?, settings, None))
    }

    /// Counts calls and bytecodes of the classes that are wanted, by the portable runtime.
    pub fn portable(blocks: Blocks, allow_huge: bool, wanted: Wanted) -> Result<Self, ProbeError> {
        let precise = !matches!(blocks, Blocks::Default);
        let probes = Probes::new(portable::probes(blocks))?;
        let modes = Modes::counting(precise);
        let runtime = portable::PROBE.to_owned();
        let settings = Settings { runtime, allow_huge, ..Settings::new(modes) };
        Ok(Self::with(probes, settings, Some(wanted)))
    }

    fn with(probes: Probes, settings: Settings, portable: Option<Wanted>) -> Self {
        Batch {
            probes,
            weaver: Weaver::new(Options { allow_huge: settings.allow_huge }),
            settings,
            portable,
            next_id: 0,
            next_site: 0,
            totals: Totals::default(),
            rows: Vec::new(),
            keep: false,
            stop: None,
        }
    }

    /// Files are woven until this is set; then nothing arrives, and nothing is left behind.
    pub fn stop_at(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Remembers from now on what became of each method.
    pub fn keep_rows(&mut self) {
        self.keep = true;
    }

    /// The woven class, or `None` if it stays as it is.
    pub fn weave(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.totals.bytes_in += bytes.len() as u64;
        if let Some(as_module) = self.descriptor(bytes) {
            self.totals.bytes_out += as_module.as_ref().map_or(bytes.len(), Vec::len) as u64;
            return as_module;
        }
        self.totals.classes += 1;
        match self.try_weave(bytes) {
            Ok(Outcome::Woven { bytes, .. }) => {
                self.totals.changed += 1;
                self.totals.bytes_out += bytes.len() as u64;
                Some(bytes)
            }
            Ok(Outcome::Unchanged(_)) => {
                self.totals.bytes_out += bytes.len() as u64;
                None
            }
            Err(error) => {
                *self.totals.failed.entry(error.to_string()).or_default() += 1;
                self.totals.bytes_out += bytes.len() as u64;
                None
            }
        }
    }

    /// A module's descriptor, which has no code: changed, or to stay as it is. `None` for a class.
    fn descriptor(&mut self, bytes: &[u8]) -> Option<Option<Vec<u8>>> {
        self.portable.as_ref()?;
        let class = ClassFile::parse(bytes).ok().filter(module::is_module)?;
        match module::requiring(&class, portable::MODULE) {
            Ok(changed) => {
                self.totals.modules += u64::from(changed.is_some());
                Some(changed)
            }
            Err(error) => {
                *self.totals.failed.entry(format!("module descriptor: {error}")).or_default() += 1;
                Some(None)
            }
        }
    }

    /// Whether a class is not to be woven for the portable runtime, which is counted.
    fn leaves(&mut self, class: &ClassFile<'_>) -> bool {
        let Some(wanted) = &self.portable else { return false };
        let name = class.name().map(decode_lossy).unwrap_or_default();
        match wanted(&name) {
            Ok(()) => {}
            Err(refusal) if refusal.is_refusal() => {
                *self.totals.failed.entry(refusal.to_string()).or_default() += 1;
                return true;
            }
            Err(_) => {
                self.totals.left_out += 1;
                return true;
            }
        }
        let calls_probes = |index| {
            class.pool.class_name(index).is_ok_and(|name| name == portable::PROBE.as_bytes())
        };
        let already = (1..class.pool.count()).any(calls_probes);
        if already {
            *self.totals.failed.entry(ALREADY.to_owned()).or_default() += 1;
        }
        already
    }

    /// The manifest of a jar from which the runtime is so many directories up; `None` if it stays.
    pub(crate) fn manifest(&self, bytes: &[u8], up: usize) -> Option<Vec<u8>> {
        self.portable.as_ref()?;
        manifest::with_class_path(bytes, &format!("{}{}", "../".repeat(up), portable::JAR))
    }

    fn try_weave(&mut self, bytes: &[u8]) -> Result<Outcome, ClassError> {
        let class = ClassFile::parse(bytes)?;
        let class_name = class.name()?;
        if class_name == self.settings.runtime.as_bytes() || self.leaves(&class) {
            return Ok(Outcome::Unchanged(Report::default()));
        }
        let with_regions = self.settings.modes.has(Mode::Regions);
        let lines: Vec<Option<(Line, Line)>> = if with_regions {
            (0..class.methods.len()).map(|at| region_lines(&class, at)).collect()
        } else {
            Vec::new()
        };
        let (first_id, first_site) = (self.next_id, self.next_site);
        let (mut next_id, mut next_site) = (first_id, first_site);
        let asked = self.settings.lines;
        let probes = &self.probes;
        let begun = Instant::now();
        let outcome = self.weaver.weave(bytes, |method| {
            if method.code_len == 0 {
                return None;
            }
            let mut plan = MethodPlan::new(next_id, probes);
            plan.first_site = next_site;
            if let Some(&Some((low, high))) = lines.get(method.index) {
                let region = match asked {
                    None => Some((low, high)),
                    // Of the lines asked for, those that the method may have.
                    Some((first, last)) => (first <= high && last >= low).then_some((first, last)),
                };
                let id = next_id;
                plan.regions.extend(region.map(|(first, last)| RegionPlan { id, first, last }));
            }
            next_id += 1;
            // An allocation takes at least two bytes of code.
            next_site += method.code_len.div_ceil(2) as u32;
            Some(plan)
        });
        let time = begun.elapsed();
        self.next_id = next_id;
        self.next_site = next_site;
        self.totals.time += time;
        if time > self.totals.slowest.0 {
            self.totals.slowest = (time, decode_lossy(class_name).into_owned());
        }
        let outcome = outcome?;
        self.record(&class, outcome.report());
        Ok(outcome)
    }

    fn record(&mut self, class: &ClassFile<'_>, report: &Report) {
        for method in &report.methods {
            if method.outcome != MethodOutcome::NoCode {
                self.totals.methods += 1;
            }
            let (outcome, reason, sites) = match &method.outcome {
                MethodOutcome::Woven { sites, .. } => {
                    self.totals.woven += 1;
                    let first = sites.first().map_or(0, |site| site.id);
                    ("woven", None, (first, first + sites.len() as u32))
                }
                MethodOutcome::Refused(refusal) => {
                    *self.totals.refused.entry(refusal.name()).or_default() += 1;
                    (refusal.name(), Some(refusal.to_string()), (0, 0))
                }
                MethodOutcome::NothingToDo => {
                    self.totals.untouched += 1;
                    ("untouched", None, (0, 0))
                }
                MethodOutcome::NoCode => continue,
            };
            let interesting = self.keep || reason.is_some();
            if let (true, Some(member)) = (interesting, class.methods.get(method.index)) {
                let text = |index| {
                    class.pool.utf8(index).map_or_else(|_| "?".into(), decode_lossy).into_owned()
                };
                self.rows.push(Row {
                    id: method.id,
                    class: class.name().map_or_else(|_| "?".into(), decode_lossy).into_owned(),
                    name: text(member.name_index),
                    descriptor: text(member.descriptor_index),
                    outcome,
                    reason,
                    sites,
                });
            }
        }
    }
}

/// The middle half of the lines on which code of a method stands; none for a method without a line
/// table. A line whose code is empty, as when two lines begin at one offset, is no such line.
fn region_lines(class: &ClassFile<'_>, method: usize) -> Option<(Line, Line)> {
    let code = class.methods.get(method)?.attributes.find(&class.pool, "Code")?;
    let code = Code::parse(&code).ok()?;
    let mut rows = Vec::new();
    for table in code.attributes.iter() {
        if class.pool.utf8(table.name_index).is_ok_and(|name| name == b"LineNumberTable") {
            rows.extend(table.rows::<4>().ok()?.iter().map(|&row| LineNumber::from_row(row)));
        }
    }
    rows.sort_by_key(|row| row.start);
    let last_at_its_offset = rows.chunk_by(|a, b| a.start == b.start).filter_map(<[_]>::last);
    let mut lines: Vec<Line> = last_at_its_offset.map(|row| row.line).filter(|&l| l > 0).collect();
    lines.sort_unstable();
    lines.dedup();
    let (first, last) = (lines.len() / 4, lines.len() * 3 / 4);
    Some((*lines.get(first)?, *lines.get(last.min(lines.len() - 1))?))
}
