//! Where HotSpot keeps what a stack walker needs, from the tables that libjvm exports for its own
//! serviceability tools (`gHotSpotVMStructs` and its siblings).
//!
//! The tables give offsets, so one walker fits all versions; where a structure itself changed, the
//! difference is in [`At`]. A field that is missing means that this JVM cannot be walked, which is
//! said by its name; nothing is guessed.

use crate::vm_tables::{Field, Missing, Tables, word};

/// How a structure tells where something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// A field holds its address.
    Pointer(u64),
    /// A field holds its distance (i32) from the beginning of the structure.
    Distance(u64),
    /// The second field holds its distance (i32) from where the first one points.
    Behind(u64, u64),
    /// Nowhere.
    #[default]
    Absent,
}

pub const MOST_HEAPS: usize = 8;

/// Everything the walker needs to know, found once.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Addresses of the code heaps' structures; zero is none.
    pub heaps: [u64; MOST_HEAPS],
    pub heap_low: u64,
    pub heap_high: u64,
    pub heap_segments: u64,
    pub segment_shift: u64,
    pub block_used: u64,
    pub block_header: u64,
    pub blob_name: u64,
    pub blob_frame_size: u64,
    pub blob_frame_complete: u64,
    pub blob_code: At,
    pub nmethod_method: u64,
    pub nmethod_orig_pc: u64,
    /// The number of the compilation; where it is not known, nothing is remembered of its frames.
    pub nmethod_compilation: Option<u64>,
    pub deopt_handlers: [At; 2],
    pub scopes_pcs: At,
    pub scopes_pcs_end: At,
    pub scopes_data: At,
    pub metadata: At,
    /// The least byte of a compressed number: 0 before JDK 20, 1 since.
    pub unsigned5_base: u32,
    pub method_const: u64,
    /// A method's compiled code.
    pub method_code: Option<u64>,
    pub const_pool: u64,
    pub const_idnum: u64,
    pub const_code_size: u64,
    pub const_size: u64,
    pub pool_holder: u64,
    pub klass_ids: u64,
    pub interpreter: (u64, u64),
    pub call_stub_return: u64,
    /// In words from the frame pointer of an entry frame.
    pub entry_wrapper: i64,
    pub wrapper_anchor: u64,
    pub thread_anchor: u64,
    pub anchor_sp: u64,
    pub anchor_pc: u64,
    pub anchor_fp: u64,
    pub thread_stack_base: u64,
    pub thread_state: u64,
    pub thread_os: u64,
    pub os_state: u64,
    pub os_id: u64,
    /// The id of the thread or virtual thread that runs; since JDK 24.
    pub thread_owner_id: Option<u64>,
}

