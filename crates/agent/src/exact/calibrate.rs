//! What probes cost in this JVM, at this moment: measured by running them around work of known
//! length.
//!
//! A processor does several things at a time, so a probe costs less beside work that waits for
//! itself (*narrow*) than beside work that keeps the processor busy (*wide*), and the clock is read
//! while such work is still under way. Therefore there is no single figure: probes are put around
//! both kinds, at several lengths, and the table goes to the front end, which makes bounds of it.
//! Each figure is the best of several batches, since others on the machine can only slow us down.
//! What the table is used for is told in docs/internals/times.md.

use super::clock::{nanos, probe_clock};
use super::inject::{self, Part, Runtime};
use super::trace::tier;
use super::{Recording, locked};
use crate::jvm::{Jni, Jvmti};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// When what probes cost is measured again, after the start: the JVM compiles better what has run
/// for a while, and the machine may have become busier, or less so.
const CALIBRATIONS: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];

/// The JVM needs a while to compile the probes as well as it can, and longer when it is busy. If it
/// does not tell what is compiled, probes slower than this are not.
const WARM_UP: Duration = Duration::from_millis(80);
const WARM_UP_MOST: Duration = Duration::from_secs(1);
const SLOW_PROBE_NS: i64 = 60;
/// While the program runs, so much of it at a time: the thread that does it has others to serve.
const WARM_UP_SLICE: Duration = Duration::from_millis(5);
/// And after so long no more: what is known already stays.
const GIVEN_UP: Duration = Duration::from_secs(8);

/// Steps of work; a step of narrow work takes about a nanosecond, one of wide work less than half.
const STEPS: [i32; 9] = [0, 4, 8, 16, 32, 64, 128, 256, 512];
const BATCHES: u32 = 10;
/// A batch is made so long, in rounds and at most in time.
const ROUNDS: i32 = 500;
const BATCH_NS: f64 = 300_000.0;
/// In a trace, what is kept for the front end: few, since a ring may be small.
const TRACED_ROUNDS: i32 = 64;
const COLD_TRACED_ROUNDS: i32 = 16;
/// After so many traces what is cold might be compiled.
const COLD_TRACES: u32 = 5;
/// So few that the JVM does not compile what is called, ever: a method of its own does this once.
const COLD_ROUNDS: i32 = 30;
const COLD_BATCHES: u32 = 3;

/// The forms of `TareCalibration.calibrate`.
#[derive(Clone, Copy)]
enum Form {
    Bare = 0,
    Timed = 1,
    Chained = 2,
    Counted = 3,
    CountedLeaf = 4,
    ColdBare = 5,
    ColdTimed = 6,
    Paired = 7,
    Virtual = 8,
    ColdVirtual = 9,
    ColdLoop = 10,
    /// In a trace; wide means methods that are not static.
    Traced = 11,
    ColdTraced = 12,
}

impl Form {
    /// The methods that are to be compiled, with what they call, before this is measured.
    fn methods(self) -> &'static [&'static str] {
        match self {
            Form::Timed => &["timed"],
            Form::Chained => &["chained"],
            Form::Paired => &["paired"],
            Form::Counted => &["counted"],
            Form::CountedLeaf => &["countedLeaf"],
            Form::Virtual => &["virtual"],
            Form::Traced => &["tracedRounds", "staticRounds"],
            Form::Bare => &["bare", "work"],
            Form::ColdBare
            | Form::ColdTimed
            | Form::ColdVirtual
            | Form::ColdLoop
            | Form::ColdTraced => &[],
        }
    }
}

/// Nanoseconds per call: in all, and what the outer and the inner of two probed methods measured.
#[derive(Clone, Copy)]
struct Cost {
    all: f64,
    outer: f64,
    inner: f64,
}

/// What a calibration found.
#[derive(Clone, Default)]
pub struct Table {
    /// Whether all of it was compiled, as far as is known.
    warm: bool,
    /// What one call costs in probes, at least, in picoseconds.
    pub probe_ps: u64,
    /// For the front end, one figure or point per line; crates/protocol/PROTOCOL.md.
    pub lines: Vec<String>,
}

/// What calls cost that the interpreter does: in probes, inside the callee's time and outside; and
/// without any, of methods that are not static and of static ones. Measured once in a JVM's life,
/// because whoever is called often is compiled.
static COLD: OnceLock<(f64, f64)> = OnceLock::new();
static COLD_CALLS: OnceLock<[f64; 2]> = OnceLock::new();

