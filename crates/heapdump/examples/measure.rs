//! How long a dump takes, stage by stage, and the most memory that it took; then how long it takes
//! to open it again with its index:
//! `cargo run --release -p tare-heapdump --example measure -- FILE`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use tare_heapdump::analyses::histogram::By;
use tare_heapdump::index::Key;
use tare_heapdump::{Heap, Level, Options, Progress, Silent};

struct Stages {
    began: Instant,
    /// The stage that runs, and when it began.
    now: Mutex<(&'static str, Instant)>,
}

impl Stages {
    fn enter(&self, stage: &'static str) {
        let mut now = self.now.lock().expect("no other thread has failed");
        if now.0 != stage {
            let (took, at) = (now.1.elapsed().as_secs_f64(), self.began.elapsed().as_secs_f64());
            println!("{took:>8.2} s {at:>8.2} s {:>6} MB  {}", most_memory() / 1000, now.0);
            *now = (stage, Instant::now());
        }
    }
}

impl Progress for Stages {
    fn tell(&self, stage: &'static str, _: u64, _: u64) {
        self.enter(stage);
    }
}

/// The most that this process ever had, in kB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a dump")?;
    let began = Instant::now();
    let stages = Stages { began, now: Mutex::new(("opening", began)) };
    let heap = Heap::open(Path::new(&path), &Options::default(), &stages)?;
    stages.enter("suspects");
    let suspects = heap.suspects(0.02, 5)?;
    stages.enter("histogram");
    let rows = heap.histogram(By::Class);
    stages.enter("end");
    let held = heap.sum(Level::Strong);
    println!("{} objects, {} bytes held, {} classes", held.objects, held.bytes, rows.len());
    println!("{} suspects; all of it took {:.2} s", suspects.len(), began.elapsed().as_secs_f64());
    println!(
        "{:.1} bytes of memory for each",
        most_memory() as f64 * 1024.0 / heap.objects() as f64
    );
    again(Path::new(&path), &heap)
}

/// Keeps the index in a file beside the dump that is gone afterwards.
fn again(path: &Path, heap: &Heap) -> Result<(), Box<dyn std::error::Error>> {
    let beside = path.with_extension("measured-index");
    let dump = || File::open(path);
    let began = Instant::now();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&beside)?);
    heap.write_index(&Key::of(&dump()?)?, &mut file, &Silent)?;
    let size = file.into_inner()?.metadata()?.len();
    println!("{:>8.2} s  to write an index of {size} bytes", began.elapsed().as_secs_f64());
    let largest = heap.dominated(None).first().map_or(0, |node| heap.address(*node));
    let began = Instant::now();
    let index = File::open(&beside);
    std::fs::remove_file(&beside)?;
    let opened = Heap::of_index(dump()?, index?, &Options::default(), &Silent)?;
    let opened = opened.map_err(|why| format!("the index cannot be used: {why:?}"))?;
    println!("{:>8.3} s  to open it with the index", began.elapsed().as_secs_f64());
    let one = opened.find(largest).map(|node| opened.retained(node));
    println!("{:>8.3} s  until one object was asked ({one:?})", began.elapsed().as_secs_f64());
    let suspects = opened.suspects(0.02, 5)?;
    let took = began.elapsed().as_secs_f64();
    println!("{took:>8.2} s  until {} suspects were found", suspects.len());
    Ok(())
}
