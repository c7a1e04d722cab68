//! Scripted waits, and what is told of them.

use super::*;
use tare_profile::{
    ContextId, Event, EventKind, FieldValue, Frame, FrameId, LockFields, Method, Row, SeriesInfo,
    Thread, TimeAxis,
};

const MS: u64 = 1_000_000;

/// A profile in the making.
struct Made {
    profile: Profile,
    threads: HashMap<String, ThreadId>,
}

/// A wait from so many milliseconds to so many.
struct Script<'a> {
    who: &'a str,
    at: Range<u64>,
    wait: Wait,
    class: &'a str,
    stack: &'a [&'a str],
    owner: &'a str,
    owner_stack: &'a [&'a str],
}

const ENTER: Script<'static> = Script {
    who: "worker-1",
    at: 0..1,
    wait: Wait::MonitorEnter,
    class: "a.Pool",
    stack: &["a.Server.handle", "a.Pool.take"],
    owner: "",
    owner_stack: &[],
};

impl Made {
    fn new() -> Self {
        let mut profile = Profile::new();
        profile.run.duration = 100 * MS;
        Made { profile, threads: HashMap::new() }
    }

    fn thread(&mut self, name: &str) -> ThreadId {
        if name.is_empty() {
            return ThreadId::UNKNOWN;
        }
        let profile = &mut self.profile;
        *self.threads.entry(name.to_owned()).or_insert_with(|| {
            let name = profile.strings.intern(name);
            profile.threads.push(Thread { name, ..Thread::default() })
        })
    }

    /// Outermost first, as `class.method`.
    fn stack(&mut self, names: &[&str]) -> ContextId {
        let frames: Vec<FrameId> = names
            .iter()
            .map(|name| {
                let (class, name) = name.rsplit_once('.').unwrap();
                let class = self.profile.strings.intern(class);
                let name = self.profile.strings.intern(name);
                let method = Method { class, name, ..Method::default() };
                let method = self.profile.methods.intern(method);
                self.profile.frames.intern(Frame::of(method))
            })
            .collect();
        self.profile.contexts.stack(frames)
    }

    fn add(&mut self, script: &Script<'_>) {
        let fields = LockFields {
            class: self.profile.strings.intern(script.class),
            owner: self.thread(script.owner),
            operation: self.profile.strings.intern(script.wait.name()),
            owner_context: self.stack(script.owner_stack),
            owner_held: true,
            ..LockFields::default()
        };
        let Range { start, end } = script.at;
        let event = Event {
            time: start * MS,
            duration: (end - start) * MS,
            thread: self.thread(script.who),
            context: self.stack(script.stack),
        };
        let table = self.profile.events_of(&EventKind::lock());
        self.profile.events_mut(table).push(event, &fields.values());
    }

    fn locks(&self, filter: &Filter) -> Locks {
        Locks::of(&self.profile, filter).unwrap().unwrap()
    }
}

/// Two workers wait behind a pool's refresher, which waits for a socket; one is idle for a while.
fn blocked() -> Made {
    let mut made = Made::new();
    let socket = ["a.Pool.refresh", "a.Db.ask", "sun.nio.ch.NioSocketImpl.read"];
    for who in ["worker-1", "worker-2"] {
        let held = Script { who, at: 10..50, owner: "refresher", owner_stack: &socket, ..ENTER };
        made.add(&held);
        made.add(&Script { who, at: 60..90, wait: Wait::Queue, class: "a.Queue", ..ENTER });
    }
    made
}

