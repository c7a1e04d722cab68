//! One session of hooks: what the control thread does for it from its beginning to its end.
//!
//! It ends in this order: the classes are as they were, hooks find nothing, those inside are waited
//! for, the last sums are told.

use super::blocks::{ALL, Blocks, HOOKS, blocks};
use super::budget::{Budget, Seen};
use super::calls::{self, Loss, Shared};
use super::edges::{Edges, step};
use super::kinds::Kinds;
use super::open::Open;
use super::rehearsal::rehearse;
use super::window::Window;
use super::woven::{Method, Woven};
use super::{HookError, TICK, class};
use crate::engines::Jvm;
use crate::kernel;
use crate::stacks::fault_guard;
use crate::stream::joined;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::{Duration, Instant};
use tare_arena::samples::EventHead;
use tare_protocol::{HookPlan, HookStatus};

/// How often sums go out: a batch of calls, of which a front end tells how much they scatter.
const SUMS_EVERY: Duration = Duration::from_millis(100);

/// Histograms and costs, which nobody needs so soon.
const REST_EVERY: u32 = 10;

/// How long the end waits for calls that are still inside.
const PATIENCE: Duration = Duration::from_secs(5);

/// Frames of a stack, for a stream that nobody else has opened.
const DEPTH: u32 = 64;

/// This part of a new hook's calls is told until it is known how many there are.
const AT_FIRST: u64 = ALL / 1024;

/// For this part of the time a hook counts that tells nothing, so that it is known what it takes.
const WAITING: u64 = ALL / 64;

const SECOND: u64 = 1_000_000_000;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A hook that is set. One without a number waits: it tells nothing until it is its turn.
struct Set {
    method: Method,
    slot: usize,
    number: u32,
    text: u32,
    calls: u64,
    window: Window,
}

impl Set {
    fn tells(&self) -> bool {
        self.number != 0
    }
}

/// Owned by the control thread.
pub struct HookSession {
    shared: Arc<Shared>,
    kinds: Kinds,
    blocks: &'static Blocks,
    woven: Option<Woven>,
    set: Vec<Set>,
    budget: Budget,
    texts: HashMap<Method, u32>,
    /// Numbers that were given, also to those who got no hook.
    numbers: u32,
    next_slot: usize,
    next_sums: Instant,
    told_at: u64,
    rounds: u32,
    cost_told: (u64, u64),
    status: HookStatus,
}

impl HookSession {
    /// Begins. After an error everything is as it was.
    pub fn start(jvm: Jvm, plan: &HookPlan) -> Result<(Self, Vec<File>), HookError> {
        let blocks = blocks().ok_or(HookError::Memory)?;
        let (runtime, own_methods) = class(jvm).map_err(HookError::Runtime)?;
        let (stream, files) = joined::join_or_open(jvm, DEPTH, plan.memory)?;
        let kinds = Kinds::declare(&stream).filter(|_| stream.stacks.are_walkable());
        let Some(kinds) = kinds else {
            joined::leave(jvm, &stream);
            return Err(HookError::Stream);
        };
        let woven = match Woven::new(jvm) {
            Ok(woven) => woven,
            Err(why) => {
                joined::leave(jvm, &stream);
                return Err(HookError::Weaving(why));
            }
        };
        let shared = Arc::new(Shared {
            stream,
            open: Open::new(),
            edges: Edges::new(HOOKS + 1),
            numbers: [const { AtomicU32::new(0) }; HOOKS + 1],
            own_methods,
            spent: Default::default(),
            told: Default::default(),
            empty: Default::default(),
            empty_cpu: Default::default(),
            losses: Default::default(),
            control: kernel::gettid(),
        });
        calls::publish(Arc::as_ptr(&shared).cast_mut());
        jvm.jni.call_static_long(runtime, c"begin", blocks.address().cast_signed());
        let costs = rehearse(jvm, runtime, &shared, blocks);
        let status = HookStatus {
            session: NUMBER.fetch_add(1, Relaxed) + 1,
            pass_ps: costs.pass_ps,
            count_ps: costs.count_ps,
            time_ps: costs.time_ps,
            ..HookStatus::default()
        };
        let beside = shared.beside();
        let session = HookSession {
            shared,
            kinds,
            blocks,
            woven: Some(woven),
            set: Vec::new(),
            budget: Budget::new(plan.overhead_ppm, costs, beside),
            texts: HashMap::new(),
            numbers: 0,
            next_slot: 0,
            next_sums: Instant::now() + SUMS_EVERY,
            told_at: kernel::monotonic(),
            rounds: 0,
            cost_told: (0, 0),
            status,
        };
        Ok((session, files))
    }

