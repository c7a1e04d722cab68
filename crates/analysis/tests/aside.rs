//! What is set aside of profiles for people: where it goes, that nothing is lost, and what is told.

use std::collections::HashMap;
use tare_analysis::{
    Aside, Asides, Filter, NodeId, Tree, by_thread, findings, hot_list, set_aside,
};
use tare_profile::{
    Frame, Method, MethodKind, Profile, Row, SeriesId, SeriesInfo, Thread, ThreadId, ThreadKind,
    TimeAxis, ValueKind,
};

const FIRST: SeriesId = SeriesId::new(0);
const ALL: Asides = Asides { native: true, idle: true };

/// A profile of lines `thread | state | stack value`, outermost frame first. Names end with `_k`,
/// `_j` or `_n` if they are of the kernel, of the JVM or of a library; threads begin with `vm:` or
/// `native:` if they are of the JVM or unknown to it. Without a state it is processor time.
fn profile(text: &str) -> Profile {
    let mut profile = Profile::new();
    let mut threads: HashMap<&str, ThreadId> = HashMap::new();
    let mut series: HashMap<&str, SeriesId> = HashMap::new();
    let lines: Vec<Vec<&str>> =
        text.trim().lines().map(|line| line.split('|').map(str::trim).collect()).collect();
    let wall = !lines[0][1].is_empty();
    let (name, kind) =
        if wall { ("wall", ValueKind::WallTime) } else { ("cpu", ValueKind::CpuTime) };
    let first = profile.add_series(SeriesInfo::new(name, kind.clone()));
    for line in &lines {
        let (stack, value) = line[2].rsplit_once(' ').unwrap();
        let frames: Vec<_> = stack
            .split(';')
            .map(|name| {
                let (kind, module) = match name.rsplit_once('_') {
                    Some((_, "k")) => (MethodKind::Kernel, "[kernel]"),
                    Some((_, "j")) => (MethodKind::Native, "libjvm.so"),
                    Some((_, "n")) => (MethodKind::Native, "libz.so"),
                    _ if name.starts_with('[') => (MethodKind::Special, ""),
                    _ => (MethodKind::Java, ""),
                };
                let (class, name) = match kind {
                    MethodKind::Java => name.rsplit_once('.').unwrap_or(("", name)),
                    _ => ("", name),
                };
                let mut text = |text: &str| profile.strings.intern(text);
                let (class, name, module) = (text(class), text(name), text(module));
                let method = Method { kind, class, name, module, ..Method::default() };
                let method = profile.methods.intern(method);
                profile.frames.intern(Frame::of(method))
            })
            .collect();
        let context = profile.contexts.stack(frames);
        let thread = *threads.entry(line[0]).or_insert_with(|| {
            let (kind, name) = match line[0].split_once(':') {
                Some(("vm", name)) => (ThreadKind::Vm, name),
                Some(("native", name)) => (ThreadKind::Native, name),
                _ => (ThreadKind::Java, line[0]),
            };
            let name = profile.strings.intern(name);
            profile.threads.push(Thread { kind, name, ..Thread::default() })
        });
        let row = Row::new(context, thread, value.parse().unwrap());
        profile.series_mut(first).push(row);
        if wall {
            let state = *series
                .entry(line[1])
                .or_insert_with(|| profile.add_series(SeriesInfo::new(line[1], kind.clone())));
            profile.series_mut(state).push(row);
        }
    }
    profile
}

fn tree_of(profile: &Profile) -> Tree {
    Tree::build(profile, &[FIRST], &Filter::default()).unwrap()
}

/// `name own/total` per node, two blanks per level.
fn show(tree: &Tree) -> String {
    let children = tree.children();
    let mut out = String::new();
    let mut stack = vec![(NodeId::ROOT, 0)];
    while let Some((node, depth)) = stack.pop() {
        let (own, total) = (tree.own(0, node), tree.total(0, node));
        let text = &tree.label_of(node).text;
        out.push_str(&format!("{}{text} {own}/{total}\n", "  ".repeat(depth)));
        stack.extend(children.of(node).iter().rev().map(|child| (*child, depth + 1)));
    }
    out
}

fn said(profile: &Profile, aside: Option<&Aside>) -> Vec<String> {
    let profile = aside.map_or(profile, |aside| &aside.profile);
    let tree = tree_of(profile);
    let threads = by_thread(profile, FIRST, &Filter::default()).unwrap();
    let found = findings(profile, FIRST, &tree, &hot_list(&tree), &threads, aside);
    found.into_iter().map(|finding| finding.text).collect()
}

const MIXED: &str = "
    main || start_n;call_j;a.Main.main;java.util.zip.Inflater.inflate;inflate_n 30
    main || start_n;call_j;a.Main.main;java.net.Socket.read;read_n;finish_task_switch_k 25
    main || start_n;call_j;a.Main.main;java.net.Socket.read 5
    main || start_n;call_j;a.Main.main;alloc_j;fault_k 2
    main || start_n;exit_j 1
    main || [unknown_Java];memcpy_n 3
    vm:C2 CompilerThre || start_n;compile_j 20
    vm:GC Thread#1 || start_n;mark_j 8
    vm:VM Thread || start_n;finish_task_switch_k 2
    native:logger || start_n;write_k 4";

