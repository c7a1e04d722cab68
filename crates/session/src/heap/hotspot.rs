//! Where HotSpot keeps what a snapshot needs: its classes, and how its objects are laid out.

use super::copy::Copy;
use super::tables::Tables;
use crate::error::{Error, Result};
use tare_heapdump::snapshot::{CompactHeaders, Head, Narrow};
use tare_protocol::heap::wire::{KLASS_IN_MARK, KLASS_NARROW, KLASS_WIDE, MarkHead};

/// Offsets, all from the tables.
pub struct Hotspot {
    pub loader_graph: u64,
    pub loader_next: u64,
    pub loader_klasses: u64,
    pub loader_object: u64,
    pub klass_next: u64,
    pub klass_layout: u64,
    pub klass_name: u64,
    pub klass_mirror: u64,
    pub klass_super: u64,
    pub klass_access: u64,
    pub klass_vtable_len: u64,
    pub instance_size: u64,
    pub instance_itable_len: u64,
    pub instance_maps: u64,
    pub instance_constants: u64,
    pub instance_interfaces: u64,
    pub fields: Fields,
    pub pool_size: u64,
    pub pool_cache: u64,
    pub pool_holder: u64,
    pub pool_length: u64,
    pub pool_source: Option<u64>,
    pub cache_references: u64,
    pub array_data: u64,
    pub bytes_data: u64,
    pub shorts_data: u64,
    pub symbol_length: u64,
    pub symbol_body: u64,
    pub vm_symbols: u64,
    pub method_const: u64,
    pub const_size: u64,
    pub const_pool: u64,
    pub const_flags: Option<u64>,
    pub const_code_size: u64,
    pub const_name: u64,
    /// The least byte of a packed number: 0 before JDK 20, 1 since.
    pub least_byte: u32,
    pub head: Head,
    pub mark: MarkHead,
}

/// How a class tells of its fields.
#[derive(Clone, Copy)]
pub enum Fields {
    /// Six numbers of two bytes each; and where the number of fields is. Before JDK 21.
    Shorts { at: u64, count: u64 },
    /// A packed stream.
    Stream { at: u64 },
}

impl Hotspot {
    pub fn find(copy: &mut Copy, tables: &Tables) -> Result<Self> {
        let t = tables;
        let fields = match t.maybe_offset("InstanceKlass", "_fieldinfo_stream") {
            Some(at) => Fields::Stream { at },
            None => Fields::Shorts {
                at: t.offset("InstanceKlass", "_fields")?,
                count: t.offset("InstanceKlass", "_java_fields_count")?,
            },
        };
        let least_byte = u32::from(matches!(fields, Fields::Stream { .. }));
        let flags = t.maybe_offset("ConstMethod", "_flags");
        let (head, mark) = layout(copy, tables)?;
        Ok(Hotspot {
            loader_graph: t.static_at("ClassLoaderDataGraph", &["_head"])?,
            loader_next: t.offset("ClassLoaderData", "_next")?,
            loader_klasses: t.offset("ClassLoaderData", "_klasses")?,
            loader_object: t.offset("ClassLoaderData", "_class_loader")?,
            klass_next: t.offset("Klass", "_next_link")?,
            klass_layout: t.offset("Klass", "_layout_helper")?,
            klass_name: t.offset("Klass", "_name")?,
            klass_mirror: t.offset("Klass", "_java_mirror")?,
            klass_super: t.offset("Klass", "_super")?,
            klass_access: t.offset("Klass", "_access_flags")?,
            klass_vtable_len: t.offset("Klass", "_vtable_len")?,
            instance_size: t.size("InstanceKlass")?,
            instance_itable_len: t.offset("InstanceKlass", "_itable_len")?,
            instance_maps: t.offset("InstanceKlass", "_nonstatic_oop_map_size")?,
            instance_constants: t.offset("InstanceKlass", "_constants")?,
            instance_interfaces: t.offset("InstanceKlass", "_local_interfaces")?,
            fields,
            pool_size: t.size("ConstantPool")?,
            pool_cache: t.offset("ConstantPool", "_cache")?,
            pool_holder: t.offset("ConstantPool", "_pool_holder")?,
            pool_length: t.offset("ConstantPool", "_length")?,
            pool_source: t.maybe_offset("ConstantPool", "_source_file_name_index"),
            cache_references: t.offset("ConstantPoolCache", "_resolved_references")?,
            array_data: t.offset("Array<Klass*>", "_data")?,
            bytes_data: t.offset("Array<u1>", "_data")?,
            shorts_data: t.offset("Array<u2>", "_data")?,
            symbol_length: t.offset("Symbol", "_length")?,
            symbol_body: t.offset("Symbol", "_body")?,
            vm_symbols: t.static_at("Symbol", &["_vm_symbols[0]"])?,
            method_const: t.offset("Method", "_constMethod")?,
            const_size: t.size("ConstMethod")?,
            const_pool: t.offset("ConstMethod", "_constants")?,
            const_flags: flags.or_else(|| t.maybe_offset("ConstMethod", "_flags._flags")),
            const_code_size: t.offset("ConstMethod", "_code_size")?,
            const_name: t.offset("ConstMethod", "_name_index")?,
            least_byte,
            head,
            mark,
        })
    }
}