impl Recording {
    /// Before anything is woven. It holds up nobody but the one who asked for the recording.
    pub(super) fn calibrate_first(&self, jni: Jni, runtime: Runtime) {
        let calibrator = self.calibrator(jni, runtime);
        let warm = calibrator.warm_up(WARM_UP_MOST);
        self.calibrate(&calibrator, warm);
    }

    /// To be called again and again; measures when it is time and the probes are compiled. They may
    /// not be: when the first class of a JVM is changed, HotSpot throws all its code away.
    pub(super) fn calibrate_again(&self, jni: Jni) {
        let done = locked(&self.calibration).1 as usize;
        let due = done.checked_sub(1).and_then(|done| CALIBRATIONS.get(done));
        let Some(over) = due.and_then(|due| self.since.elapsed().checked_sub(*due)) else { return };
        let Ok(runtime) = inject::runtime(jni) else { return };
        let calibrator = self.calibrator(jni, runtime);
        self.step_aside(jni, false);
        let warm = calibrator.warm_up(WARM_UP_SLICE);
        if warm || over > GIVEN_UP {
            self.calibrate(&calibrator, warm);
        }
        self.step_aside(jni, true);
    }

    /// In a trace: calls of empty methods, whose records tell the front end what each sequence of
    /// transitions costs, and what calls cost without any probe.
    pub(super) fn calibrate_trace(&self, jni: Jni, runtime: Runtime) {
        static TRACES: AtomicU32 = AtomicU32::new(0);
        let calibrator = self.calibrator(jni, runtime);
        calibrator.warm_up_trace();
        let mut lines = calibrator.calls();
        lines.push(format!("clock {}", picos(clock_cost())));
        let probe_ps = calibrator.trace_probe().map_or(0, |cost| picos(cost).max(0));
        let probe_ps = probe_ps.unsigned_abs();
        *locked(&self.calibration) = (Table { warm: true, probe_ps, lines }, 0);
        for wide in [0, 1] {
            calibrator.run(Form::Traced, wide, TRACED_ROUNDS, 0);
            if TRACES.load(Relaxed) < COLD_TRACES {
                calibrator.run(Form::ColdTraced, wide, COLD_TRACED_ROUNDS, 0);
            }
        }
        TRACES.fetch_add(1, Relaxed);
        jni.call_static(runtime[Part::Probe], c"ended");
    }

    fn calibrator(&self, jni: Jni, runtime: Runtime) -> Calibrator {
        Calibrator { jvmti: self.jvmti, jni, runtime, timed: self.plan.is_timed() }
    }

    /// Measures what probes cost. What was measured of compiled probes is better than of others.
    fn calibrate(&self, calibrator: &Calibrator, warm: bool) {
        let table = Table { warm, ..calibrator.measure() };
        // The thread's tree is given back; what was measured in it belongs to nobody.
        calibrator.jni.call_static(calibrator.runtime[Part::Probe], c"ended");
        let mut known = locked(&self.calibration);
        if !table.lines.is_empty() && (table.warm || !known.0.warm) {
            known.0 = table;
        }
        known.1 += 1;
    }
}

struct Calibrator {
    jvmti: Jvmti,
    jni: Jni,
    runtime: Runtime,
    timed: bool,
}

impl Calibrator {
    /// Runs the probes until they are compiled, or for so long; whether they are.
    fn warm_up(&self, most: Duration) -> bool {
        const TIMED: &[Form] = &[
            Form::Timed,
            Form::Chained,
            Form::Paired,
            Form::Counted,
            Form::CountedLeaf,
            Form::Bare,
            Form::Virtual,
        ];
        const COUNTED: &[Form] = &[Form::Counted, Form::CountedLeaf, Form::Bare];
        let forms = if self.timed { TIMED } else { COUNTED };
        let began = Instant::now();
        loop {
            let mut slowest = 0;
            for form in forms {
                for (wide, steps) in [(0, 8), (1, 8), (0, 0)] {
                    let Some(time) = self.run(*form, wide, ROUNDS, steps) else { return false };
                    slowest = slowest.max(time);
                }
            }
            // A call of a call is in it, at most.
            let plausible = || slowest < 2 * i64::from(ROUNDS) * SLOW_PROBE_NS;
            let warm = self
                .are_compiled(forms)
                .unwrap_or_else(|| plausible() && began.elapsed() > WARM_UP.min(most));
            if warm || began.elapsed() > most {
                return warm;
            }
        }
    }

