//! Reading, printing and weaving survive any bytes: mutated classes, from a fixed seed.
//!
//! A panic fails the test; a hang or a blow-up in memory would too, by time. What is still
//! readable must also be written back as it was, and what was woven must be readable.

#[path = "../examples/common/mod.rs"]
mod common;
#[path = "support/compiled.rs"]
mod compiled;
mod support;

use tare_classfile::{ClassFile, print, writer};
use tare_weaver::{MethodOutcome, Options, Outcome, Probes, Weaver};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let dirs = ["8", "17", "25"].into_iter().filter_map(compiled::shapes);
    let mut out: Vec<Vec<u8>> = dirs
        .flat_map(|dir| common::class_files(&dir))
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    out.push(support::assemble(
        "class T 48
         method <init> (I)V - 3 3
            iload_1
            ifeq a
         s:
            aload_0
            iconst_1
            invokespecial T.<init>:(I)V
            goto b
         a:
            aload_0
            invokespecial java/lang/Object.<init>:()V
         b:
            jsr c
         d:
            return
         c:
            astore_2
            iinc 1 1
            iload_1
            lookupswitch 1 s 5 b d
            ret 2
            try s b c any",
    ));
    out
}

/// Everything that can be done with bytes; whether they were a class.
fn exercise(bytes: &[u8], weaver: &mut Weaver, modes: &[Probes], at: usize) -> bool {
    let Ok(class) = ClassFile::parse(bytes) else {
        for probes in modes {
            assert!(weaver.weave(bytes, |m| common::plan(m, 1, probes, None)).is_err());
        }
        return false;
    };
    assert_eq!(writer::write(&class), bytes);
    let mut text = String::new();
    print::print_class(&class, &mut text).unwrap();
    let lines = common::method_lines(bytes);
    // One mode per mutation, and all of them over many.
    let probes = &modes[at % modes.len()];
    let outcome = weaver
        .weave(bytes, |m| common::plan(m, 70000, probes, lines.get(m.index).copied().flatten()));
    if let Ok(Outcome::Woven { bytes, .. }) = outcome {
        let class = ClassFile::parse(&bytes).expect("what was woven is readable");
        assert_eq!(writer::write(&class), bytes);
    }
    true
}

#[test]
fn mutated_classes_do_no_harm() {
    let corpus = corpus();
    let modes: Vec<Probes> = common::MODES.iter().filter_map(|m| common::probes(m)).collect();
    let mut weaver = Weaver::new(Options { allow_huge: true });
    let mut random = Random(0x7a3e_51c9_2b4d_8f01);
    let (mut readable, mut total) = (0, 0);
    for (i, original) in corpus.iter().enumerate() {
        for round in 0..150 {
            let mut bytes = original.clone();
            match random.below(6) {
                0 => bytes.truncate(random.below(original.len())),
                1 => {
                    let other = &corpus[random.below(corpus.len())];
                    let (at, from) = (random.below(bytes.len()), random.below(other.len()));
                    let len = random.below(64).min(bytes.len() - at).min(other.len() - from);
                    bytes[at..at + len].copy_from_slice(&other[from..from + len]);
                }
                2 => {
                    let at = random.below(bytes.len());
                    bytes.insert(at, random.next() as u8);
                }
                3 => {
                    let at = random.below(bytes.len());
                    bytes.remove(at);
                }
                _ => {
                    // A few flips behind the pool keep the outline and spoil the inside.
                    for _ in 0..=random.below(4) {
                        let at = bytes.len() / 2 + random.below(bytes.len() / 2);
                        bytes[at] = match random.below(3) {
                            0 => random.next() as u8,
                            1 => bytes[at].wrapping_add(1),
                            _ => bytes[at] ^ (1 << random.below(8)),
                        };
                    }
                }
            }
            total += 1;
            readable += u32::from(exercise(&bytes, &mut weaver, &modes, i + round));
        }
    }
    // A test of the test: enough of it must get past the outline.
    assert!(readable > total / 5, "{readable} of {total}");
}

/// Flips inside of the code itself, where jumps, frames and types live.
#[test]
fn mutated_code_does_no_harm() {
    let modes: Vec<Probes> = common::MODES.iter().filter_map(|m| common::probes(m)).collect();
    let mut weaver = Weaver::new(Options { allow_huge: true });
    let mut random = Random(0x51f0_9d27_66b3_0c4d);
    let (mut woven, mut refused) = (0, 0);
    for original in corpus() {
        let class = ClassFile::parse(&original).unwrap();
        let codes: Vec<(usize, usize)> = class
            .methods
            .iter()
            .filter_map(|m| m.attributes.find(&class.pool, "Code"))
            .map(|a| (a.offset + 8, a.data.len() - 8))
            .collect();
        for round in 0..100 {
            let mut bytes = original.clone();
            let Some(&(start, len)) = codes.get(random.below(codes.len())) else { continue };
            for _ in 0..=random.below(2) {
                let at = start + random.below(len);
                bytes[at] = if random.below(2) == 0 { random.next() as u8 } else { bytes[at] ^ 1 };
            }
            exercise(&bytes, &mut weaver, &modes, round);
            let probes = &modes[round % modes.len()];
            if let Ok(outcome) = weaver.weave(&bytes, |m| common::plan(m, 3, probes, None)) {
                for m in &outcome.report().methods {
                    match m.outcome {
                        MethodOutcome::Refused(_) => refused += 1,
                        _ => woven += 1,
                    }
                }
            }
        }
    }
    assert!(woven > 1000 && refused > 100, "woven {woven}, refused {refused}");
}