/// How objects are laid out, for the file and for the copy.
fn layout(copy: &mut Copy, t: &Tables) -> Result<(Head, MarkHead)> {
    let alignment = t.int_flag(copy, "ObjectAlignmentInBytes")?.unwrap_or(8);
    let alignment_shift = alignment.cast_unsigned().trailing_zeros();
    if !(3..=8).contains(&alignment_shift) {
        return Err(Error::Confused("the JVM aligns objects in no known way".to_owned()));
    }
    let narrow = |copy: &mut Copy, of: &str, bases: &[&str], shifts: &[&str]| -> Result<Narrow> {
        let base = copy.u64_at(t.static_at(of, bases)?)?;
        let shift = copy.u32_at(t.static_at(of, shifts)?)?;
        Ok(Narrow { base, shift: shift & 63 })
    };
    let oops = match t.flag(copy, "UseCompressedOops")? {
        false => None,
        true => Some(narrow(
            copy,
            "CompressedOops",
            &["_narrow_oop._base", "_base"],
            &["_narrow_oop._shift", "_shift"],
        )?),
    };
    let compact = t.flag(copy, "UseCompactObjectHeaders")?;
    let klasses = match compact || t.flag(copy, "UseCompressedClassPointers")? {
        false => None,
        true => Some(narrow(
            copy,
            "CompressedKlassPointers",
            &["_narrow_klass._base", "_base"],
            &["_narrow_klass._shift", "_shift"],
        )?),
    };
    let klass_bit = match compact {
        false => 0,
        true => t.constant("markWord::klass_shift").unwrap_or(42).clamp(0, 63) as u32,
    };
    let array_length_offset = match (compact, klasses) {
        (true, _) => 8,
        (false, Some(_)) => 12,
        (false, None) => 16,
    };
    let class = |copy: &mut Copy, name: &str| -> Result<u64> {
        Ok(u64::from(t.static_i32(copy, "java_lang_Class", name)?.cast_unsigned()))
    };
    let mirror_size_offset = class(copy, "_oop_size_offset")?;
    let collectors = [
        ("UseG1GC", "G1"),
        ("UseParallelGC", "Parallel"),
        ("UseSerialGC", "Serial"),
        ("UseShenandoahGC", "Shenandoah"),
        ("UseEpsilonGC", "Epsilon"),
    ];
    let mut collector = "";
    for (flag, name) in collectors {
        if t.flag(copy, flag)? {
            collector = name;
        }
    }
    let head = Head {
        collector: collector.to_owned(),
        object_alignment: 1 << alignment_shift,
        narrow_oop: oops,
        narrow_klass: klasses,
        compact_headers: compact.then_some(CompactHeaders { klass_shift: klass_bit }),
        klass_offset: if compact { 0 } else { 8 },
        array_length_offset,
        mirror_size_offset: mirror_size_offset as u32,
        ..Head::default()
    };
    let mark = MarkHead {
        alignment_shift: u64::from(alignment_shift),
        reference_bytes: if oops.is_some() { 4 } else { 8 },
        oop_base: oops.map_or(0, |narrow| narrow.base),
        oop_shift: oops.map_or(0, |narrow| u64::from(narrow.shift)),
        klass_place: match (compact, klasses) {
            (true, _) => KLASS_IN_MARK,
            (false, Some(_)) => KLASS_NARROW,
            (false, None) => KLASS_WIDE,
        },
        klass_base: klasses.map_or(0, |narrow| narrow.base),
        klass_shift: klasses.map_or(0, |narrow| u64::from(narrow.shift)),
        klass_bit: u64::from(klass_bit),
        klass_offset: u64::from(head.klass_offset),
        array_length_offset: u64::from(array_length_offset),
        mirror_size_offset,
        mirror_klass_offset: class(copy, "_klass_offset")?,
        mirror_count_offset: class(copy, "_static_oop_field_count_offset")?,
        forwarded: u64::from(collector == "Shenandoah"),
        ..MarkHead::default()
    };
    Ok((head, mark))
}