    /// Whether new calls of what these forms run are in code of the last compiler. `None` if the
    /// JVM does not say.
    fn are_compiled(&self, forms: &[Form]) -> Option<bool> {
        const LAST: [u8; 2] = [1, 4];
        let methods = self.jvmti.methods(self.runtime[Part::Calibration].class())?;
        let wanted = |name: &[u8]| {
            let mut names = forms.iter().flat_map(|form| form.methods());
            names.any(|wanted| wanted.as_bytes() == name)
        };
        let mut tiers = methods.iter().filter(|m| wanted(&m.name)).map(|m| tier(self.jvmti, m.id));
        tiers.try_fold(true, |all, tier| Some(all && LAST.contains(&tier?)))
    }

    /// Until the probes of traces are compiled. Nobody reads yet what they write meanwhile.
    fn warm_up_trace(&self) {
        let began = Instant::now();
        while began.elapsed() < WARM_UP_MOST {
            let done = [0, 1].map(|wide| self.traced(wide));
            let calls = [Form::Bare, Form::Virtual].map(|form| self.run(form, 0, ROUNDS, 0));
            if done.contains(&None) || calls.contains(&None) {
                return;
            }
            let plausible = || done.iter().flatten().all(|cost| *cost < SLOW_PROBE_NS as f64);
            let warm = self.are_compiled(&[Form::Traced, Form::Bare, Form::Virtual]);
            if warm.unwrap_or_else(|| plausible() && began.elapsed() > WARM_UP) {
                return;
            }
        }
    }

    /// What a traced call costs, in nanoseconds, of a batch whose records are forgotten.
    fn traced(&self, wide: i32) -> Option<f64> {
        let all = self.run(Form::Traced, wide, TRACED_ROUNDS, 0)?;
        self.jni.call_static(self.runtime[Part::Trace], c"forgotten");
        // Three calls in each round.
        Some(all as f64 / f64::from(TRACED_ROUNDS * 3))
    }

    fn trace_probe(&self) -> Option<f64> {
        let costs: Option<Vec<f64>> = (0..BATCHES).map(|_| self.traced(0)).collect();
        costs?.into_iter().reduce(f64::min)
    }

    fn measure(&self) -> Table {
        let mut table = Table::default();
        let Some(counted) = self.marginal(Form::Counted) else { return table };
        table.probe_ps = picos(counted).max(0).unsigned_abs();
        table.lines.push(format!("counted {}", picos(counted)));
        if let Some(leaf) = self.marginal(Form::CountedLeaf) {
            table.lines.push(format!("counted-leaf {}", picos(leaf)));
        }
        if !self.timed {
            return table;
        }
        table.lines.push(format!("clock {}", picos(clock_cost())));
        for (wide, name) in [(0, "narrow"), (1, "wide")] {
            for steps in STEPS {
                let bare = self.best(Form::Bare, wide, steps);
                let (Some(bare), Some(timed)) = (bare, self.best(Form::Timed, wide, steps)) else {
                    return table;
                };
                if steps == 0 && wide == 0 {
                    table.probe_ps = picos(timed.all - bare.all).max(0).unsigned_abs();
                }
                table.lines.push(format!(
                    "{name} {} {} {}",
                    picos(bare.all),
                    picos(timed.outer),
                    picos(timed.all - timed.outer)
                ));
            }
        }
        if let Some(chained) = self.best(Form::Chained, 0, 0) {
            table.lines.push(format!("chained {}", picos(chained.outer - chained.inner)));
        }
        if let Some(paired) = self.best(Form::Paired, 0, 0) {
            table.lines.push(format!("paired {}", picos(paired.outer - paired.inner)));
        }
        if let Some((inside, outside)) = self.cold() {
            table.lines.push(format!("cold {} {}", picos(inside), picos(outside)));
        }
        table.lines.extend(self.calls());
        table
    }

