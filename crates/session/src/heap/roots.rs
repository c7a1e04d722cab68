//! Roots and the threads that hold them, with the names of their methods.

use super::classes::Classes;
use super::copy::Copy;
use super::hotspot::Hotspot;
use super::objects::Objects;
use super::symbols::{self, packed};
use crate::error::Result;
use std::collections::HashMap;
use std::sync::Arc;
use tare_heapdump::snapshot::{Root, Thread};
use tare_protocol::heap::wire::RawRoot;

const STACK_LOCAL: u32 = 24;
const JNI_LOCAL: u32 = 25;
const THREAD: u32 = 26;

/// The deepest stack that is told of.
const DEEPEST: u32 = 1 << 20;

/// All roots as the JVM told of them.
pub fn raw(copy: &mut Copy) -> Result<Vec<RawRoot>> {
    let (at, count) = (copy.hello.roots, copy.hello.root_count);
    let mut all = Vec::new();
    for number in 0..count {
        let mut bytes = [0; RawRoot::BYTES];
        copy.bytes(at + number * RawRoot::BYTES as u64, &mut bytes)?;
        all.push(RawRoot::decode(&bytes));
    }
    Ok(all)
}

/// What is made of them.
#[derive(Default)]
pub struct Rooted {
    pub roots: Vec<Root>,
    pub threads: Vec<Thread>,
    /// By the JVM's id of a thread, its place in `threads`.
    by_id: HashMap<u64, usize>,
    methods: HashMap<(u64, u64), Option<Arc<str>>>,
}

impl Rooted {
    /// A root's thread comes right before what its stack holds.
    pub fn of(
        raw: &[RawRoot],
        virtuals: &[u64],
        copy: &mut Copy,
        hotspot: &Hotspot,
        classes: &Classes,
        objects: &Objects,
    ) -> Result<Self> {
        let mut rooted = Rooted::default();
        let mut latest = 0;
        for one in raw {
            let (kind, depth) = (one.kind_and_depth as u32, (one.kind_and_depth >> 32) as u32);
            let mut root =
                Root { object: one.object, kind, thread: 0, depth: 0, slot: -1, method: None };
            if kind == THREAD {
                latest = one.object;
                let id = objects.thread_id(copy, one.object)?;
                if let Some(id) = id {
                    let at = rooted.thread(id);
                    rooted.threads[at].object = one.object;
                    root.thread = rooted.threads[at].number;
                }
            }
            if matches!(kind, STACK_LOCAL | JNI_LOCAL) && one.thread != 0 {
                let at = rooted.thread(one.thread);
                let method = rooted.method(copy, hotspot, classes, one.method, one.location)?;
                let thread = &mut rooted.threads[at];
                // Where ids cannot be read from the heap, what came before has to do.
                if thread.object == 0 && objects.are_closed() {
                    thread.object = latest;
                }
                if depth < DEEPEST && one.method != 0 {
                    let frames = thread.frames.len().max(depth as usize + 1);
                    thread.frames.resize(frames, None);
                    let frame = &mut thread.frames[depth as usize];
                    // One that knows the line is better than one that does not.
                    if frame.is_none() || one.location != u64::MAX {
                        *frame = method.clone();
                    }
                }
                (root.thread, root.depth, root.method) = (thread.number, depth, method);
                root.slot = (one.slot as u32).cast_signed();
            }
            rooted.roots.push(root);
        }
        rooted.find_virtuals(copy, objects, virtuals)?;
        rooted.name_threads(copy, classes, objects)?;
        Ok(rooted)
    }

    /// A thread's place, by its id.
    fn thread(&mut self, id: u64) -> usize {
        let Rooted { threads, by_id, .. } = self;
        *by_id.entry(id).or_insert_with(|| {
            threads.push(Thread {
                object: 0,
                number: u32::try_from(threads.len() + 1).unwrap_or(u32::MAX),
                name: Arc::from(format!("thread {id}")),
                is_virtual: false,
                frames: Vec::new(),
            });
            threads.len() - 1
        })
    }

    /// The objects of virtual threads that hold something.
    fn find_virtuals(
        &mut self,
        copy: &mut Copy,
        objects: &Objects,
        virtuals: &[u64],
    ) -> Result<()> {
        for object in virtuals {
            let id = objects.thread_id(copy, *object)?;
            if let Some(at) = id.and_then(|id| self.by_id.get(&id)) {
                self.threads[*at].object = *object;
            }
        }
        Ok(())
    }