impl Layout {
    pub fn new(tables: &Tables, major: u32) -> Result<Self, Missing> {
        let t = tables;
        let heap_memory = t.offset(&["CodeHeap"], "_memory")?;
        let space_low = t.offset(&["VirtualSpace"], "_low")?;
        let compiled = ["nmethod", "CompiledMethod"];
        let blob_code = match t.field("CodeBlob", "_code_begin") {
            Some(field) => At::Pointer(field.offset),
            None => At::Distance(t.offset(&["CodeBlob"], "_code_offset")?),
        };
        let nmethod = |name: &str| t.offset(&["nmethod"], name);
        // Since JDK 23 what never changes is outside the code cache, and since JDK 25 what is
        // changed by linking is, too.
        let (scopes_pcs, scopes_pcs_end, scopes_data) = match t.field("nmethod", "_immutable_data")
        {
            Some(Field { offset: base, .. }) => (
                At::Behind(base, nmethod("_scopes_pcs_offset")?),
                At::Behind(base, nmethod("_scopes_data_offset")?),
                At::Behind(base, nmethod("_scopes_data_offset")?),
            ),
            None => (
                At::Distance(nmethod("_scopes_pcs_offset")?),
                At::Distance(nmethod("_dependencies_offset")?),
                At::Pointer(t.offset(&compiled, "_scopes_data_begin")?),
            ),
        };
        let metadata = match t.field("CodeBlob", "_mutable_data") {
            Some(Field { offset: base, .. }) => {
                At::Behind(base, t.offset(&["CodeBlob"], "_relocation_size")?)
            }
            None => At::Distance(nmethod("_metadata_offset")?),
        };
        let deopt = |pointer: &str, distance: &str| match t.offset(&compiled, pointer) {
            Ok(offset) => At::Pointer(offset),
            Err(_) => nmethod(distance).map_or(At::Absent, At::Distance),
        };
        let buffer = t.static_value("AbstractInterpreter", "_code")?;
        let limit_at = buffer + t.offset(&["StubQueue"], "_buffer_limit")?;
        let buffer_at = buffer + t.offset(&["StubQueue"], "_stub_buffer")?;
        // SAFETY: fields of the interpreter's queue of stubs, which the JVM made at its start.
        let interpreter = unsafe { (word(buffer_at), u64::from(word(limit_at) as u32)) };
        let mut layout = Layout {
            heaps: [0; MOST_HEAPS],
            heap_low: heap_memory + space_low,
            heap_high: heap_memory + t.offset(&["VirtualSpace"], "_high")?,
            heap_segments: t.offset(&["CodeHeap"], "_segmap")? + space_low,
            segment_shift: 0,
            block_used: t.offset(&["HeapBlock::Header"], "_used")?,
            block_header: t.size("HeapBlock")?,
            blob_name: t.offset(&["CodeBlob"], "_name")?,
            blob_frame_size: t.offset(&["CodeBlob"], "_frame_size")?,
            blob_frame_complete: t.offset(&["CodeBlob"], "_frame_complete_offset")?,
            blob_code,
            nmethod_method: t.offset(&compiled, "_method")?,
            nmethod_orig_pc: nmethod("_orig_pc_offset")?,
            nmethod_compilation: nmethod("_compile_id").ok(),
            deopt_handlers: [
                deopt("_deopt_handler_begin", "_deopt_handler_offset"),
                deopt("_deopt_mh_handler_begin", "_deopt_mh_handler_offset"),
            ],
            scopes_pcs,
            scopes_pcs_end,
            scopes_data,
            metadata,
            unsigned5_base: u32::from(major >= 20),
            method_const: t.offset(&["Method"], "_constMethod")?,
            method_code: t.offset(&["Method"], "_code").ok(),
            const_pool: t.offset(&["ConstMethod"], "_constants")?,
            const_idnum: t.offset(&["ConstMethod"], "_method_idnum")?,
            const_code_size: t.offset(&["ConstMethod"], "_code_size")?,
            const_size: t.size("ConstMethod")?,
            pool_holder: t.offset(&["ConstantPool"], "_pool_holder")?,
            klass_ids: t.offset(&["InstanceKlass"], "_methods_jmethod_ids")?,
            interpreter: (interpreter.0, interpreter.0 + interpreter.1),
            call_stub_return: t.static_value("StubRoutines", "_call_stub_return_address")?,
            entry_wrapper: t.constant("frame::entry_frame_call_wrapper_offset")?,
            wrapper_anchor: t.offset(&["JavaCallWrapper"], "_anchor")?,
            thread_anchor: t.offset(&["JavaThread"], "_anchor")?,
            anchor_sp: t.offset(&["JavaFrameAnchor"], "_last_Java_sp")?,
            anchor_pc: t.offset(&["JavaFrameAnchor"], "_last_Java_pc")?,
            anchor_fp: t.offset(&["JavaFrameAnchor"], "_last_Java_fp")?,
            thread_stack_base: t.offset(&["JavaThread"], "_stack_base")?,
            thread_state: t.offset(&["JavaThread"], "_thread_state")?,
            thread_os: t.offset(&["JavaThread", "Thread"], "_osthread")?,
            os_state: t.offset(&["OSThread"], "_state")?,
            os_id: t.offset(&["OSThread"], "_thread_id")?,
            thread_owner_id: t.offset(&["JavaThread"], "_monitor_owner_id").ok(),
        };
        let shift_at = t.offset(&["CodeHeap"], "_log2_segment_size")?;
        let list = t.static_value("CodeCache", "_heaps")?;
        let length_at = list + t.offset(&["GrowableArrayBase"], "_len")?;
        let data_at = list + t.offset(&["GrowableArray<int>"], "_data")?;
        // SAFETY: the list of code heaps, which the JVM made at its start and never changes; it
        // has as many addresses as it says.
        unsafe {
            let length = (word(length_at) as u32 as usize).min(MOST_HEAPS);
            let data = word(data_at);
            for (index, heap) in layout.heaps.iter_mut().take(length).enumerate() {
                *heap = word(data + 8 * index as u64);
                layout.segment_shift = u64::from(word(*heap + shift_at) as u32);
            }
        }
        if layout.heaps[0] == 0 || !(5..=20).contains(&layout.segment_shift) {
            return Err(Missing("CodeCache::_heaps".into()));
        }
        Ok(layout)
    }
}