    /// What a call costs when nothing is woven, which no compensation may take away: compiled but
    /// not inlined, or by the interpreter; of a static method or of another.
    fn calls(&self) -> Vec<String> {
        let compiled = |form| self.best(form, 0, 0).map(|cost| cost.all);
        let cold = self.cold_calls();
        let found = [
            ("call", compiled(Form::Virtual)),
            ("call-static", compiled(Form::Bare)),
            ("cold-call", cold.map(|cold| cold[0])),
            ("cold-call-static", cold.map(|cold| cold[1])),
        ];
        let told = found.into_iter().filter_map(|(name, cost)| Some((name, picos(cost?).max(0))));
        told.map(|(name, cost)| format!("{name} {cost}")).collect()
    }

    /// What the interpreter takes for a call in probes, inside the callee's time and outside.
    fn cold(&self) -> Option<(f64, f64)> {
        if let Some(known) = COLD.get() {
            return Some(*known);
        }
        let (bare, timed) = (self.best_cold(Form::ColdBare)?, self.best_cold(Form::ColdTimed)?);
        let inside = timed.outer;
        Some(*COLD.get_or_init(|| (inside, timed.all - bare.all - inside)))
    }

    /// What it takes for a call without probes.
    fn cold_calls(&self) -> Option<[f64; 2]> {
        if let Some(known) = COLD_CALLS.get() {
            return Some(*known);
        }
        let around = self.best_cold(Form::ColdLoop)?.all;
        let call = |form| Some(self.best_cold(form)?.all - around);
        let found = [call(Form::ColdVirtual)?, call(Form::ColdBare)?];
        Some(*COLD_CALLS.get_or_init(|| found))
    }

    fn best_cold(&self, form: Form) -> Option<Cost> {
        self.batches(form, 0, COLD_ROUNDS, 0, COLD_BATCHES)
    }

    /// What a form costs more than no probes at all, around nothing.
    fn marginal(&self, form: Form) -> Option<f64> {
        let bare = self.best(Form::Bare, 0, 0)?;
        Some(self.best(form, 0, 0)?.all - bare.all)
    }

    fn best(&self, form: Form, wide: i32, steps: i32) -> Option<Cost> {
        let one = self.run(form, wide, 1, steps)?;
        let rounds = (BATCH_NS / (one.max(1) as f64)).clamp(20.0, f64::from(ROUNDS)) as i32;
        self.batches(form, wide, rounds, steps, BATCHES)
    }

    /// The quickest of several batches.
    fn batches(
        &self,
        form: Form,
        wide: i32,
        rounds: i32,
        steps: i32,
        batches: u32,
    ) -> Option<Cost> {
        let mut best: Option<Cost> = None;
        for _ in 0..batches {
            self.measured()?;
            let (clock, began) = (probe_clock(), nanos());
            let all = self.run(form, wide, rounds, steps)?;
            let rate = probe_clock().saturating_sub(clock) as f64
                / nanos().saturating_sub(began).max(1) as f64;
            let (outer, inner) = self.measured()?;
            let per_call = |ticks: i64| ticks as f64 / rate.max(1e-9) / f64::from(rounds);
            let all = all as f64 / f64::from(rounds);
            if best.is_none_or(|best| all < best.all) {
                best = Some(Cost { all, outer: per_call(outer), inner: per_call(inner) });
            }
        }
        best
    }

    /// Nanoseconds for so many calls.
    fn run(&self, form: Form, wide: i32, rounds: i32, steps: i32) -> Option<i64> {
        let class = self.runtime[Part::Calibration];
        self.jni.call_static_ints(class, c"calibrate", [form as i32, wide, rounds, steps])
    }

    /// What the probes measured since this was last asked, in ticks.
    fn measured(&self) -> Option<(i64, i64)> {
        if !self.timed {
            return Some((0, 0));
        }
        let level = |level| {
            self.jni.call_static_ints(self.runtime[Part::Calibration], c"calibrated", [level])
        };
        Some((level(0)?, level(1)?))
    }
}

/// What it takes to read the probes' clock, in nanoseconds.
fn clock_cost() -> f64 {
    const READS: u32 = 200;
    let batch = || {
        let began = Instant::now();
        for _ in 0..READS {
            std::hint::black_box(probe_clock());
        }
        began.elapsed().as_nanos() as f64 / f64::from(READS)
    };
    (0..BATCHES).map(|_| batch()).fold(f64::MAX, f64::min)
}

fn picos(nanos: f64) -> i64 {
    (nanos * 1000.0).round() as i64
}
