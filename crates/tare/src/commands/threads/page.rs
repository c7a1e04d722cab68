//! The dump for people: deadlocks, who holds up whom, and equal stacks together.

use super::words::{by_id, does, frame, lock, name, waits};
use crate::figures::{several, wrap};
use crate::term::{self, BAD, BOLD, DIM, WARN, plain};
use std::collections::BTreeMap;
use std::io::{self, Write};
use tare_analysis::{Circle, Waiting};
use tare_attach::Jvm;
use tare_protocol::{DumpedThread, How, ThreadDump};
use tare_session::threads::{Initialisers, Looked, waits_for_owner};

/// Frames of a thread in a deadlock, and of a group of equal stacks.
const FRAMES: usize = 6;
const GROUP_FRAMES: usize = 8;

/// Classes in which threads wait for locks, and nothing else is to be seen.
const WAITING: [&str; 5] = [
    "jdk.internal.misc.Unsafe",
    "java.util.concurrent.locks.",
    "java.lang.VirtualThread",
    "java.lang.System$",
    "jdk.internal.misc.VirtualThreads",
];

/// How the names of classes begin that threads wait for until another thread is done. Queues and
/// pools are left out: who waits there has nothing to do.
const AWAITED: [&str; 7] = [
    "java.util.concurrent.locks.",
    "java.util.concurrent.Semaphore",
    "java.util.concurrent.CountDownLatch",
    "java.util.concurrent.CompletableFuture",
    "java.util.concurrent.FutureTask",
    "java.util.concurrent.ForkJoinTask",
    "java.util.concurrent.Phaser",
];

/// Lines of a tree, trees, locks, and groups, beyond which the rest is counted.
const MOST_WAITING: usize = 40;
const MOST_BLOCKERS: usize = 10;
const MOST_LOCKS: usize = 10;
const MOST_GROUPS: usize = 25;

/// Names of a group.
const MOST_NAMES: usize = 3;

/// How far a line of a tree is indented at most.
const DEEPEST: usize = 20;

pub fn write(out: &mut impl Write, jvm: &Jvm, looked: &Looked, full: bool) -> io::Result<()> {
    let (dump, waits) = (&looked.dump, &looked.waits);
    let virtuals = dump.threads.iter().filter(|thread| thread.is_virtual).count();
    let platform = several(dump.threads.len() - virtuals, "platform thread");
    let all = match virtuals {
        0 => platform,
        count => format!("{platform}, {}", several(count, "virtual thread")),
    };
    let (style, dead) = match waits.deadlocks.len() {
        0 => (BOLD, "no deadlock".to_owned()),
        count => (BAD, several(count, "deadlock")),
    };
    writeln!(
        out,
        "{BOLD}JVM {} ({}):{BOLD:#} {all}; {style}{dead}{style:#}",
        jvm.pid,
        plain(jvm.name())
    )?;
    notes(out, looked)?;
    for (at, circle) in (1..).zip(&waits.deadlocks) {
        deadlock(out, looked, circle, &format!("Deadlock {at}"))?;
    }
    if let Some(found) = &looked.initialisers {
        initialisers(out, dump, found)?;
    }
    blockers(out, dump, &waits.blockers)?;
    unknown(out, dump)?;
    groups(out, dump)?;
    if !full {
        let pid = jvm.pid;
        writeln!(
            out,
            "\n{DIM}`tare threads {pid} --full` shows every thread and its stack.{DIM:#}"
        )?;
    }
    Ok(())
}

/// What the dump lacks.
fn notes(out: &mut impl Write, looked: &Looked) -> io::Result<()> {
    let dump = &looked.dump;
    let mut note = |text: String| writeln!(out, "{WARN}{text}{WARN:#}");
    let members: usize = looked.unproven.iter().map(|circle| circle.members.len()).sum();
    if members > 0 {
        note(format!(
            "{} wait in circles that changed from look to look, or could not be proven in {}; \
             look again.",
            several(members, "thread"),
            several(looked.looks as usize, "look"),
        ))?;
    }
    if dump.virtual_left_out > 0 {
        note(format!(
            "{} are left out, also from the search for deadlocks; `--full` looks at more.",
            several(dump.virtual_left_out, "virtual thread")
        ))?;
    }
    if dump.platform_left_out > 0 {
        note(format!(
            "{} are left out, also from the search for deadlocks: the JVM's heap has no room for \
             a larger dump.",
            several(dump.platform_left_out, "platform thread")
        ))?;
    }
    if let Some(frames) = dump.shallow {
        note(format!(
            "Stacks are cut after {}: the JVM's heap is nearly full.",
            several(frames, "frame")
        ))?;
    }
    if dump.virtual_untracked {
        note(
            "The JVM runs with -Djdk.trackAllThreads=false: virtual threads that belong to no \
              executor are missing."
                .to_owned(),
        )?;
    }
    if let Some(why) = &dump.no_management {
        note(format!(
            "This JVM has no module java.management ({}): what is told of locks is not of the same \
             moment as the stacks, and owners of monitors may be unknown. Start it with \
             --add-modules java.management for that.",
            plain(why)
        ))?;
    }
    let broken = [&dump.no_virtual, &dump.incomplete];
    for why in broken.into_iter().flatten() {
        note(format!("Not all threads could be looked at: {}", plain(why)))?;
    }
    Ok(())
}