    /// Just these methods have hooks from now on: those that tell, and those that wait. Classes are
    /// loaded again only if there are others than before.
    pub fn change(
        &mut self,
        jvm: Jvm,
        telling: &[String],
        waiting: &[String],
    ) -> Result<(), HookError> {
        let (telling, waiting) = (methods(telling)?, methods(waiting)?);
        let mut wanted: Vec<Method> = telling.clone();
        wanted.extend(waiting.into_iter().filter(|method| !telling.contains(method)));
        if wanted.len() > HOOKS / 2 {
            return Err(HookError::TooMany(wanted.len()));
        }
        self.silence(|set| telling.contains(&set.method));
        self.status.refused.clear();
        self.status.taken.clear();
        if !self.has_just(&wanted) {
            self.weave(jvm, wanted)?;
        }
        let now = kernel::monotonic();
        let mut set = std::mem::take(&mut self.set);
        for set in set.iter_mut().filter(|set| !set.tells() && telling.contains(&set.method)) {
            self.numbers = self.numbers.saturating_add(1);
            set.number = self.numbers;
            set.text = self.text(&set.method);
            set.calls = self.blocks.calls(set.slot);
            set.window = Window::new(now, set.calls, AT_FIRST);
            self.shared.numbers[set.slot].store(set.number, Relaxed);
            self.blocks.time(set.slot, AT_FIRST);
            self.tell_hook(set, true, now);
        }
        self.set = set;
        let numbers: Vec<u32> = self.set.iter().map(|set| set.number).collect();
        self.shared.edges.forget(|number| !numbers.contains(&number));
        Ok(())
    }

    fn has_just(&self, wanted: &[Method]) -> bool {
        let is_set = |method: &Method| self.set.iter().any(|set| set.method == *method);
        wanted.len() == self.set.len() && wanted.iter().all(is_set)
    }

    /// Whether no class needs to be loaded again for just these, of which none is named twice.
    pub fn is_woven(&self, telling: &[String], waiting: &[String]) -> bool {
        let all = [telling, waiting].concat();
        methods(&all).is_ok_and(|wanted| self.has_just(&wanted))
    }

    /// Sets hooks, and takes those out that are not wanted: one batch. New ones tell nothing yet.
    fn weave(&mut self, jvm: Jvm, wanted: Vec<Method>) -> Result<(), HookError> {
        let mut hooks: Vec<(Method, u32)> = Vec::new();
        for method in wanted {
            let slot = match self.set.iter().find(|set| set.method == method) {
                Some(set) => set.slot,
                None => {
                    let slot = self.free_slot(&hooks);
                    self.blocks.clear(slot);
                    slot
                }
            };
            hooks.push((method, slot as u32));
        }
        let Some(woven) = self.woven.as_mut() else { return Ok(()) };
        let batch = woven.set(jvm.jni, &hooks).map_err(HookError::Jvm)?;
        self.status.batches += 1;
        self.status.weaving_ns += nanos(batch.took);
        self.status.pause_ns += nanos(batch.pause);
        let refused = batch.refused.iter();
        self.status.refused = refused.map(|(m, why)| format!("{} {why}", m.text())).collect();
        let is_woven = |set: &Set| batch.woven.contains(&set.method);
        self.silence(is_woven);
        for set in self.set.extract_if(.., |set| !is_woven(set)) {
            self.blocks.close(set.slot);
        }
        let now = kernel::monotonic();
        let before = self.set.len();
        for (method, slot) in hooks {
            let slot = slot as usize;
            let is_known = self.set.iter().any(|set| set.slot == slot);
            if !is_known && batch.woven.contains(&method) {
                // While classes were loaded again nobody looked, so nothing was counted.
                self.blocks.time(slot, 0);
                let window = Window::new(now, 0, 0);
                self.set.push(Set { method, slot, number: 0, text: 0, calls: 0, window });
            }
        }
        let new = (self.set.len() - before) as u64;
        self.status.ever += new;
        self.tell_batch(new, batch.took, batch.pause);
        Ok(())
    }

