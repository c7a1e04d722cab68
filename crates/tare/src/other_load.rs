//! How much of the machine others use, for measurements that need it for themselves.

use std::time::Duration;

/// Ticks that the kernel has counted since it started: of all processors, and of our ended
/// children.
#[derive(Clone, Copy)]
pub struct OtherLoad {
    busy: u64,
    all: u64,
    children: u64,
}

impl OtherLoad {
    /// From now on; `None` where the kernel does not tell.
    pub fn start() -> Option<Self> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let (busy, all) = of_machine(&read("/proc/stat")?)?;
        Some(OtherLoad { busy, all, children: of_children(&read("/proc/self/stat")?)? })
    }

    /// Which share of all processors others had since then: a hypervisor's other guests among them.
    pub fn others(self) -> Option<f64> {
        let now = OtherLoad::start()?;
        let ours = now.children.saturating_sub(self.children);
        let busy = now.busy.saturating_sub(self.busy).saturating_sub(ours);
        let all = now.all.saturating_sub(self.all).max(1);
        Some(busy as f64 / all as f64)
    }

    /// The share that others have at the moment.
    pub fn look(how_long: Duration) -> Option<f64> {
        let watch = OtherLoad::start()?;
        std::thread::sleep(how_long);
        watch.others()
    }
}

/// Busy and all ticks: `cpu user nice system idle iowait irq softirq steal …`.
fn of_machine(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    let all = ticks.iter().sum::<u64>();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((all - idle, all))
}

/// Ticks of children that have ended and were waited for, and of their children: the sixteenth and
/// seventeenth field. The second is a name, which may have spaces and brackets in it.
fn of_children(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let stat = "cpu  100 5 20 800 60 1 2 12 7 7\ncpu0 1 2 3\n";
        assert_eq!(of_machine(stat), Some((140, 1000)));
        assert_eq!(of_machine("cpu 1 2"), None);
        let stat = "4711 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 30 12 20 0";
        assert_eq!(of_children(stat), Some(42));
        assert_eq!(of_children("4711 (a)"), None);
    }

    /// A child of ours that is busy is none of the others.
    #[test]
    fn what_we_started_is_not_others() {
        let watch = OtherLoad::start().expect("Linux tells");
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", spin]).status().unwrap().success());
        let now = OtherLoad::start().unwrap();
        assert!(now.children > watch.children, "the child's time is known");
        let others = watch.others().unwrap();
        assert!((0.0..=1.0).contains(&others), "{others}");
    }
}