    /// Names, and which threads are virtual.
    fn name_threads(
        &mut self,
        copy: &mut Copy,
        classes: &Classes,
        objects: &Objects,
    ) -> Result<()> {
        for thread in self.threads.iter_mut().filter(|thread| thread.object != 0) {
            thread.is_virtual = objects.is_virtual_thread(copy, classes, thread.object)?;
            let name = objects.thread_name(copy, thread.object)?;
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                thread.name = Arc::from(name);
            }
        }
        Ok(())
    }

    /// A frame's text, by the JVM's id of its method and where in it it is. `None` where the id leads
    /// to no method of a class that is known.
    fn method(
        &mut self,
        copy: &mut Copy,
        hotspot: &Hotspot,
        classes: &Classes,
        id: u64,
        location: u64,
    ) -> Result<Option<Arc<str>>> {
        if id == 0 {
            return Ok(None);
        }
        if let Some(known) = self.methods.get(&(id, location)) {
            return Ok(known.clone());
        }
        // An id is the address of a word that has the method's.
        let method = copy.u64_at(id).unwrap_or(0);
        let text = frame(copy, hotspot, classes, method, location).unwrap_or(None);
        let text: Option<Arc<str>> = text.map(Arc::from);
        self.methods.insert((id, location), text.clone());
        Ok(text)
    }
}

/// A frame's text: `com.acme.A.run(A.java:17)`.
pub fn frame(
    copy: &mut Copy,
    hotspot: &Hotspot,
    classes: &Classes,
    method: u64,
    location: u64,
) -> Result<Option<String>> {
    if method == 0 {
        return Ok(None);
    }
    let constant = copy.u64_at(method + hotspot.method_const)?;
    let pool = copy.u64_at(constant + hotspot.const_pool)?;
    let holder = copy.u64_at(pool + hotspot.pool_holder)?;
    let Some(class) = classes.by_klass.get(&holder).map(|at| &classes.all[*at]) else {
        return Ok(None);
    };
    let name = u32::from(copy.u16_at(constant + hotspot.const_name)?);
    let name = symbols::in_pool(copy, hotspot, pool, name)?;
    let source = match hotspot.pool_source {
        Some(at) => u32::from(copy.u16_at(pool + at)?),
        None => 0,
    };
    let place = match source {
        0 => String::new(),
        index => {
            let file = symbols::in_pool(copy, hotspot, pool, index)?;
            match line(copy, hotspot, constant, location)? {
                Some(line) => format!("({file}:{line})"),
                None => format!("({file})"),
            }
        }
    };
    Ok(Some(format!("{}.{name}{place}", class.name)))
}

/// The line of a bytecode, from the packed table behind a method's code.
fn line(copy: &mut Copy, hotspot: &Hotspot, constant: u64, location: u64) -> Result<Option<u32>> {
    const HAS_LINES: u16 = 1;
    let Some(flags) = hotspot.const_flags else { return Ok(None) };
    if location > 0xffff || copy.u16_at(constant + flags)? & HAS_LINES == 0 {
        return Ok(None);
    }
    let code = u64::from(copy.u16_at(constant + hotspot.const_code_size)?);
    let start = constant + hotspot.const_size + code;
    let mut bytes = vec![0; 4096];
    // The table ends with a zero; what lies behind it may not be there.
    let mut known = 0;
    for portion in bytes.chunks_mut(64) {
        if copy.bytes(start + known, portion).is_err() {
            break;
        }
        known += portion.len() as u64;
    }
    Ok(line_of(&bytes[..known as usize], hotspot.least_byte, location as u32))
}

/// The line that a packed table has for a bytecode.
fn line_of(mut table: &[u8], least: u32, location: u32) -> Option<u32> {
    let (mut bytecode, mut line, mut best) = (0_i64, 0_i64, None);
    loop {
        let (first, rest) = table.split_first()?;
        table = rest;
        match first {
            0 => break,
            0xff => {
                let signed = |number: u32| i64::from(number >> 1) ^ -i64::from(number & 1);
                bytecode += signed(packed(&mut table, least)?);
                line += signed(packed(&mut table, least)?);
            }
            both => {
                bytecode += i64::from(both >> 3);
                line += i64::from(both & 7);
            }
        }
        // Entries are not always in order; the nearest one before it counts.
        if bytecode <= i64::from(location) && best.is_none_or(|(at, _)| at <= bytecode) {
            best = Some((bytecode, line));
        }
    }
    best.and_then(|(_, line)| u32::try_from(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_in_packed_tables() {
        // Bytecode 0 is line 7, 3 is 8, 70 is 6, and then the end.
        let table = [7, 3 << 3 | 1, 0xff, 1 + 134, 1 + 3, 0];
        assert_eq!(line_of(&table, 1, 0), Some(7));
        assert_eq!(line_of(&table, 1, 2), Some(7));
        assert_eq!(line_of(&table, 1, 3), Some(8));
        assert_eq!(line_of(&table, 1, 69), Some(8));
        assert_eq!(line_of(&table, 1, 70), Some(6));
        assert_eq!(line_of(&table[..3], 1, 70), None, "cut off");
    }
}
