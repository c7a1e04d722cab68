//! What is read of single objects: threads, their ids and names.

use super::classes::Classes;
use super::copy::Copy;
use super::hotspot::Hotspot;
use crate::error::Result;
use tare_heapdump::snapshot::{Head, Layout};

/// The longest name of a thread that is read.
const LONGEST: u32 = 4096;

/// Where things are in objects of some classes of the JDK.
pub struct Objects {
    layout: Layout,
    head: Head,
    thread_id: Option<u32>,
    thread_name: Option<u32>,
    string_value: Option<u32>,
    string_coder: Option<u32>,
    bytes_first: u64,
    virtual_thread: u64,
    /// Contents of objects stay inside.
    closed: bool,
}

impl Objects {
    pub fn new(hotspot: &Hotspot, classes: &Classes, closed: bool) -> Self {
        let offset = |class: &str, field: &str| classes.field_offset(class, field);
        let klass = |name: &str| classes.of_jdk(name).map_or(0, |class| class.klass);
        let first = |class: &tare_heapdump::snapshot::Class| match class.kind {
            tare_heapdump::snapshot::ClassKind::PrimitiveArray { first, .. } => u64::from(first),
            _ => 16,
        };
        Objects {
            layout: Layout::of(&hotspot.head),
            head: hotspot.head.clone(),
            thread_id: offset("java.lang.Thread", "tid"),
            thread_name: offset("java.lang.Thread", "name"),
            string_value: offset("java.lang.String", "value"),
            string_coder: offset("java.lang.String", "coder"),
            bytes_first: classes.of_jdk("byte[]").map_or(16, first),
            virtual_thread: klass("java.lang.BaseVirtualThread"),
            closed,
        }
    }

    /// Whether contents of objects cannot be read.
    pub fn are_closed(&self) -> bool {
        self.closed
    }

    /// The id of a thread, by its object.
    pub fn thread_id(&self, copy: &mut Copy, thread: u64) -> Result<Option<u64>> {
        match self.thread_id.filter(|_| !self.closed) {
            Some(offset) => copy.u64_at(thread + u64::from(offset)).map(Some),
            None => Ok(None),
        }
    }

    pub fn is_virtual_thread(
        &self,
        copy: &mut Copy,
        classes: &Classes,
        thread: u64,
    ) -> Result<bool> {
        if self.closed || self.virtual_thread == 0 {
            return Ok(false);
        }
        let mut header = [0; 16];
        copy.bytes(thread, &mut header)?;
        let klass = self.layout.klass(&header).unwrap_or(0);
        Ok(classes.is_a(klass, self.virtual_thread))
    }

    /// The reference at an offset of an object; zero is null.
    pub fn reference(&self, copy: &mut Copy, object: u64, offset: u32) -> Result<u64> {
        let mut bytes = [0; 8];
        let length = if self.head.narrow_oop.is_some() { 4 } else { 8 };
        copy.bytes(object + u64::from(offset), &mut bytes[..length])?;
        Ok(self.layout.reference(&bytes, 0).unwrap_or(0))
    }

    pub fn thread_name(&self, copy: &mut Copy, thread: u64) -> Result<Option<String>> {
        let Some(offset) = self.thread_name.filter(|_| !self.closed) else { return Ok(None) };
        let name = self.reference(copy, thread, offset)?;
        if name == 0 { Ok(None) } else { self.string(copy, name) }
    }

    fn string(&self, copy: &mut Copy, string: u64) -> Result<Option<String>> {
        let (Some(value), Some(coder)) = (self.string_value, self.string_coder) else {
            return Ok(None);
        };
        let array = self.reference(copy, string, value)?;
        if array == 0 {
            return Ok(None);
        }
        let is_wide = copy.u8_at(string + u64::from(coder))? != 0;
        let length = copy.u32_at(array + u64::from(self.head.array_length_offset))?;
        let mut bytes = vec![0; length.min(LONGEST) as usize];
        copy.bytes(array + self.bytes_first, &mut bytes)?;
        Ok(Some(match is_wide {
            false => bytes.iter().map(|byte| char::from(*byte)).collect(),
            true => {
                let units =
                    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
                char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect()
            }
        }))
    }
}
