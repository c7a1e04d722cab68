//! Compares what another tool says of a dump with what we say, object by object.
//! `cargo xtask heap-oracle` makes the dumps, asks the tools (`oracle/*.java`) and runs this:
//!
//! `oracle mat|visualvm DUMP WITNESS` reads four numbers for each object: its address, the address
//! of its dominator (0: none, -1: not told), its own size, what it retains.
//!
//! Tools compute sizes of objects in different ways, since a dump has none. So what they say an
//! object retains is compared with the sum of *their* sizes over *our* dominator tree, which must
//! be equal to the byte. How many of the sizes themselves are equal is told beside it.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use tare_heapdump::{Conventions, Heap, Level, Node, Options, Silent};

/// What the other tool says of an object.
#[derive(Clone, Copy)]
struct Said {
    dominator: i64,
    size: u64,
    retained: u64,
}

/// A comparison, with the first few that differ.
struct Tally {
    name: &'static str,
    same: u64,
    differ: u64,
    by_class: HashMap<String, u64>,
    examples: Vec<String>,
}

impl Tally {
    fn new(name: &'static str) -> Tally {
        let (by_class, examples) = (HashMap::new(), Vec::new());
        Tally { name, same: 0, differ: 0, by_class, examples }
    }

    fn add(&mut self, heap: &Heap, node: Node, is_same: bool, what: impl FnOnce() -> String) {
        if is_same {
            self.same += 1;
            return;
        }
        self.differ += 1;
        let class = heap.class(node).name.clone();
        if self.examples.len() < 5 {
            self.examples.push(format!("{class} @{:x}: {}", heap.address(node), what()));
        }
        *self.by_class.entry(class).or_default() += 1;
    }

    fn print(&self) {
        println!("  {}: {} the same, {} differ", self.name, self.same, self.differ);
        let mut classes: Vec<_> = self.by_class.iter().collect();
        classes.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        for (class, count) in classes.iter().take(5) {
            println!("      {count} of {class}");
        }
        for example in &self.examples {
            println!("      {example}");
        }
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [tool, dump, witness] = &words[..] else {
        return Err("say: oracle mat|visualvm DUMP WITNESS".into());
    };
    let conventions = match tool.as_str() {
        "mat" => Conventions::Mat,
        "visualvm" => Conventions::Ours,
        other => return Err(format!("{other} is no tool that is known").into()),
    };
    let options = Options { conventions, ..Options::default() };
    let heap = Heap::open(Path::new(dump), &options, &Silent)?;
    let (said, unknown) = read(&heap, witness)?;
    let held = |node: &Node| heap.level(*node) == Level::Strong;

    let mut there = Tally::new("held objects");
    for node in heap.nodes().filter(held) {
        // VisualVM does not count classes among the objects.
        let is_class = heap.class(node).name == "java.lang.Class";
        let is_there =
            said[node as usize].is_some() || is_class && conventions == Conventions::Ours;
        there.add(&heap, node, is_there, || "they do not have it".to_owned());
    }
    let mut dominators = Tally::new("dominators");
    let mut sizes = Tally::new("sizes of objects by themselves");
    let mut retained = Tally::new("retained, by their sizes");
    let sums = sums(&heap, &said);
    for node in heap.nodes() {
        let Some(said) = said[node as usize] else { continue };
        if !held(&node) {
            // MAT leaves out what nothing holds; the other one lists it.
            let is_listed = conventions == Conventions::Ours;
            dominators.add(&heap, node, is_listed, || "we say that nothing holds it".to_owned());
            continue;
        }
        let ours = heap.size(node);
        sizes.add(&heap, node, ours == said.size, || format!("{ours}, they say {}", said.size));
        if said.dominator != -1 {
            let ours = heap.dominator(node).map_or(0, |above| heap.address(above));
            dominators.add(&heap, node, ours == said.dominator as u64, || {
                format!("@{ours:x}, they say @{:x}", said.dominator)
            });
        }
        let ours = sums[node as usize];
        retained.add(&heap, node, ours == said.retained, || {
            format!("{ours}, they say {}", said.retained)
        });
    }
    let objects = said.iter().flatten().count();
    println!("  objects: {objects} in theirs, {unknown} more that we do not have");
    println!("           {} in ours, {} held", heap.objects(), heap.sum(Level::Strong).objects);
    [&there, &dominators, &retained, &sizes].into_iter().for_each(Tally::print);
    // VisualVM has no objects for classes, so what hangs on them differs.
    let wrong_sums = if conventions == Conventions::Mat { retained.differ } else { 0 };
    let is_right = there.differ + dominators.differ + wrong_sums == 0;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

type Witness = (Vec<Option<Said>>, u64);

/// What is said of each of our objects, and of how many more that we do not have.
fn read(heap: &Heap, witness: &str) -> Result<Witness, Box<dyn Error>> {
    let mut all = vec![None; heap.objects() as usize];
    let mut unknown = 0;
    for record in fs::read(witness)?.chunks_exact(32) {
        let number = |at: usize| {
            let bytes = record[at..].first_chunk().expect("a record has 32 bytes");
            i64::from_be_bytes(*bytes)
        };
        let Some(node) = heap.find(number(0) as u64) else {
            unknown += 1;
            continue;
        };
        let (size, retained) = (number(16) as u64, number(24) as u64);
        all[node as usize] = Some(Said { dominator: number(8), size, retained });
    }
    Ok((all, unknown))
}

/// Their sizes, summed up over our dominator tree: from the leaves upwards.
fn sums(heap: &Heap, said: &[Option<Said>]) -> Vec<u64> {
    let mut sums: Vec<u64> = said.iter().map(|said| said.map_or(0, |said| said.size)).collect();
    let mut below = vec![0_u32; sums.len()];
    let above: Vec<Option<Node>> = heap.nodes().map(|node| heap.dominator(node)).collect();
    above.iter().flatten().for_each(|node| below[*node as usize] += 1);
    let mut ready: Vec<Node> = heap.nodes().filter(|node| below[*node as usize] == 0).collect();
    while let Some(node) = ready.pop() {
        let Some(above) = above[node as usize] else { continue };
        sums[above as usize] += sums[node as usize];
        below[above as usize] -= 1;
        if below[above as usize] == 0 {
            ready.push(above);
        }
    }
    sums
}
