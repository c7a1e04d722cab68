//! The outline of a class file: version, pool, names, members, attributes.

use crate::attributes::Attributes;
use crate::error::{ErrorKind, Result};
use crate::pool::ConstantPool;
use crate::reader::Reader;

pub const MAGIC: u32 = 0xcafe_babe;

#[derive(Clone, Debug)]
pub struct ClassFile<'a> {
    pub bytes: &'a [u8],
    pub minor: u16,
    pub major: u16,
    pub pool: ConstantPool<'a>,
    pub access_flags: u16,
    pub this_class: u16,
    /// 0 for `java/lang/Object` and for modules.
    pub super_class: u16,
    interfaces: &'a [u8],
    pub fields: Vec<Member<'a>>,
    pub methods: Vec<Member<'a>>,
    pub attributes: Attributes<'a>,
    /// The bytes from the access flags up to the count of methods.
    pub(crate) before_methods: &'a [u8],
    /// The bytes from the count of class attributes to the end.
    pub(crate) after_methods: &'a [u8],
}

/// A field or a method.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    pub access_flags: u16,
    pub name_index: u16,
    pub descriptor_index: u16,
    pub attributes: Attributes<'a>,
    /// All its bytes.
    pub raw: &'a [u8],
    /// Offset of `raw` in the class file.
    pub offset: usize,
}

impl<'a> ClassFile<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, 0);
        let magic = r.u4()?;
        if magic != MAGIC {
            return Reader::new(bytes, 0).fail(ErrorKind::BadMagic(magic));
        }
        let minor = r.u2()?;
        let major = r.u2()?;
        let pool = ConstantPool::parse(bytes, &mut r)?;
        let after_pool = r.position();
        let access_flags = r.u2()?;
        let this_class = r.u2()?;
        let super_class = r.u2()?;
        let count = usize::from(r.u2()?);
        let interfaces = r.bytes(2 * count)?;
        let fields = members(&mut r)?;
        let before_methods = r.since(after_pool);
        let methods = members(&mut r)?;
        let after = r.position();
        let attributes = Attributes::parse(&mut r)?;
        r.finish()?;
        let after_methods = r.since(after);
        Ok(Self {
            bytes,
            minor,
            major,
            pool,
            access_flags,
            this_class,
            super_class,
            interfaces,
            fields,
            methods,
            attributes,
            before_methods,
            after_methods,
        })
    }

    /// The internal name of this class.
    pub fn name(&self) -> Result<&'a [u8]> {
        self.pool.class_name(self.this_class)
    }

    /// The `Class` entries of the direct superinterfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.interfaces.as_chunks::<2>().0.iter().map(|c| u16::from_be_bytes(*c))
    }
}

fn members<'a>(r: &mut Reader<'a>) -> Result<Vec<Member<'a>>> {
    let count = usize::from(r.u2()?);
    // A member takes at least eight bytes, so a short file cannot make us reserve much.
    let mut out = Vec::with_capacity(count.min(r.remaining() / 8));
    for _ in 0..count {
        let start = r.position();
        let offset = r.offset();
        let access_flags = r.u2()?;
        let name_index = r.u2()?;
        let descriptor_index = r.u2()?;
        let attributes = Attributes::parse(r)?;
        let raw = r.since(start);
        out.push(Member { access_flags, name_index, descriptor_index, attributes, raw, offset });
    }
    Ok(out)
}
