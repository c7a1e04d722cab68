//! Where new objects that are watched are whole: after the calls of their constructors.
//!
//! Between `new` and the end of its constructor an object can be handed to nobody. A compiler
//! copies it before the constructor is called, because the call takes one reference away: so a
//! copy lies on top of the stack when the call returns, and that one is passed on. Which object a
//! constructor is called for, and whether there is such a copy, the types on the stack tell.

use crate::plan::{Refusal, Site, SiteKind};
use crate::scan::Scan;
use crate::simulate::{Context, State, with_frames};
use crate::types::Ty;
use tare_classfile::descriptor::MethodDescriptor;
use tare_classfile::opcode::op;
use tare_classfile::{Frames, Insn};

/// A call of a constructor after which the object lies on top of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Constructed {
    pub offset: u32,
    /// The id of the site that made it.
    pub site: u32,
}

fn is_watched(site: &Site) -> bool {
    site.kind == SiteKind::Object && site.watched != 0
}

/// How many sites of a method make objects that are watched.
pub(crate) fn count(sites: &[Site]) -> u32 {
    sites.iter().filter(|site| is_watched(site)).count() as u32
}

/// Finds these calls in a method with frames, in their order. Returns how many calls of
/// constructors there are whose objects cannot be handed over.
pub(crate) fn find(
    cx: &mut Context<'_, '_>,
    scan: &Scan,
    initial: &[Ty],
    frames: Option<Frames<'_>>,
    sites: &[Site],
    out: &mut Vec<Constructed>,
) -> u32 {
    let watched = |at: u16| {
        let found = sites.binary_search_by_key(&u32::from(at), |site| site.offset);
        let site = found.ok().and_then(|at| sites.get(at))?;
        is_watched(site).then_some(site.id)
    };
    let pool = &cx.class.pool;
    let mut without_copy = 0;
    let visit = |insn: &Insn<'_>, state: &State| -> Result<bool, Refusal> {
        if insn.opcode != op::INVOKESPECIAL {
            return Ok(true);
        }
        let member = insn.constant().and_then(|index| pool.member(index).ok());
        let Some(member) = member.filter(|member| member.name == b"<init>") else {
            return Ok(true);
        };
        let Some(descriptor) = MethodDescriptor::parse(member.descriptor) else { return Ok(true) };
        let mut below = state.stack.iter().rev().skip(descriptor.parameters().count());
        if let Some(object @ Ty::Uninit(at)) = below.next()
            && let Some(site) = watched(*at)
        {
            match below.next() == Some(object) {
                true => out.push(Constructed { offset: insn.offset, site }),
                false => without_copy += 1,
            }
        }
        Ok(true)
    };
    match with_frames(cx, scan, initial, frames, visit) {
        Ok(()) => without_copy,
        // Types that do not work out are no reason to leave the rest of the method alone.
        Err(_) => {
            out.clear();
            count(sites)
        }
    }
}