#[test]
fn frames_that_are_not_java_join_the_method_that_called_them() {
    let profile = profile(MIXED);
    let aside = set_aside(&profile, FIRST, ALL).unwrap();
    let tree = tree_of(&aside.profile);
    let expected = "[all] 0/100
  a.Main.main 2/62
    java.util.zip.Inflater.inflate 30/30
    java.net.Socket.read 30/30
  [unknown_Java] 3/3
  [no Java frame] 1/1
  [JVM itself] 30/30
  [native threads] 4/4";
    assert_eq!(show(&tree).trim(), expected, "Java first, and the JVM last");
    assert_eq!(tree.sum(0), tree_of(&profile).sum(0), "sums are the same");
    let parts = [("compilers", 20), ("collectors", 8), ("native threads", 4), ("other", 2)];
    assert_eq!(aside.parts, parts);
    let sums: Vec<(&str, i64)> = aside
        .outside
        .iter()
        .map(|(place, id)| (*place, aside.profile.series(*id).total()))
        .collect();
    assert_eq!(sums, [("kernel", 27), ("JVM", 1), ("native", 33)]);
}

#[test]
fn findings_name_no_function_of_the_kernel() {
    let profile = profile(MIXED);
    let aside = set_aside(&profile, FIRST, ALL).unwrap();
    let texts = said(&profile, Some(&aside));
    assert_eq!(texts[0], "java.util.zip.Inflater.inflate itself takes 30.0 %");
    let jvm = "the JVM itself takes 30.0 %: compilers 20.0 %, collectors 8.0 %, other 2.0 %";
    assert!(texts.iter().any(|text| text == jvm), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("accounted as [JVM")), "{texts:?}");
    // Also where nothing is Java, so that all is shown as it is.
    let kernel = self::profile("vm:C2 | | start_n;compile_j;finish_task_switch_k 9");
    assert!(set_aside(&kernel, FIRST, ALL).is_none());
    let texts = said(&kernel, None);
    assert!(!texts.iter().any(|text| text.contains("finish_task_switch")), "{texts:?}");
}

#[test]
fn a_profile_of_java_alone_stays_as_it_is() {
    let profile = profile("main || a.Main.main;a.Shop.sell 5\nmain || a.Main.main;[dropped] 1");
    assert!(set_aside(&profile, FIRST, ALL).is_none());
    let java = self::profile(MIXED);
    assert!(set_aside(&java, FIRST, Asides { native: false, idle: true }).is_none());
}

const SERVER: &str = "
    exec-1 | parked | java.lang.Thread.run;java.util.concurrent.ThreadPoolExecutor.runWorker;java.util.concurrent.ThreadPoolExecutor.getTask;java.util.concurrent.LinkedBlockingQueue.take;java.util.concurrent.locks.LockSupport.park;jdk.internal.misc.Unsafe.park;futex_n 5000
    exec-2 | parked | java.lang.Thread.run;org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask;org.apache.tomcat.util.threads.TaskQueue.take;java.util.concurrent.LinkedBlockingQueue.take;jdk.internal.misc.Unsafe.park 3000
    exec-2 | running | java.lang.Thread.run;org.apache.tomcat.util.threads.ThreadPoolExecutor.runWorker;a.Shop.sell 1500
    exec-2 | sleeping | java.lang.Thread.run;org.apache.tomcat.util.threads.ThreadPoolExecutor.runWorker;a.Shop.retry;java.lang.Thread.sleep 500
    poller | system-call | java.lang.Thread.run;a.Poller.run;sun.nio.ch.SelectorImpl.select;sun.nio.ch.EPoll.wait;epoll_wait_n 4990
    poller | running | java.lang.Thread.run;a.Poller.run;sun.nio.ch.SelectorImpl.select;sun.nio.ch.EPoll.wait;epoll_wait_n 10
    consumer | parked | java.lang.Thread.run;a.Consumer.run;java.util.concurrent.LinkedBlockingQueue.poll;java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await;jdk.internal.misc.Unsafe.park 5000
    asker | parked | java.lang.Thread.run;a.Asker.ask;java.util.concurrent.ArrayBlockingQueue.take;jdk.internal.misc.Unsafe.park 4000
    asker | running | java.lang.Thread.run;a.Asker.ask 1000
    main | sleeping | a.Main.main;java.lang.Thread.sleep 5000
    stuck | parked | java.lang.Thread.run;a.Job.run;java.util.concurrent.CompletableFuture.join;java.util.concurrent.ForkJoinPool.managedBlock;jdk.internal.misc.Unsafe.park 5000
    joiner | parked | java.util.concurrent.ForkJoinWorkerThread.run;java.util.concurrent.ForkJoinPool.runWorker;java.util.concurrent.ForkJoinTask.doExec;java.util.stream.AbstractTask.compute;java.util.concurrent.ForkJoinPool.awaitJoin;jdk.internal.misc.Unsafe.park 5000
    blocked | blocked | java.lang.Thread.run;java.util.concurrent.ThreadPoolExecutor.getTask 5000
    Signal Dispatcher | waiting | start_n;os::wait_j;sem_wait_n 5000";

