//! The tables that libjvm exports for its own serviceability tools (`gHotSpotVMStructs` and its
//! siblings): where HotSpot keeps what.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use tare_protocol::heap::wire::Hello;

/// The exported tables, copied.
pub struct Tables {
    fields: HashMap<(String, String), Field>,
    sizes: HashMap<String, u64>,
    constants: HashMap<String, i32>,
}

#[derive(Clone, Copy)]
pub struct Field {
    pub offset: u64,
    /// Of a static field.
    pub address: u64,
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

    pub fn field(&self, of: &str, name: &str) -> Option<Field> {
        self.fields.get(&(of.to_owned(), name.to_owned())).copied()
    }

    /// The offset of a field in any of the classes that had it over the versions.
    pub fn offset(&self, of: &[&str], name: &str) -> Result<u64, Missing> {
        of.iter()
            .find_map(|of| self.field(of, name))
            .map(|field| field.offset)
            .ok_or_else(|| Missing(format!("{}::{name}", of[0])))
    }

    pub fn static_value(&self, of: &str, name: &str) -> Result<u64, Missing> {
        let missing = || Missing(format!("{of}::{name}"));
        let address = self.field(of, name).ok_or_else(missing)?.address;
        if address == 0 {
            return Err(missing());
        }
        // SAFETY: the address of a static variable of libjvm, as HotSpot itself says.
        Ok(unsafe { word(address) })
    }

    /// The value of one of the JVM's flags that are on or off.
    pub fn flag(&self, name: &str) -> Option<bool> {
        let value = self.flag_value(name)?;
        // SAFETY: the address of this flag's value, which for this kind of flag is one byte.
        Some(unsafe { *(value as *const u8) != 0 })
    }

    /// The value of one of the JVM's flags that are numbers of four bytes.
    pub fn int_flag(&self, name: &str) -> Option<i32> {
        let value = self.flag_value(name)?;
        // SAFETY: the address of this flag's value, which for this kind of flag is four bytes.
        Some(unsafe { *(value as *const i32) })
    }

    /// The value of one of the JVM's flags that are sizes, of eight bytes.
    pub fn size_flag(&self, name: &str) -> Option<u64> {
        let value = self.flag_value(name)?;
        // SAFETY: the address of this flag's value, which for this kind of flag is eight bytes.
        Some(unsafe { *(value as *const u64) })
    }

    /// The value of one of the JVM's flags that are texts; `None` where it has none.
    pub fn text_flag(&self, name: &str) -> Option<String> {
        let value = self.flag_value(name)?;
        // SAFETY: the address of this flag's value, which for this kind of flag is a pointer, null
        // or to a text.
        Some(unsafe { text(value) }).filter(|text| !text.is_empty())
    }

    /// Where a flag's value is.
    fn flag_value(&self, name: &str) -> Option<u64> {
        let start = self.static_value("JVMFlag", "flags").ok()?;
        let count = self.static_value("JVMFlag", "numFlags").ok()?;
        let (size, name_at) = (self.size("JVMFlag").ok()?, self.field("JVMFlag", "_name")?.offset);
        let value_at = self.field("JVMFlag", "_addr")?.offset;
        let mut flags = (0..count).map(|index| start + index * size);
        // SAFETY: an array of so many flags, made with the JVM; the last one may have no name, the
        // others have a text and the address of a value.
        unsafe {
            let flag =
                flags.find(|flag| word(flag + name_at) != 0 && text(flag + name_at) == name)?;
            Some(word(flag + value_at)).filter(|value| *value != 0)
        }
    }

    /// The options that the JVM was given, wherever they came from, in their order.
    pub fn arguments(&self) -> Vec<String> {
        const MOST: u64 = 100_000;
        let array = self.static_value("Arguments", "_jvm_args_array").unwrap_or(0);
        // A number of four bytes, whatever lies behind it.
        let count = self.static_value("Arguments", "_num_jvm_args").unwrap_or(0) & 0xffff_ffff;
        if array == 0 || count > MOST {
            return Vec::new();
        }
        // SAFETY: an array of so many pointers to texts, made before any agent is loaded.
        (0..count).map(|index| unsafe { text(array + 8 * index) }).collect()
    }

    pub fn size(&self, of: &str) -> Result<u64, Missing> {
        self.sizes.get(of).copied().ok_or_else(|| Missing(format!("size of {of}")))
    }

    pub fn constant(&self, name: &str) -> Result<i64, Missing> {
        let value = self.constants.get(name).copied();
        value.map(i64::from).ok_or_else(|| Missing(name.to_owned()))
    }
}

/// Where the tables are, for whoever reads this process's memory from outside.
pub struct Places(Hello);

impl Places {
    /// As [`Tables::read`].
    pub fn find(inside: *const c_void) -> Result<Self, Missing> {
        let library = Library::containing(inside).ok_or(Missing("libjvm itself".into()))?;
        let structs = Table::find(&library, "gHotSpotVMStructs", "gHotSpotVMStructEntry")?;
        let types = Table::find(&library, "gHotSpotVMTypes", "gHotSpotVMTypeEntry")?;
        let ints = Table::find(&library, "gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry")?;
        Ok(Places(Hello {
            structs: structs.start,
            struct_stride: structs.stride,
            struct_type: structs.part(&library, "TypeName")?,
            struct_field: structs.part(&library, "FieldName")?,
            struct_offset: structs.part(&library, "Offset")?,
            struct_address: structs.part(&library, "Address")?,
            types: types.start,
            type_stride: types.stride,
            type_name: types.part(&library, "TypeName")?,
            type_size: types.part(&library, "Size")?,
            ints: ints.start,
            int_stride: ints.stride,
            int_name: ints.part(&library, "Name")?,
            int_value: ints.part(&library, "Value")?,
            ..Hello::default()
        }))
    }

    /// In the words in which the copy of a JVM says it.
    pub fn tell(self) -> Hello {
        self.0
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
pub unsafe fn word(at: u64) -> u64 {
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