    /// Those that are not to tell any more tell what they have, and wait.
    fn silence(&mut self, goes_on: impl Fn(&Set) -> bool) {
        let is_over = |set: &Set| set.tells() && !goes_on(set);
        let over = self.set.iter().filter(|set| is_over(set));
        let over: Vec<usize> = over.map(|set| set.slot).collect();
        if over.is_empty() {
            return;
        }
        over.iter().for_each(|slot| self.blocks.close(*slot));
        self.tell();
        let now = kernel::monotonic();
        let mut sets = std::mem::take(&mut self.set);
        for set in sets.iter_mut().filter(|set| over.contains(&set.slot)) {
            self.tell_times(set);
            self.tell_hook(set, false, now);
            self.shared.numbers[set.slot].store(0, Relaxed);
            set.number = 0;
            set.window.part = 0;
            self.blocks.time(set.slot, 0);
        }
        self.set = sets;
    }

    /// A slot that nobody has, nor had just before: a thread may be between its call and the hook.
    fn free_slot(&mut self, taken: &[(Method, u32)]) -> usize {
        loop {
            let slot = self.next_slot % HOOKS;
            self.next_slot += 1;
            let is_used = self.set.iter().any(|set| set.slot == slot)
                || taken.iter().any(|(_, other)| *other as usize == slot);
            if !is_used {
                return slot;
            }
        }
    }

    fn text(&mut self, method: &Method) -> u32 {
        if let Some(text) = self.texts.get(method) {
            return *text;
        }
        let text = self.shared.stream.text(method.text()).unwrap_or(0);
        if text != 0 {
            self.texts.insert(method.clone(), text);
        }
        text
    }

    fn event(&self, kind: u32, time: u64, duration: u64, trace: u32, values: &[u64]) -> bool {
        let head = EventHead { kind, time, duration, trace, ..EventHead::default() };
        self.shared.stream.ring.append_event(&head, values)
    }

    fn tell_batch(&self, new: u64, took: Duration, pause: Duration) {
        let values = [self.set.len() as u64, new, nanos(pause)];
        let took = nanos(took);
        let began = kernel::monotonic().saturating_sub(took);
        self.event(self.kinds.batch, began, took, 0, &values);
    }

    fn tell_hook(&self, set: &Set, is_on: bool, time: u64) {
        let values = [set.number.into(), set.text.into(), u64::from(is_on)];
        self.event(self.kinds.hook, time, 0, 0, &values);
    }

    fn tell_times(&self, set: &Set) {
        let now = kernel::monotonic();
        self.shared.edges.take_times(set.slot, |number, count| {
            let (from, to) = step(number);
            self.event(self.kinds.times, now, 0, 0, &[set.number.into(), from, to, count]);
        });
    }

