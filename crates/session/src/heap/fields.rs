//! The fields that a class declares, as HotSpot stores them.

use super::copy::Copy;
use super::hotspot::{Fields, Hotspot};
use super::symbols::{self, packed};
use crate::error::{Error, Result};
use std::sync::Arc;
use tare_heapdump::snapshot::Field;

/// The most fields that a class can have, and some that the JVM adds.
const MOST: u32 = 70_000;

const STATIC: u32 = 8;
/// A field that the JVM has added to a class of the JDK, whose names are elsewhere.
const INJECTED: u32 = 1 << 1;
/// Numbers that follow a field: of its constant, its generic signature, its group.
const OPTIONAL: [u32; 3] = [1 << 0, 1 << 2, 1 << 4];

pub fn read(copy: &mut Copy, hotspot: &Hotspot, klass: u64) -> Result<Vec<Field>> {
    let pool = copy.u64_at(klass + hotspot.instance_constants)?;
    match hotspot.fields {
        Fields::Shorts { at, count } => {
            let array = copy.u64_at(klass + at)?;
            let count = copy.u16_at(klass + count)?;
            (0..count).map(|number| short_field(copy, hotspot, pool, array, number)).collect()
        }
        Fields::Stream { at } => {
            let array = copy.u64_at(klass + at)?;
            stream(copy, hotspot, pool, array)
        }
    }
}

fn short_field(
    copy: &mut Copy,
    hotspot: &Hotspot,
    pool: u64,
    array: u64,
    number: u16,
) -> Result<Field> {
    let at = array + hotspot.shorts_data + 12 * u64::from(number);
    let mut short = |index: u64| copy.u16_at(at + 2 * index).map(u32::from);
    let (access, name, descriptor) = (short(0)?, short(1)?, short(2)?);
    let (low, high) = (short(4)?, short(5)?);
    Ok(Field {
        name: symbols::in_pool(copy, hotspot, pool, name)?,
        descriptor: symbols::in_pool(copy, hotspot, pool, descriptor)?,
        // The lowest two bits say what the rest is.
        offset: (high << 16 | low) >> 2,
        is_static: access & STATIC != 0,
    })
}

fn stream(copy: &mut Copy, hotspot: &Hotspot, pool: u64, array: u64) -> Result<Vec<Field>> {
    if array == 0 {
        return Ok(Vec::new());
    }
    let length = copy.u32_at(array)? as usize;
    if length > 16 * MOST as usize {
        return Err(Error::Confused("a class has more fields than it can".to_owned()));
    }
    let mut bytes = vec![0; length];
    copy.bytes(array + hotspot.bytes_data, &mut bytes)?;
    let mut rest = bytes.as_slice();
    let broken = || Error::Confused("the fields of a class make no sense".to_owned());
    let mut next = || packed(&mut rest, hotspot.least_byte).ok_or_else(broken);
    let count = next()?.saturating_add(next()?);
    let mut fields = Vec::new();
    for _ in 0..count.min(MOST) {
        let (name, descriptor, offset) = (next()?, next()?, next()?);
        let (access, flags) = (next()?, next()?);
        for _ in OPTIONAL.iter().filter(|bit| flags & **bit != 0) {
            next()?;
        }
        let mut text = |number| -> Result<Arc<str>> {
            match flags & INJECTED != 0 {
                true => symbols::of_vm(copy, hotspot, number),
                false => symbols::in_pool(copy, hotspot, pool, number),
            }
        };
        let (name, descriptor) = (text(name)?, text(descriptor)?);
        fields.push(Field { name, descriptor, offset, is_static: access & STATIC != 0 });
    }
    Ok(fields)
}
