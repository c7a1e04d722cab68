//! Code regions: which methods of a class have source lines, or are methods, that a recording
//! times.

use super::rules;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tare_classfile::attributes::LineNumber;
use tare_classfile::{ClassFile, Code, Member, access};
use tare_protocol::{REGIONS_MAX, Refusal, Region};
use tare_weaver::RegionPlan;

/// The regions of a recording, and whether any code of each was seen.
pub struct Regions {
    all: Vec<Region>,
    seen: Vec<AtomicBool>,
}

impl Regions {
    pub fn new(all: &[Region]) -> Self {
        let all = all[..all.len().min(REGIONS_MAX)].to_vec();
        let seen = all.iter().map(|_| AtomicBool::new(false)).collect();
        Regions { all, seen }
    }

    pub fn list(&self) -> Vec<Region> {
        self.all.clone()
    }

    pub fn fits_class(&self, class: &str) -> bool {
        self.all.iter().any(|region| region.fits_class(class))
    }

    /// Those of which no code was seen yet.
    pub fn unseen(&self) -> impl Iterator<Item = Refusal> {
        let unseen = self.all.iter().zip(&self.seen).filter(|(_, seen)| !seen.load(Relaxed));
        unseen.map(|(region, _)| Refusal {
            what: format!("region {region}"),
            count: 1,
            reason: "no loaded class has such code".to_owned(),
        })
    }

    /// For each method of a class, by its position, the regions in it; empty when there are none.
    pub fn of_class(&self, name: &str, bytes: &[u8]) -> Vec<Vec<RegionPlan>> {
        if !self.fits_class(name) {
            return Vec::new();
        }
        let Ok(class) = ClassFile::parse(bytes) else { return Vec::new() };
        let mut plans = vec![Vec::new(); class.methods.len()];
        for (id, region) in self.all.iter().enumerate().filter(|(_, r)| r.fits_class(name)) {
            let in_method = |member: &Member<'_>| match region {
                Region::Lines { first, last, .. } => has_lines(&class, member, *first, *last),
                Region::Method(method) => {
                    has_code(&class, member) && {
                        let text = |index| class.pool.utf8(index).unwrap_or_default();
                        let (of, descriptor) =
                            (text(member.name_index), text(member.descriptor_index));
                        rules::fits_any(std::slice::from_ref(method), name, of, descriptor)
                    }
                }
            };
            let found: Vec<usize> = class
                .methods
                .iter()
                .enumerate()
                .filter(|(_, member)| in_method(member))
                .map(|(at, _)| at)
                .collect();
            // The body of a lambda is a method of its own, and its lines are among those of the
            // method around it. Only where the lines are the body's alone is it what was meant.
            let is_written = |at: &usize| class.methods[*at].access_flags & access::SYNTHETIC == 0;
            let written = found.iter().any(is_written);
            let (first, last) = match region {
                Region::Lines { first, last, .. } => (*first, *last),
                Region::Method(_) => (0, u16::MAX),
            };
            for at in found.into_iter().filter(|at| !written || is_written(at)) {
                plans[at].push(RegionPlan { id: id as u32, first, last });
                self.seen[id].store(true, Relaxed);
            }
        }
        plans
    }
}

fn has_code(class: &ClassFile<'_>, member: &Member<'_>) -> bool {
    member.attributes.find(&class.pool, "Code").is_some()
}

fn has_lines(class: &ClassFile<'_>, member: &Member<'_>, first: u16, last: u16) -> bool {
    let rows = || {
        let code = Code::parse(&member.attributes.find(&class.pool, "Code")?).ok()?;
        code.attributes.find(&class.pool, "LineNumberTable")?.rows::<4>().ok()
    };
    let inside = |row: &[u8; 4]| (first..=last).contains(&LineNumber::from_row(*row).line);
    rows().is_some_and(|rows| rows.iter().any(inside))
}
