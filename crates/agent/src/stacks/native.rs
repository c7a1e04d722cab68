//! Native frames: by the unwind tables of their modules, by frame pointers where there are none.

use super::memory::Memory;
use super::walk::LARGEST_FRAME;
use tare_unwind::{Budget, Generation, Modules, Published};

/// Tables for unwinding native code, of the modules that are loaded now.
pub static MODULES: Published<Modules> = Published::new();

/// Which modules were loaded when [`MODULES`] was last filled.
#[derive(Default)]
pub struct LoadedModules(Option<Generation>);

impl LoadedModules {
    /// Reads the tables when libraries have come or gone. For one thread at a time, and no handler.
    pub fn renew(&mut self) {
        let now = Generation::now();
        if self.0 == Some(now) {
            return;
        }
        let pid = std::process::id().cast_signed();
        let before = MODULES.read(0);
        let modules = Modules::read(pid, before.as_deref(), Budget::default());
        drop(before);
        self.0 = Some(modules.generation);
        MODULES.replace(Some(Box::new(modules)));
    }
}

/// The registers that tell where a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub pc: u64,
    pub sp: u64,
    pub fp: u64,
}

/// Finds the caller of a native frame.
pub trait NativeStep {
    /// Whether an address is in native code that is known.
    fn knows(&self, pc: u64) -> bool;

    fn step(&self, memory: &impl Memory, place: Place, leaf: bool) -> Option<Place>;
}

/// Frame pointers, for libraries of which no better is known.
pub struct FramePointers;

impl NativeStep for FramePointers {
    fn knows(&self, _: u64) -> bool {
        false
    }

    fn step(&self, memory: &impl Memory, place: Place, _leaf: bool) -> Option<Place> {
        // Code that keeps no frame pointer has anything else in that register, and what is at such
        // an address may be nothing.
        let is_frame = place.fp >= place.sp && place.fp.is_multiple_of(8);
        if !is_frame || place.fp - place.sp > LARGEST_FRAME {
            return None;
        }
        Some(Place {
            pc: memory.word(place.fp.wrapping_add(8))?,
            sp: place.fp.wrapping_add(16),
            fp: memory.word(place.fp)?,
        })
    }
}

/// Native frames by the tables of their modules; by frame pointers where there are none.
pub struct UnwindTables<'a>(pub &'a Modules);

impl NativeStep for UnwindTables<'_> {
    fn knows(&self, pc: u64) -> bool {
        self.0.find(pc).is_some()
    }

    fn step(&self, memory: &impl Memory, place: Place, leaf: bool) -> Option<Place> {
        struct Reads<'a, M>(&'a M);
        impl<M: Memory> tare_unwind::Memory for Reads<'_, M> {
            fn load(&mut self, address: u64) -> Option<u64> {
                self.0.word(address)
            }
        }
        let from = tare_unwind::Cursor {
            pc: place.pc,
            sp: place.sp,
            fp: place.fp,
            lr: 0,
            interrupted: leaf,
        };
        match tare_unwind::step(self.0, from, &mut Reads(memory)) {
            Ok(to) => Some(Place { pc: to.pc, sp: to.sp, fp: to.fp }),
            Err(tare_unwind::End::Bottom) => None,
            Err(_) => FramePointers.step(memory, place, leaf),
        }
    }
}