/// One deadlock: its members with what they wait for, then who waits behind them.
pub fn deadlock(
    out: &mut impl Write,
    looked: &Looked,
    circle: &Circle,
    title: &str,
) -> io::Result<()> {
    let dump = &looked.dump;
    let ids = by_id(dump);
    let said = match circle.members.len() {
        1 => "a thread waits for what it has itself, and will never go on".to_owned(),
        count => format!("{count} threads wait for each other, and none will ever go on"),
    };
    writeln!(out, "\n{BAD}{title}: {said}{BAD:#}")?;
    for at in &circle.members {
        let thread = &dump.threads[*at];
        let Some(wait) = &thread.wait else { continue };
        let owner = ids.get(&wait.owner).map_or_else(String::new, |owner| name(owner));
        writeln!(out, "  {BOLD}{}{BOLD:#} {}, held by {owner}", name(thread), waits(thread, wait))?;
        stack(out, dump, thread, FRAMES)?;
    }
    let behind: usize = circle.victims.iter().map(|tree| tree.count).sum();
    if behind > 0 {
        let (verb, word) = if behind == 1 { ("waits", "thread") } else { ("wait", "threads") };
        writeln!(out, "  behind them {verb} {behind} {word}:")?;
        circle.victims.iter().try_for_each(|tree| self::tree(out, dump, tree, 4))?;
    }
    Ok(())
}

/// Static initialisers that seem to wait for each other.
fn initialisers(out: &mut impl Write, dump: &ThreadDump, found: &Initialisers) -> io::Result<()> {
    let said = match found.inside.len() {
        1 => "a thread stands still in one".to_owned(),
        count => format!("{count} threads stand still in them"),
    };
    writeln!(out, "\n{BAD}Perhaps a deadlock of static initialisers: {said}{BAD:#}")?;
    for (at, class) in &found.inside {
        let thread = &dump.threads[*at];
        writeln!(out, "  {BOLD}{}{BOLD:#} initialises {}", name(thread), plain(class))?;
        stack(out, dump, thread, FRAMES)?;
    }
    for at in found.behind.iter().take(MOST_WAITING) {
        let thread = &dump.threads[*at];
        writeln!(out, "  {BOLD}{}{BOLD:#} stands still, too", name(thread))?;
        stack(out, dump, thread, 1)?;
    }
    if let Some(more @ 1..) = found.behind.len().checked_sub(MOST_WAITING) {
        writeln!(out, "  … and {more} more")?;
    }
    let text = "The JVM calls them running, and they use no processor time: they wait inside of \
                it, which is how a thread waits for a class that another one initialises. For \
                which class, it does not tell.";
    let width = term::width().unwrap_or(usize::MAX).saturating_sub(2);
    wrap(text, width).iter().try_for_each(|line| writeln!(out, "  {DIM}{line}{DIM:#}"))
}

pub fn stack(
    out: &mut impl Write,
    dump: &ThreadDump,
    thread: &DumpedThread,
    most: usize,
) -> io::Result<()> {
    let frames: Vec<_> = dump.frames_of(thread).collect();
    // How a lock waits is the same everywhere; who called it is what tells.
    let inside =
        frames.iter().take_while(|frame| WAITING.iter().any(|of| frame.class.starts_with(of)));
    let inside = Some(inside.count()).filter(|count| *count < frames.len()).unwrap_or(0);
    for line in frames.iter().skip(inside).take(most) {
        writeln!(out, "      {DIM}at {}{DIM:#}", frame(line))?;
    }
    let more = frames.len().saturating_sub(inside + most);
    if more > 0 {
        writeln!(out, "      {DIM}… {more} more{DIM:#}")?;
    }
    Ok(())
}

