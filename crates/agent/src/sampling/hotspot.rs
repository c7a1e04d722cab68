//! Where HotSpot keeps what a stack walker needs, from the tables that libjvm exports for its own
//! serviceability tools (`gHotSpotVMStructs` and its siblings).
//!
//! The tables give offsets, so one walker fits all versions; where a structure itself changed, the
//! difference is in [`At`]. A field that is missing means that this JVM cannot be walked, which is
//! said by its name; nothing is guessed.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};

/// The exported tables, copied.
pub struct Tables {
    fields: HashMap<(String, String), Field>,
    sizes: HashMap<String, u64>,
    constants: HashMap<String, i32>,
}

#[derive(Clone, Copy)]
struct Field {
    offset: u64,
    /// Of a static field.
    address: u64,
}

/// What was looked for and is not in the tables.
#[derive(Debug)]
pub struct Missing(pub String);

impl Tables {
    /// Reads the tables of the libjvm that `inside` points into, which is any function of it.
    pub fn read(inside: *const c_void) -> Result<Self, Missing> {
        let library = Library::containing(inside).ok_or(Missing("libjvm itself".into()))?;
        let mut fields = HashMap::new();
        let table = Table::find(&library, "gHotSpotVMStructs", "gHotSpotVMStructEntry")?;
        let part = |name: &str| table.part(&library, name);
        let (type_name, field_name) = (part("TypeName")?, part("FieldName")?);
        let (offset, address) = (part("Offset")?, part("Address")?);
        for entry in table.entries(type_name) {
            // SAFETY: the entry is one of the table, the parts are inside it, and HotSpot's
            // texts live as long as the library.
            unsafe {
                let key = (text(entry + type_name), text(entry + field_name));
                let (offset, address) = (word(entry + offset), word(entry + address));
                fields.insert(key, Field { offset, address });
            }
        }
        let mut sizes = HashMap::new();
        let table = Table::find(&library, "gHotSpotVMTypes", "gHotSpotVMTypeEntry")?;
        let (name, size) = (table.part(&library, "TypeName")?, table.part(&library, "Size")?);
        for entry in table.entries(name) {
            // SAFETY: as above.
            unsafe { sizes.insert(text(entry + name), word(entry + size)) };
        }
        let mut constants = HashMap::new();
        let table = Table::find(&library, "gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry")?;
        let (name, value) = (table.part(&library, "Name")?, table.part(&library, "Value")?);
        for entry in table.entries(name) {
            // SAFETY: as above.
            unsafe { constants.insert(text(entry + name), word(entry + value) as u32 as i32) };
        }
        Ok(Tables { fields, sizes, constants })
    }

    fn field(&self, of: &str, name: &str) -> Option<Field> {
        self.fields.get(&(of.to_owned(), name.to_owned())).copied()
    }

    /// The offset of a field in any of the classes that had it over the versions.
    pub fn offset(&self, of: &[&str], name: &str) -> Result<u64, Missing> {
        of.iter()
            .find_map(|of| self.field(of, name))
            .map(|field| field.offset)
            .ok_or_else(|| Missing(format!("{}::{name}", of[0])))
    }

    fn static_value(&self, of: &str, name: &str) -> Result<u64, Missing> {
        let missing = || Missing(format!("{of}::{name}"));
        let address = self.field(of, name).ok_or_else(missing)?.address;
        if address == 0 {
            return Err(missing());
        }
        // SAFETY: the address of a static variable of libjvm, as HotSpot itself says.
        Ok(unsafe { word(address) })
    }

    fn size(&self, of: &str) -> Result<u64, Missing> {
        self.sizes.get(of).copied().ok_or_else(|| Missing(format!("size of {of}")))
    }

    fn constant(&self, name: &str) -> Result<i64, Missing> {
        let value = self.constants.get(name).copied();
        value.map(i64::from).ok_or_else(|| Missing(name.to_owned()))
    }
}

/// A handle on libjvm.
struct Library(*mut c_void);

impl Library {
    fn containing(inside: *const c_void) -> Option<Self> {
        // SAFETY: all zeros is a valid empty answer, which the call fills; the path in it is
        // NUL-terminated. The library is loaded already and never unloaded.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(inside, &raw mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            let handle = libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_NOW);
            (!handle.is_null()).then_some(Library(handle))
        }
    }

    /// The value of an exported variable of eight bytes.
    fn variable(&self, name: &str) -> Result<u64, Missing> {
        let text = std::ffi::CString::new(name).map_err(|_| Missing(name.to_owned()))?;
        // SAFETY: a NUL-terminated name and an open handle; what is found is a variable of
        // eight bytes, as HotSpot declares all of those that we ask for.
        unsafe {
            let at = libc::dlsym(self.0, text.as_ptr());
            if at.is_null() { Err(Missing(name.to_owned())) } else { Ok(word(at as u64)) }
        }
    }
}

struct Table {
    start: u64,
    stride: u64,
    prefix: &'static str,
}

impl Table {
    fn find(library: &Library, name: &str, prefix: &'static str) -> Result<Self, Missing> {
        let start = library.variable(name)?;
        let stride = library.variable(&format!("{prefix}ArrayStride"))?;
        if start == 0 || stride == 0 {
            return Err(Missing(name.to_owned()));
        }
        Ok(Table { start, stride, prefix })
    }

    fn part(&self, library: &Library, name: &str) -> Result<u64, Missing> {
        library.variable(&format!("{}{name}Offset", self.prefix))
    }

    /// The entries; the one without a name is the end.
    fn entries(&self, name: u64) -> impl Iterator<Item = u64> {
        let (start, stride) = (self.start, self.stride);
        (0..)
            .map(move |index| start + index * stride)
            // SAFETY: HotSpot ends its tables by an entry without a name.
            .take_while(move |entry| unsafe { word(entry + name) } != 0)
    }
}

/// # Safety
/// Eight readable bytes are there.
unsafe fn word(at: u64) -> u64 {
    // SAFETY: see above.
    unsafe { (at as *const u64).read_unaligned() }
}

/// # Safety
/// A pointer is there, null or to a NUL-terminated text.
unsafe fn text(at: u64) -> String {
    // SAFETY: see above.
    unsafe {
        let pointer = word(at) as *const c_char;
        if pointer.is_null() {
            return String::new();
        }
        CStr::from_ptr(pointer).to_string_lossy().into_owned()
    }
}

/// How a structure tells where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A field holds its address.
    Pointer(u64),
    /// A field holds its distance (i32) from the beginning of the structure.
    Distance(u64),
    /// The second field holds its distance (i32) from where the first one points.
    Behind(u64, u64),
    /// Nowhere.
    Absent,
}

pub const MOST_HEAPS: usize = 8;

/// Everything the walker needs to know, found once.
#[derive(Clone, Debug)]
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
    pub deopt_handlers: [At; 2],
    pub scopes_pcs: At,
    pub scopes_pcs_end: At,
    pub scopes_data: At,
    pub metadata: At,
    /// The least byte of a compressed number: 0 before JDK 20, 1 since.
    pub unsigned5_base: u32,
    pub method_const: u64,
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
