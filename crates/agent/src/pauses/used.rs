//! How much of the heap is in use, read from HotSpot's structures by its exported tables. While the
//! world stands still these are plain loads; nothing is called.
//!
//! What "in use" means is the collector's business: Serial and Parallel tell it to the byte, G1 by
//! what it has summed up (the region that threads allocate in is not in it), ZGC and Shenandoah by
//! pages and regions.

use crate::jvm::Jvmti;
use crate::vm_tables::{Missing, Tables, word};

/// Not known.
pub const UNKNOWN: u64 = u64::MAX;

/// Bytes in use: of the whole heap, and of the old generation if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    pub heap: u64,
    pub old: u64,
}

impl Used {
    pub const UNKNOWN: Used = Used { heap: UNKNOWN, old: UNKNOWN };
}

/// Where one collector keeps what.
#[derive(Clone, Copy, Debug)]
pub enum Places {
    /// Serial and Parallel: where the pointers to eden, survivors and the old space are, and where
    /// in a space its beginning and its top are.
    Spaces { young: [u64; 3], old: u64, bottom: u64, top: u64 },
    /// G1: the bytes of all regions, the number of old ones, and the bytes of one.
    Regions { summary: u64, old: u64, grain: u64 },
    /// One number.
    Number(u64),
}

impl Places {
    /// Those of this JVM.
    pub fn find(jvmti: Jvmti) -> Result<Self, Missing> {
        let tables = Tables::read(jvmti.inside_libjvm())?;
        let heap = tables.static_value("Universe", "_collectedHeap")?;
        let on = |flag: &str| tables.flag(flag) == Some(true);
        let at = |of: &[&str], name: &str| tables.offset(of, name);
        if heap == 0 {
            return Err(Missing("the heap".into()));
        }
        match () {
            () if on("UseSerialGC") => serial(&tables, heap),
            () if on("UseParallelGC") => parallel(&tables),
            () if on("UseG1GC") => {
                let sets = ["G1HeapRegionSetBase", "HeapRegionSetBase"];
                let length = at(&sets, "_length")?;
                let grain = tables.static_value("G1HeapRegion", "GrainBytes");
                Ok(Places::Regions {
                    summary: heap + at(&["G1CollectedHeap"], "_summary_bytes_used")?,
                    old: heap + at(&["G1CollectedHeap"], "_old_set")? + length,
                    grain: grain.or_else(|_| tables.static_value("HeapRegion", "GrainBytes"))?,
                })
            }
            () if on("UseZGC") => z(&tables, heap),
            () if on("UseShenandoahGC") => match at(&["ShenandoahHeap"], "_used") {
                Ok(used) => Ok(Places::Number(heap + used)),
                Err(_) => {
                    let global = heap + at(&["ShenandoahHeap"], "_global_generation")?;
                    // SAFETY: a field of the heap, which lives as long as the JVM.
                    let global = unsafe { word(global) };
                    Ok(Places::Number(global + at(&["ShenandoahGeneration"], "_used")?))
                }
            },
            () => Err(Missing("the heap of this collector".into())),
        }
    }

    /// To be called while the world stands still. Takes no lock and allocates nothing.
    pub fn used(self) -> Used {
        // SAFETY: structures of the heap that live as long as the JVM; their fields are read while
        // nobody moves them.
        unsafe {
            match self {
                Places::Spaces { young, old, bottom, top } => {
                    let used = |pointer: u64| {
                        let space = word(pointer);
                        word(space + top).saturating_sub(word(space + bottom))
                    };
                    let old = used(old);
                    Used { heap: young.into_iter().map(used).sum::<u64>() + old, old }
                }
                Places::Regions { summary, old, grain } => {
                    let regions = word(old) & 0xffff_ffff;
                    Used { heap: word(summary), old: regions * grain }
                }
                Places::Number(at) => Used { heap: word(at), old: UNKNOWN },
            }
        }
    }
}