#[test]
fn a_lock_has_waiters_an_owner_and_what_that_one_does() {
    let locks = blocked().locks(&Filter::default());
    let [lock] = locks.locks.as_slice() else { panic!("{:?}", locks.locks) };
    assert_eq!((lock.name.as_str(), lock.threads, lock.sum.waits), ("a.Pool", 2, 2));
    assert_eq!((lock.sum.total, lock.sum.longest), (80 * MS, 40 * MS));
    // 80 of twice 100 ms, of which twice 30 were idle.
    assert!((lock.share - 80.0 / 140.0).abs() < 1e-9, "{}", lock.share);
    assert_eq!(lock.waiters[0].method, "a.Pool.take");
    let [holder] = lock.owners.as_slice() else { panic!("{:?}", lock.owners) };
    assert_eq!(holder.method.as_deref(), Some("a.Pool.refresh"));
    assert_eq!(holder.inside.as_deref(), Some("a.Db.ask"));
    assert_eq!((holder.threads.as_str(), holder.doing), ("refresher", Some(Doing::Socket)));
    assert_eq!((lock.queue.longest, lock.queue.mean), (2, 2.0));
    assert_eq!(lock.queue.over_time[0], 0);
    assert_eq!(locks.by_threads[0].waiter, "worker-#");
    assert_eq!(locks.by_methods[0].owner, "a.Pool.refresh");
    assert_eq!((locks.idle[0].wait, locks.idle[0].sum.waits), (Wait::Queue, 2));
    assert_eq!(locks.without_owner + locks.without_stack + locks.left + locks.inferred, 0);
}

#[test]
fn filters_choose_waiters_and_cut_waits() {
    let made = blocked();
    let threads = vec!["worker-1".to_owned()];
    let one = made.locks(&Filter { threads, ..Filter::default() });
    assert_eq!((one.contended.waits, one.contended.total, one.threads), (1, 40 * MS, 1));
    let time = Some(40 * MS..70 * MS);
    let part = made.locks(&Filter { time, ..Filter::default() });
    assert_eq!((part.contended.waits, part.contended.total), (2, 20 * MS));
    assert_eq!((part.duration, part.idle[0].sum.total), (30 * MS, 20 * MS));
}

/// A recorder that names who had the lock last names another waiter.
#[test]
fn who_waited_for_the_same_lock_is_not_to_blame() {
    let mut made = Made::new();
    let first = Script { who: "worker-1", at: 10..50, owner: "refresher", ..ENTER };
    made.add(&first);
    made.add(&Script { who: "worker-2", at: 12..51, owner: "worker-1", ..ENTER });
    made.add(&Script { who: "worker-3", at: 14..52, owner: "worker-2", ..ENTER });
    let locks = made.locks(&Filter::default());
    assert_eq!(locks.by_threads.len(), 1, "{:?}", locks.by_threads);
    assert_eq!(locks.by_threads[0].owner, "refresher");
    assert_eq!(locks.without_stack, locks.contended.total);
}

#[test]
fn an_owner_that_waits_itself_is_found_there() {
    let mut made = Made::new();
    made.add(&Script { at: 10..50, owner: "worker-2", ..ENTER });
    let stack = ["a.Pool.take", "a.Log.write"];
    let other = Script { who: "worker-2", class: "a.Log", owner: "logger", ..ENTER };
    made.add(&Script { at: 5..49, stack: &stack, ..other });
    let locks = made.locks(&Filter::default());
    let pool = locks.locks.iter().find(|lock| lock.name == "a.Pool").unwrap();
    assert_eq!(pool.owners[0].waits_for.as_deref(), Some("a.Log"));
    assert_eq!(pool.owners[0].method.as_deref(), Some("a.Pool.take"));
    assert_eq!(locks.inferred, 40 * MS);
}

#[test]
fn samples_tell_where_an_owner_was() {
    let mut made = Made::new();
    made.add(&Script { at: 10..50, owner: "refresher", ..ENTER });
    let context = made.stack(&["a.Pool.refresh", "java.lang.Thread.sleep"]);
    let thread = made.thread("refresher");
    let info = SeriesInfo::new("wall", ValueKind::WallTime).with_time(TimeAxis::Exact);
    let series = made.profile.add_series(info);
    made.profile.series_mut(series).push(Row::new(context, thread, 1).at(30 * MS));
    let locks = made.locks(&Filter::default());
    assert_eq!(locks.locks[0].owners[0].doing, Some(Doing::Sleep));
    assert_eq!(locks.inferred, 40 * MS);
}

