//! The tables that HotSpot exports for tools that read its memory from outside, read so.

use super::copy::Copy;
use crate::error::{Error, Result};
use std::collections::HashMap;

/// More entries than any version has.
const MOST: u64 = 100_000;

/// Where HotSpot keeps what.
pub struct Tables {
    /// By type and field: the offset, and the address of a static one.
    fields: HashMap<(String, String), (u64, u64)>,
    sizes: HashMap<String, u64>,
    constants: HashMap<String, i64>,
    /// Addresses of flags' values.
    flags: HashMap<String, u64>,
}

impl Tables {
    pub fn read(copy: &mut Copy) -> Result<Self> {
        let hello = copy.hello;
        let mut tables = Tables {
            fields: HashMap::new(),
            sizes: HashMap::new(),
            constants: HashMap::new(),
            flags: HashMap::new(),
        };
        for number in 0..MOST {
            let entry = hello.structs + number * hello.struct_stride;
            let of = copy.u64_at(entry + hello.struct_type)?;
            if of == 0 {
                break;
            }
            let name = copy.u64_at(entry + hello.struct_field)?;
            let key = (copy.text_at(of)?, copy.text_at(name)?);
            let offset = copy.u64_at(entry + hello.struct_offset)?;
            let address = copy.u64_at(entry + hello.struct_address)?;
            tables.fields.insert(key, (offset, address));
        }
        for number in 0..MOST {
            let entry = hello.types + number * hello.type_stride;
            let name = copy.u64_at(entry + hello.type_name)?;
            if name == 0 {
                break;
            }
            let size = copy.u64_at(entry + hello.type_size)?;
            tables.sizes.insert(copy.text_at(name)?, size);
        }
        for number in 0..MOST {
            let entry = hello.ints + number * hello.int_stride;
            let name = copy.u64_at(entry + hello.int_name)?;
            if name == 0 {
                break;
            }
            let value = copy.i32_at(entry + hello.int_value)?;
            tables.constants.insert(copy.text_at(name)?, i64::from(value));
        }
        tables.read_flags(copy)?;
        Ok(tables)
    }

    fn read_flags(&mut self, copy: &mut Copy) -> Result<()> {
        let start = self.static_u64(copy, "JVMFlag", "flags")?;
        let count = self.static_u64(copy, "JVMFlag", "numFlags")?.min(MOST);
        let (size, name) = (self.size("JVMFlag")?, self.offset("JVMFlag", "_name")?);
        let address = self.offset("JVMFlag", "_addr")?;
        for flag in (0..count).map(|number| start + number * size) {
            let text = copy.u64_at(flag + name)?;
            // The last one may have no name.
            if text != 0 {
                let value = copy.u64_at(flag + address)?;
                self.flags.insert(copy.text_at(text)?, value);
            }
        }
        Ok(())
    }

    pub fn offset(&self, of: &str, name: &str) -> Result<u64> {
        self.maybe_offset(of, name).ok_or_else(|| missing(&format!("{of}::{name}")))
    }

    pub fn maybe_offset(&self, of: &str, name: &str) -> Option<u64> {
        self.fields.get(&(of.to_owned(), name.to_owned())).map(|(offset, _)| *offset)
    }

    /// The address of a static field, by any of the names that it had over the versions.
    pub fn static_at(&self, of: &str, names: &[&str]) -> Result<u64> {
        let found = |name: &&str| self.fields.get(&(of.to_owned(), (*name).to_owned()));
        let address = names.iter().find_map(found).map(|(_, address)| *address);
        address.filter(|at| *at != 0).ok_or_else(|| missing(&format!("{of}::{}", names[0])))
    }

    pub fn static_u64(&self, copy: &mut Copy, of: &str, name: &str) -> Result<u64> {
        copy.u64_at(self.static_at(of, &[name])?)
    }

    pub fn static_i32(&self, copy: &mut Copy, of: &str, name: &str) -> Result<i32> {
        copy.i32_at(self.static_at(of, &[name])?)
    }

    pub fn size(&self, of: &str) -> Result<u64> {
        self.sizes.get(of).copied().ok_or_else(|| missing(&format!("the size of {of}")))
    }

    pub fn constant(&self, name: &str) -> Option<i64> {
        self.constants.get(name).copied()
    }

    /// A flag that is on or off; one that this JVM does not have is off.
    pub fn flag(&self, copy: &mut Copy, name: &str) -> Result<bool> {
        match self.flags.get(name) {
            Some(at) if *at != 0 => Ok(copy.u8_at(*at)? != 0),
            _ => Ok(false),
        }
    }

    /// A flag that is a number of four bytes.
    pub fn int_flag(&self, copy: &mut Copy, name: &str) -> Result<Option<i32>> {
        match self.flags.get(name) {
            Some(at) if *at != 0 => copy.i32_at(*at).map(Some),
            _ => Ok(None),
        }
    }
}

fn missing(what: &str) -> Error {
    Error::Refused(format!(
        "this JVM does not tell where it has {what}; its heap can be had by HotSpot's own dump only"
    ))
}
