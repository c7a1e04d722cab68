//! How long a dump takes, stage by stage, and the most memory that it took:
//! `cargo run --release -p tare-heapdump --example measure -- FILE`.

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use tare_heapdump::analyses::histogram::By;
use tare_heapdump::{Heap, Level, Options, Progress};

struct Stages {
    began: Instant,
    /// The stage that runs, and when it began.
    now: Mutex<(&'static str, Instant)>,
}

impl Stages {
    fn enter(&self, stage: &'static str) {
        let mut now = self.now.lock().expect("no other thread has failed");
        if now.0 != stage {
            let (took, at) = (now.1.elapsed(), self.began.elapsed());
            println!("{:>8.2} s {:>8.2} s  {}", took.as_secs_f64(), at.as_secs_f64(), now.0);
            *now = (stage, Instant::now());
        }
    }
}

impl Progress for Stages {
    fn tell(&self, stage: &'static str, _: u64, _: u64) {
        self.enter(stage);
    }
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
    let status = std::fs::read_to_string("/proc/self/status")?;
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        println!("{line}");
    }
    Ok(())
}
