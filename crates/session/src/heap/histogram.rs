//! HotSpot's own count of objects by class: no agent and no snapshot, but the program stands while
//! its objects are counted. And for how long it will stand, as far as that can be told before.

use crate::error::{Error, Result};
use std::time::{Duration, Instant};
use tare_attach::Jvm;
use tare_java_names::type_name;

/// What is known before the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Bytes of the heap that objects take, garbage included.
    pub used: u64,
    /// For how long the program will stand, from a heap of few large objects to one of many small
    /// ones.
    pub least: Duration,
    pub most: Duration,
}

/// Nanoseconds that the count takes for a kilobyte of objects: of large ones, of small ones.
const COUNTING: (u64, u64) = (50, 2000);

/// What a collection of the whole heap takes before it.
const COLLECTING: (u64, u64) = (100, 4000);

/// What HotSpot's dump takes after it.
const DUMPING: (u64, u64) = (800, 10_000);

/// Objects of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// As in source: `java.lang.String[]`.
    pub name: String,
    pub objects: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct ClassCounts {
    /// As HotSpot orders them: by bytes, the largest first. Classes of one name from several
    /// loaders are several.
    pub rows: Vec<ClassCount>,
    /// For how long the program stood at safepoints meanwhile; if the JVM does not tell, how long
    /// the command took.
    pub pause: Duration,
    pub is_exact: bool,
}

/// What the JVM may do while the program stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    Count,
    /// A collection of the whole heap, and a count.
    CollectAndCount,
    /// A collection, and HotSpot's own dump.
    CollectAndDump,
}

/// How long that will take; `None` if the JVM does not tell the size of its heap.
pub fn outlook(jvm: &Jvm, pause: Pause, patience: Duration) -> Result<Option<Outlook>> {
    let told = tare_attach::jcmd(jvm, "jcmd", "GC.heap_info", patience)?;
    Ok(used(&told).map(|used| {
        let (fast, slow) = match pause {
            Pause::Count => COUNTING,
            Pause::CollectAndCount => (COUNTING.0 + COLLECTING.0, COUNTING.1 + COLLECTING.1),
            Pause::CollectAndDump => (DUMPING.0 + COLLECTING.0, DUMPING.1 + COLLECTING.1),
        };
        let time = |per_kilobyte: u64| Duration::from_nanos((used >> 10) * per_kilobyte);
        Outlook { used, least: time(fast), most: time(slow) }
    }))
}

/// Counts objects by class. With `live` the JVM collects its whole heap first and counts what is
/// left; without, garbage is counted as well.
pub fn count(jvm: &Jvm, live: bool, patience: Duration) -> Result<ClassCounts> {
    let before = tare_attach::safepoint_time(jvm);
    let began = Instant::now();
    let option = if live { "-live" } else { "-all" };
    let told = tare_attach::jcmd(jvm, "inspectheap", option, patience)?;
    let whole = began.elapsed();
    let after = tare_attach::safepoint_time(jvm);
    let rows: Vec<ClassCount> = told.lines().filter_map(row).collect();
    if rows.is_empty() {
        return Err(Error::Confused(
            "the JVM's class histogram is none that tare can read".to_owned(),
        ));
    }
    let pause = before.zip(after).and_then(|(before, after)| after.checked_sub(before));
    Ok(ClassCounts { rows, pause: pause.unwrap_or(whole), is_exact: pause.is_some() })
}

/// Bytes in use by what `GC.heap_info` tells: of a heap, or the sum of its generations. Some
/// collectors put the number first.
fn used(told: &str) -> Option<u64> {
    let lines = told.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("Metaspace") && !line.starts_with("class space")
    });
    let words = lines.flat_map(|line| {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let at = words.iter().position(|word| *word == "used")?;
        let beside = [words.get(at + 1), at.checked_sub(1).and_then(|before| words.get(before))];
        beside.into_iter().flatten().find_map(|word| amount(word))
    });
    words.reduce(|all, one| all + one)
}

/// `4096K`, `12M`, `1G`.
fn amount(word: &str) -> Option<u64> {
    let (number, unit) = word.split_at_checked(word.len().checked_sub(1)?)?;
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `  12:   3000   96000  [Ljava.lang.String; (java.base@17.0.1)`
fn row(line: &str) -> Option<ClassCount> {
    let mut words = line.split_whitespace();
    let (number, objects, bytes) = (words.next()?, words.next()?, words.next()?);
    number.strip_suffix(':')?.parse::<u64>().ok()?;
    Some(ClassCount {
        name: class_name(words.next()?),
        objects: objects.parse().ok()?,
        bytes: bytes.parse().ok()?,
    })
}

fn class_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    if dimensions == 0 {
        return name.to_owned();
    }
    let class = element.strip_prefix('L').and_then(|name| name.strip_suffix(';'));
    let element = class.map(str::to_owned).or_else(|| type_name(element));
    element.map_or_else(|| name.to_owned(), |element| element + &"[]".repeat(dimensions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_names_are_those_of_sources() {
        let told = " num     #instances         #bytes  class name (module)\n\
                    -------------------------------------------------------\n\
                    \x20  1:          6053         412312  [B (java.base@17.0.21)\n\
                    \x20  2:           120           2880  [[Ljava.lang.String; (java.base@17.0.21)\n\
                    \x20  3:             7            168  shop.Order$$Lambda/0x00007f1\n\
                    Total          6180         415360\n";
        let rows: Vec<ClassCount> = told.lines().filter_map(row).collect();
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["byte[]", "java.lang.String[][]", "shop.Order$$Lambda/0x00007f1"]);
        assert_eq!((rows[0].objects, rows[0].bytes), (6053, 412_312));
    }

    #[test]
    fn the_size_of_each_kind_of_heap_is_found() {
        let g1 = " garbage-first heap   total 262144K, used 4096K [0x00000000f0000000, 0x00)\n\
                  \x20 region size 1024K, 3 young (3072K), 0 survivors (0K)\n\
                  \x20Metaspace       used 1234K, committed 1408K, reserved 1114112K\n\
                  \x20 class space    used 120K, committed 192K, reserved 1048576K\n";
        let serial = "def new generation   total 9792K, used 1000K [0x, 0x, 0x)\n\
                      \x20 eden space 8704K,  14% used [0x, 0x, 0x)\n\
                      \x20tenured generation   total 21888K, used 24K [0x, 0x, 0x)\n\
                      \x20  the space 21888K,   0% used [0x, 0x, 0x)\n";
        let shenandoah = "Shenandoah Heap\n 256M max, 256M soft max, 64M committed, 12M used\n\
                          \x20128 x 2048 K regions\n";
        let z = " ZHeap           used 10M, capacity 64M, max capacity 256M\n";
        for (told, bytes) in
            [(g1, 4096 << 10), (serial, 1024 << 10), (shenandoah, 12 << 20), (z, 10 << 20)]
        {
            assert_eq!(used(told), Some(bytes), "{told}");
        }
        assert_eq!(used("Epsilon Heap\n"), None);
    }
}
