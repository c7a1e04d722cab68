//! Locks that threads wait for, who waits, and who has them.

use super::{Detail, Seconds, Side, share};
use crate::table::{Column, Row, Table, Value};
use tare_analysis::{Filter, Lock, Locks};

pub const COLUMNS: [Column; 6] = [
    Column { id: "blocked_per_second", title: "ms/s", key: 'l', width: 7, least: 0 },
    Column { id: "waits_per_second", title: "waits/s", key: 'c', width: 8, least: 0 },
    Column { id: "longest", title: "longest", key: 'm', width: 8, least: 0 },
    Column { id: "threads", title: "threads", key: 't', width: 7, least: 0 },
    Column { id: "lock", title: "lock", key: 'n', width: 0, least: 0 },
    Column { id: "held_in", title: "held in", key: 'h', width: 0, least: 0 },
];

pub fn lock_table(seconds: &Seconds<'_>, selected: Option<&str>) -> (Table, Detail) {
    let mut table = Table::empty(&COLUMNS);
    let filter = Filter { time: Some(seconds.from..seconds.to + 1), ..Filter::default() };
    let locks = match Locks::of(seconds.profile, &filter) {
        Ok(Some(locks)) => locks,
        _ => return (table, Detail::default()),
    };
    let mut detail = Detail::default();
    for lock in &locks.locks {
        let holder = lock.owners.iter().find_map(|owner| owner.method.clone());
        if selected == Some(&lock.name) {
            detail = beside(lock);
        }
        table.rows.push(Row {
            key: lock.name.clone(),
            values: vec![
                Value::TimeRate(lock.sum.total as f64 / seconds.count()),
                Value::Count(lock.sum.waits as f64 / seconds.count()),
                Value::Time(lock.sum.longest as f64),
                Value::Count(lock.threads as f64),
                Value::Text(lock.name.clone()),
                Value::Text(holder.unwrap_or_default()),
            ],
            tid: None,
        });
    }
    (table, detail)
}

fn beside(lock: &Lock) -> Detail {
    let of = |total: u64| Some(share(total.cast_signed(), lock.sum.total.cast_signed()));
    let waiters = lock.waiters.iter().map(|place| (of(place.sum.total), place.method.clone()));
    let owners = lock.owners.iter().map(|owner| {
        let method = owner.method.as_deref().unwrap_or("(stack not known)");
        let inside = owner.inside.as_deref().map(|inside| format!(", in {inside}"));
        let who = match owner.threads.as_str() {
            "" => String::new(),
            threads => format!(" by {threads}"),
        };
        (of(owner.sum.total), format!("{method}{}{who}", inside.unwrap_or_default()))
    });
    Detail {
        left: Side { title: "waited for in".to_owned(), rows: waiters.collect() },
        right: Side { title: "meanwhile held in".to_owned(), rows: owners.collect() },
    }
}
