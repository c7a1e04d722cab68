//! How long tasks were in the queues of executors before a thread began to run them.

use super::Sum;
use super::read::tables;
use crate::filter::{AnalysisError, Filter};
use crate::select::Selection;
use std::collections::{HashMap, HashSet};
use tare_profile::{EventKind, FieldValue, Profile, StringId, ThreadId};

/// The tasks of one executor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executor {
    pub name: String,
    /// Tasks, and how long they were in the queue.
    pub sum: Sum,
    /// Nineteen of twenty were in the queue no longer.
    pub most: u64,
    /// Threads that ran them.
    pub threads: usize,
    /// The class of the tasks that were longest in the queue, all together.
    pub class: String,
}

#[derive(Default)]
struct Tasks {
    durations: Vec<u64>,
    threads: HashSet<ThreadId>,
    classes: HashMap<StringId, u64>,
}

/// All executors, those whose tasks waited longest first.
pub(super) fn executors(
    profile: &Profile,
    filter: &Filter,
) -> Result<Vec<Executor>, AnalysisError> {
    let mut all: HashMap<StringId, Tasks> = HashMap::new();
    let selection = Selection::new(profile, filter)?;
    for table in tables(profile, &EventKind::task()) {
        let [class, executor] = ["class", "executor"].map(|name| table.field_named(name));
        for (row, event) in table.events().enumerate() {
            if !selection.has_event(&event, filter) {
                continue;
            }
            let text = |field: Option<usize>| match field.and_then(|f| table.field(row, f)) {
                Some(FieldValue::Text(text)) => text,
                _ => StringId::EMPTY,
            };
            let tasks = all.entry(text(executor)).or_default();
            tasks.durations.push(event.duration);
            tasks.threads.insert(event.thread);
            *tasks.classes.entry(text(class)).or_default() += event.duration;
        }
    }
    let executor = |(name, mut tasks): (StringId, Tasks)| {
        let mut sum = Sum::default();
        tasks.durations.iter().for_each(|duration| sum.add(*duration));
        tasks.durations.sort_unstable();
        let most = tasks.durations.len().saturating_sub(1) * 19 / 20;
        let class = tasks.classes.into_iter().max_by_key(|(id, sum)| (*sum, id.raw()));
        let text = |id: StringId| profile.strings.get(id).to_owned();
        Executor {
            name: text(name),
            sum,
            most: tasks.durations.get(most).copied().unwrap_or(0),
            threads: tasks.threads.len(),
            class: class.map_or_else(String::new, |(class, _)| text(class)),
        }
    };
    let mut all: Vec<Executor> = all.into_iter().map(executor).collect();
    all.sort_by(|a, b| b.sum.total.cmp(&a.sum.total).then_with(|| a.name.cmp(&b.name)));
    Ok(all)
}