    pub fn tick(&mut self, jvm: Jvm) {
        // Another profiler may have put its handlers over ours.
        let _ = fault_guard::install();
        self.shared.stream.tick_if_due(jvm.jvmti, jvm.jni);
        self.open_and_close();
        if Instant::now() < self.next_sums {
            return;
        }
        self.next_sums = Instant::now() + SUMS_EVERY;
        self.tell();
        self.rounds += 1;
        if self.rounds.is_multiple_of(REST_EVERY) {
            self.look_for_others(jvm);
            self.set.iter().filter(|set| set.tells()).for_each(|set| self.tell_times(set));
            self.tell_cost();
        }
    }

    /// How soon it wants to be looked after: each look wakes a thread.
    pub fn tick_every(&self) -> Duration {
        let is_short = |set: &Set| set.tells() && !set.window.is_steady();
        if self.set.iter().any(is_short) { TICK } else { SUMS_EVERY }
    }

    /// Hooks that went when somebody else had their class changed are no hooks any more.
    fn look_for_others(&mut self, jvm: Jvm) {
        let taken = self.woven.as_mut().map(|woven| woven.taken(jvm.jni)).unwrap_or_default();
        if taken.is_empty() {
            return;
        }
        self.silence(|set| !taken.contains(&set.method));
        for set in self.set.extract_if(.., |set| taken.contains(&set.method)) {
            self.blocks.close(set.slot);
            self.status.taken.push(set.method.text());
        }
    }

    /// Has each hook count for as much of the time as its calls allow.
    fn open_and_close(&mut self) {
        let (now, counted) = self.counted();
        for (set, calls) in self.set.iter_mut().zip(counted) {
            set.window.look(now, calls);
        }
        let spent = (self.shared.spent.load(Relaxed), self.shared.told.load(Relaxed));
        if self.budget.is_overdrawn(spent) {
            self.set.iter_mut().for_each(|set| set.window.part = 0);
        }
        let rate = |set: &Set| set.window.expected(SECOND);
        let rates: Vec<u64> = self.set.iter().filter(|set| set.tells()).map(rate).collect();
        let waiting = self.set.iter().filter(|set| !set.tells()).map(rate).sum();
        let mut duties = self.budget.duties(&rates, waiting).into_iter();
        for set in &mut self.set {
            let duty = if set.tells() { duties.next() } else { Some(WAITING) };
            set.window.allow(duty.unwrap_or(0));
            match set.window.is_open {
                true => self.blocks.time(set.slot, set.window.part),
                false => self.blocks.close(set.slot),
            }
        }
    }

    /// The calls of all hooks at one time, as far as nobody interrupts us between the two.
    fn counted(&self) -> (u64, Vec<u64>) {
        const TRIES: usize = 5;
        const SOON: u64 = 100_000;
        let look = || {
            let before = kernel::monotonic();
            let calls: Vec<u64> = self.set.iter().map(|set| self.blocks.calls(set.slot)).collect();
            (before, calls, kernel::monotonic().saturating_sub(before))
        };
        let (mut now, mut calls, mut took) = look();
        for _ in 1..TRIES {
            if took <= SOON {
                break;
            }
            (now, calls, took) = look();
        }
        (now, calls)
    }