#[test]
fn locks_of_the_jdk_are_told_apart_by_where_they_are_used() {
    let mut made = Made::new();
    let class = "java.util.concurrent.locks.ReentrantLock$NonfairSync";
    for stack in [["a.B.x", "a.Ledger.post"], ["a.B.x", "a.Cache.get"]] {
        made.add(&Script { wait: Wait::Lock, class, stack: &stack, ..ENTER });
    }
    let locks = made.locks(&Filter::default());
    let mut names: Vec<&str> = locks.locks.iter().map(|lock| lock.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ReentrantLock in a.Cache", "ReentrantLock in a.Ledger"]);
}

#[test]
fn shorter_waits_are_what_the_sums_have_more() {
    let mut made = Made::new();
    made.add(&Script { at: 10..50, ..ENTER });
    let dropped = made.profile.special("[dropped]");
    let dropped = made.profile.contexts.stack([dropped]);
    for (kind, value, lost) in
        [(ValueKind::Contentions, 8, 2), (ValueKind::BlockedTime, 40 * MS as i64 + 500, 90)]
    {
        let series = made.profile.add_series(SeriesInfo::new("lock", kind));
        let row = Row::new(ContextId::ROOT, ThreadId::UNKNOWN, value);
        made.profile.series_mut(series).push(row);
        made.profile.series_mut(series).push(Row { context: dropped, value: lost, ..row });
    }
    let locks = made.locks(&Filter::default());
    assert_eq!(locks.shorter, Some(Sum { waits: 7, total: 500, longest: 0 }));
    assert_eq!(locks.dropped, Some(Sum { waits: 2, total: 90, longest: 0 }));
    assert_eq!((locks.blocked().waits, locks.blocked().total), (10, 40 * MS + 590));
}

#[test]
fn tasks_are_told_by_executor() {
    let mut made = Made::new();
    let table = made.profile.events_of(&EventKind::task());
    let name = made.profile.strings.intern("mail");
    let thread = made.thread("mail-1");
    for n in 0..20 {
        let event = Event { time: n * MS, duration: n * MS, thread, ..Event::default() };
        let values = [FieldValue::Text(name), FieldValue::Text(name)];
        made.profile.events_mut(table).push(event, &values);
    }
    let locks = made.locks(&Filter::default());
    let [pool] = locks.executors.as_slice() else { panic!("{:?}", locks.executors) };
    assert_eq!((pool.name.as_str(), pool.threads, pool.sum.waits), ("mail", 1, 20));
    assert_eq!((pool.most, pool.sum.longest), (18 * MS, 19 * MS));
}

#[test]
fn the_owners_stack_stands_below_the_waiters() {
    let mut made = blocked();
    let series = add_owners(&mut made.profile).unwrap().unwrap();
    made.profile.check().unwrap();
    let profile = &made.profile;
    assert_eq!(profile.series(series).total(), 80 * MS as i64);
    for row in profile.series(series).rows() {
        let frames = profile.contexts.frames(row.context);
        let mut names: Vec<String> =
            frames.map(|f| profile.method_name(profile.frames.get(f).method)).collect();
        names.reverse();
        let owner = ["a.Pool.refresh", "a.Db.ask", "sun.nio.ch.NioSocketImpl.read"];
        let waiter = ["a.Server.handle", "a.Pool.take", "a.Pool"];
        assert_eq!(names, [waiter, owner].concat());
    }
}

/// Of virtual threads it is not known how long they lived, and most have no names.
#[test]
fn virtual_threads_are_one_group() {
    let mut made = Made::new();
    for (n, at) in [(1, 0..10), (2, 20..30), (3, 40..50)] {
        let who = format!("virtual thread {n}, first on worker-1");
        made.add(&Script { who: &who, at, ..ENTER });
        let thread = made.threads[&who];
        made.profile.threads.get_mut(thread).kind = ThreadKind::Virtual;
    }
    let locks = made.locks(&Filter::default());
    let lock = &locks.locks[0];
    assert_eq!(lock.pools, [Pool { name: VIRTUAL.to_owned(), threads: 3, total: 30 * MS }]);
    // One waited at a time, in 100 ms.
    assert!((lock.share - 0.3).abs() < 1e-9, "{}", lock.share);
}