/// Who waits for the root of a tree, which is named already.
fn tree(out: &mut impl Write, dump: &ThreadDump, tree: &Waiting, indent: usize) -> io::Result<()> {
    let ids = by_id(dump);
    let lines = tree.in_order();
    for (depth, at) in lines.iter().skip(1).take(MOST_WAITING) {
        let thread = &dump.threads[*at];
        let Some(wait) = &thread.wait else { continue };
        let owner = ids.get(&wait.owner).map_or_else(String::new, |owner| name(owner));
        let indent = indent + 2 * (depth - 1).min(DEEPEST);
        let lock = lock(&wait.class, wait.lock);
        writeln!(out, "{:indent$}{} waits for {lock} of {owner}", "", name(thread))?;
    }
    if lines.len() > MOST_WAITING + 1 {
        writeln!(out, "{:indent$}… and {} more", "", lines.len() - MOST_WAITING - 1)?;
    }
    Ok(())
}

/// Threads that others wait for without a circle.
fn blockers(out: &mut impl Write, dump: &ThreadDump, all: &[Waiting]) -> io::Result<()> {
    for tree in all.iter().take(MOST_BLOCKERS) {
        let thread = &dump.threads[tree.thread];
        let count = several(tree.count, "thread");
        writeln!(
            out,
            "\n{BOLD}{}{BOLD:#} {} and holds up {WARN}{count}{WARN:#}",
            name(thread),
            does(dump, thread)
        )?;
        stack(out, dump, thread, FRAMES)?;
        self::tree(out, dump, tree, 4)?;
    }
    if all.len() > MOST_BLOCKERS {
        writeln!(out, "\n… and {} more threads that hold up others", all.len() - MOST_BLOCKERS)?;
    }
    Ok(())
}

/// Locks that threads wait for and whose owner the JVM does not record.
fn unknown(out: &mut impl Write, dump: &ThreadDump) -> io::Result<()> {
    let mut locks: BTreeMap<(u64, &str), Vec<&DumpedThread>> = BTreeMap::new();
    for thread in &dump.threads {
        let Some(wait) = &thread.wait else { continue };
        let of_juc = AWAITED.iter().any(|of| wait.class.starts_with(of))
            && !wait.class.ends_with("ConditionObject");
        let counts = wait.how == How::Enter || wait.how == How::Park && of_juc;
        if counts && !waits_for_owner(wait) {
            locks.entry((wait.lock, &wait.class)).or_default().push(thread);
        }
    }
    if locks.is_empty() {
        return Ok(());
    }
    let mut locks: Vec<_> = locks.into_iter().collect();
    locks.sort_by_key(|(_, threads)| std::cmp::Reverse(threads.len()));
    writeln!(
        out,
        "\n{BOLD}Awaited, with no owner on record{BOLD:#} {DIM}(semaphores, latches, \
                   readers, futures){DIM:#}"
    )?;
    for ((hash, class), threads) in locks.iter().take(MOST_LOCKS) {
        writeln!(out, "  {} by {}", lock(class, *hash), names(threads))?;
    }
    if locks.len() > MOST_LOCKS {
        writeln!(out, "  … and {} more", locks.len() - MOST_LOCKS)?;
    }
    Ok(())
}

fn names(threads: &[&DumpedThread]) -> String {
    let mut text: Vec<String> = threads.iter().take(MOST_NAMES).map(|t| name(t)).collect();
    if threads.len() > MOST_NAMES {
        text.push(format!("{} more", threads.len() - MOST_NAMES));
    }
    text.join(", ")
}

/// Threads with equal stacks together, the largest groups first.
pub fn groups(out: &mut impl Write, dump: &ThreadDump) -> io::Result<()> {
    let mut groups: BTreeMap<_, Vec<&DumpedThread>> = BTreeMap::new();
    for thread in &dump.threads {
        let key = (thread.stack, thread.state, thread.is_virtual);
        groups.entry(key).or_default().push(thread);
    }
    let empty = |threads: &[&DumpedThread]| dump.frames_of(threads[0]).next().is_none();
    let mut groups: Vec<_> = groups.into_values().collect();
    let silent: usize = groups.iter().filter(|g| empty(g)).map(Vec::len).sum();
    groups.retain(|threads| !empty(threads));
    groups.sort_by_key(|threads| std::cmp::Reverse(threads.len()));
    writeln!(out, "\n{BOLD}Stacks{BOLD:#} {DIM}({} different){DIM:#}", groups.len())?;
    for threads in groups.iter().take(MOST_GROUPS) {
        let count = several(threads.len(), "thread");
        writeln!(out, "  {BOLD}{count}{BOLD:#} {}: {}", threads[0].state.name(), names(threads))?;
        stack(out, dump, threads[0], GROUP_FRAMES)?;
    }
    if groups.len() > MOST_GROUPS {
        writeln!(out, "  … and {} more", several(groups.len() - MOST_GROUPS, "stack"))?;
    }
    if silent > 0 {
        writeln!(out, "  {DIM}{} without Java frames{DIM:#}", several(silent, "thread"))?;
    }
    Ok(())
}