fn serial(tables: &Tables, heap: u64) -> Result<Places, Missing> {
    let heaps = ["SerialHeap", "GenCollectedHeap"];
    let generation = |name: &str| -> Result<u64, Missing> {
        let at = heap + tables.offset(&heaps, name)?;
        // SAFETY: a field of the heap, which lives as long as the JVM.
        Ok(unsafe { word(at) })
    };
    let (young, old) = (generation("_young_gen")?, generation("_old_gen")?);
    let of_young = |name: &str| Ok(young + tables.offset(&["DefNewGeneration"], name)?);
    Ok(Places::Spaces {
        young: [of_young("_eden_space")?, of_young("_from_space")?, of_young("_to_space")?],
        old: old + tables.offset(&["TenuredGeneration"], "_the_space")?,
        bottom: tables.offset(&["ContiguousSpace", "Space"], "_bottom")?,
        top: tables.offset(&["ContiguousSpace"], "_top")?,
    })
}

fn parallel(tables: &Tables) -> Result<Places, Missing> {
    let young = tables.static_value("ParallelScavengeHeap", "_young_gen")?;
    let old = tables.static_value("ParallelScavengeHeap", "_old_gen")?;
    let of_young = |name: &str| Ok(young + tables.offset(&["PSYoungGen"], name)?);
    Ok(Places::Spaces {
        young: [of_young("_eden_space")?, of_young("_from_space")?, of_young("_to_space")?],
        old: old + tables.offset(&["PSOldGen"], "_object_space")?,
        bottom: tables.offset(&["MutableSpace"], "_bottom")?,
        top: tables.offset(&["MutableSpace"], "_top")?,
    })
}

/// The one with generations and the one before it, which JDK 21 calls X.
fn z(tables: &Tables, heap: u64) -> Result<Places, Missing> {
    let generational = tables.flag("ZGenerational") != Some(false);
    let names = match generational || tables.field("XCollectedHeap", "_heap").is_none() {
        true => ["ZCollectedHeap", "ZHeap", "ZPageAllocator"],
        false => ["XCollectedHeap", "XHeap", "XPageAllocator"],
    };
    let allocator = heap
        + tables.offset(&names[..1], "_heap")?
        + tables.offset(&names[1..2], "_page_allocator")?;
    if let Ok(used) = tables.offset(&names[2..], "_used") {
        return Ok(Places::Number(allocator + used));
    }
    // A number of four bytes, whatever lies behind it.
    let nodes = tables.static_value("ZNUMA", "_count")? & 0xffff_ffff;
    if nodes != 1 {
        return Err(Missing("the sum over several NUMA nodes".into()));
    }
    let partitions = allocator
        + tables.offset(&names[2..], "_partitions")?
        + tables.offset(&["ZPerNUMAZPartition"], "_addr")?;
    // SAFETY: a field of the heap, which lives as long as the JVM.
    let first = unsafe { word(partitions) };
    Ok(Places::Number(first + tables.offset(&["ZPartition"], "_used")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_regions_are_summed_up() {
        let space = |used: u64| [0_u64, 0x1000, 0x1000 + used];
        let spaces = [space(100), space(20), space(0), space(3)];
        let pointers: Vec<u64> = spaces.iter().map(|space| space.as_ptr() as u64).collect();
        let at = |index: usize| (&raw const pointers[index]) as u64;
        let places =
            Places::Spaces { young: [at(0), at(1), at(2)], old: at(3), bottom: 8, top: 16 };
        assert_eq!(places.used(), Used { heap: 123, old: 3 });
        // What lies behind the number of regions is another's.
        let regions = [4096_u64, 0xdead_0000_0003];
        let at = |index: usize| (&raw const regions[index]) as u64;
        let places = Places::Regions { summary: at(0), old: at(1), grain: 1 << 20 };
        assert_eq!(places.used(), Used { heap: 4096, old: 3 << 20 });
        assert_eq!(Places::Number(at(0)).used(), Used { heap: 4096, old: UNKNOWN });
    }
}