    /// Sends what has come since the last time, and shares the budget out anew.
    fn tell(&mut self) {
        // Calls first: what is told of callers is then no less than what was counted.
        let (now, counted) = self.counted();
        let since = now.saturating_sub(std::mem::replace(&mut self.told_at, now));
        let (mut seen, mut open) = (Vec::new(), Vec::new());
        for (set, all) in self.set.iter_mut().zip(counted) {
            set.window.look(now, all);
            let calls = all.saturating_sub(std::mem::replace(&mut set.calls, all));
            let (counting, missed) = set.window.take();
            // Where it counts now and then, the next time is a short one.
            let ahead = if set.window.is_always_open() { 0 } else { nanos(TICK) };
            let expected = set.window.expected(ahead).max(calls);
            let expected = if set.tells() { expected } else { 0 };
            seen.push(Seen { calls, missed, expected });
            open.push(counting);
        }
        let mut told: HashMap<u32, u64> = HashMap::new();
        let mut rows = Vec::new();
        self.shared.edges.take(|number, trace, sums| {
            *told.entry(number).or_default() += sums.entered;
            rows.push((number, trace, sums));
        });
        for ((set, seen), open) in self.set.iter().zip(&seen).zip(&open) {
            let told = told.get(&set.number).copied().unwrap_or(0);
            if set.tells() && (*open > 0 || seen.calls > 0 || told > 0) {
                let values = [set.number.into(), seen.calls, told];
                self.event(self.kinds.calls, now, *open, 0, &values);
            }
        }
        for (number, trace, sums) in rows {
            let values =
                [number.into(), sums.entered, sums.ended, sums.wall, sums.cpu, sums.with_cpu];
            self.event(self.kinds.caller, now, since, trace, &values);
        }
        let spent = (self.shared.spent.load(Relaxed), self.shared.told.load(Relaxed));
        let parts = self.budget.share(since, &seen, spent, self.shared.beside());
        for (set, part) in self.set.iter_mut().zip(parts).filter(|(set, _)| set.tells()) {
            set.window.part = part;
            if set.window.is_open {
                self.blocks.time(set.slot, part);
            }
        }
    }

    fn tell_cost(&mut self) {
        let (spent, cpu) = self.budget.so_far();
        let (spent_before, cpu_before) = std::mem::replace(&mut self.cost_told, (spent, cpu));
        let new = [spent.saturating_sub(spent_before), cpu.saturating_sub(cpu_before)];
        let values = [new[0], new[1], self.set.len() as u64];
        self.event(self.kinds.cost, kernel::monotonic(), 0, 0, &values);
    }

    /// Nothing of ours is left in the JVM.
    pub fn end(&mut self, jvm: Jvm) {
        let began = Instant::now();
        let pause = self.woven.take().map_or(Duration::ZERO, |woven| woven.end(jvm.jni));
        let took = began.elapsed();
        self.shared.numbers.iter().for_each(|number| number.store(0, Relaxed));
        calls::publish(std::ptr::null_mut());
        let limit = Instant::now() + PATIENCE;
        while !calls::nobody_inside() && Instant::now() < limit {
            std::thread::sleep(Duration::from_micros(200));
        }
        if !calls::nobody_inside() {
            // A thread is stopped inside a hook: what it uses must stay.
            std::mem::forget(Arc::clone(&self.shared));
        }
        self.silence(|_| false);
        if !self.set.is_empty() {
            self.set.drain(..).for_each(|set| self.blocks.close(set.slot));
            self.tell_batch(0, took, pause);
        }
        self.tell_cost();
        joined::leave(jvm, &self.shared.stream);
    }

    pub fn status(&self) -> HookStatus {
        let (spent_ns, cpu_ns) = self.budget.so_far();
        let lost = Loss::ALL.into_iter().zip(&self.shared.losses);
        let lost = lost.map(|(why, count)| (why.name(), count.load(Relaxed)));
        let lost = lost.filter(|(_, count)| *count > 0);
        let (tell, wait): (Vec<&Set>, Vec<&Set>) = self.set.iter().partition(|set| set.tells());
        let hooks = tell.iter().map(|set| format!("{} {}", set.number, set.method.text()));
        HookStatus {
            hooks: hooks.collect(),
            waiting: wait.iter().map(|set| set.method.text()).collect(),
            spent_ns,
            cpu_ns,
            lost: lost.map(|(why, count)| format!("{count} {why}")).collect(),
            ..self.status.clone()
        }
    }
}

/// Each once.
fn methods(texts: &[String]) -> Result<Vec<Method>, HookError> {
    let mut methods = Vec::new();
    for text in texts {
        let method = Method::parse(text).ok_or_else(|| HookError::Name(text.clone()))?;
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    Ok(methods)
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