#[test]
fn waiting_for_work_is_taken_out_and_no_other_waiting() {
    let profile = profile(SERVER);
    let aside = set_aside(&profile, FIRST, ALL).unwrap();
    let idle = aside.idle.as_ref().unwrap();
    let mut names: Vec<String> =
        idle.threads.iter().map(|thread| profile.thread_name(*thread)).collect();
    names.sort();
    assert_eq!(names, ["Signal Dispatcher", "consumer", "exec-1", "main", "poller"]);
    // The one that slept and worked, and waited for work in between.
    assert_eq!((idle.partly, idle.of), (1, 10));
    assert_eq!(idle.value, 5000 + 3000 + 4990 + 5000 + 5000 + 5000);
    let tree = tree_of(&aside.profile);
    assert_eq!(tree.sum(0) + idle.value, tree_of(&profile).sum(0), "nothing is lost");
    let shown = show(&tree);
    for left in [
        "a.Shop.sell 1500/1500",
        "a.Shop.retry 0/500",
        "a.Asker.ask 1000/5000",
        "a.Job.run 0/5000",
        "java.util.stream.AbstractTask.compute 0/5000",
        "java.util.concurrent.ThreadPoolExecutor.getTask 5000/5000",
        "sun.nio.ch.EPoll.wait 10/10",
    ] {
        assert!(shown.contains(left), "{left:?} is not in\n{shown}");
    }
    assert!(!shown.contains("a.Consumer.run") && !shown.contains("a.Main.main"), "{shown}");
    let text = &said(&profile, Some(&aside))[0];
    assert!(
        text.starts_with("5 of 10 threads were idle all the time, 1 for a part of it: "),
        "{text}"
    );
    assert!(set_aside(&profile, FIRST, Asides { native: false, idle: false }).is_none());
}

/// One state alone is shown without what is idle, too; states in which nobody is idle are whole.
#[test]
fn idleness_of_one_state() {
    let profile = profile(SERVER);
    let state = |name: &str| {
        let mut all = profile.all_series();
        all.find(|(_, series)| series.info().name == name).map(|(id, _)| id).unwrap()
    };
    let parked = set_aside(&profile, state("parked"), ALL).unwrap();
    assert_eq!(parked.idle.as_ref().unwrap().value, 5000 + 3000 + 5000);
    assert!(set_aside(&profile, state("running"), ALL).is_none_or(|aside| aside.idle.is_none()));
    assert!(set_aside(&profile, state("blocked"), ALL).is_none_or(|aside| aside.idle.is_none()));
}

#[test]
fn java_only_moves_values_to_java() {
    let profile = profile(MIXED);
    let filter = Filter { java_only: true, ..Filter::default() };
    let tree = Tree::build(&profile, &[FIRST], &filter).unwrap();
    let expected = "[all] 0/100
  a.Main.main 2/62
    java.util.zip.Inflater.inflate 30/30
    java.net.Socket.read 30/30
  [no Java frame] 35/35
  [unknown_Java] 3/3";
    assert_eq!(show(&tree).trim(), expected);
    let threads = by_thread(&profile, FIRST, &filter).unwrap();
    let top = threads[0].top.as_ref().map(|(label, own)| (label.text.as_str(), *own));
    assert_eq!(top, Some(("java.util.zip.Inflater.inflate", 30)));
}

/// What is left of samples keeps their times, so that it scatters as it was sampled.
#[test]
fn idleness_is_taken_out_where_it_was() {
    let mut timed = Profile::new();
    let run = profile("worker | parked | java.util.concurrent.ThreadPoolExecutor.getTask 1");
    timed.strings = run.strings.clone();
    timed.methods = run.methods.clone();
    timed.frames = run.frames.clone();
    timed.threads = run.threads.clone();
    timed.contexts = run.contexts.clone();
    let idle = run.series(FIRST).rows().next().unwrap();
    let name = timed.special("a.Main.work");
    let busy = timed.contexts.stack([name]);
    for name in ["wall", "parked"] {
        let info = SeriesInfo::new(name, ValueKind::WallTime).with_time(TimeAxis::Exact);
        let series = timed.add_series(info);
        for time in 1..=50 {
            let row = Row { time, value: 10, ..idle };
            timed.series_mut(series).push(row);
            if name == "wall" {
                timed.series_mut(series).push(Row { context: busy, value: 10, ..row });
            }
        }
    }
    let aside = set_aside(&timed, FIRST, ALL).unwrap();
    assert_eq!(aside.idle.as_ref().unwrap().value, 500);
    let rest: Vec<_> = aside.profile.series(FIRST).rows().map(|r| (r.time, r.value)).collect();
    assert_eq!(rest, (1..=50).map(|time| (time, 10)).collect::<Vec<_>>());
}
