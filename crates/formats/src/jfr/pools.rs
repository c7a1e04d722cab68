//! The constants of a chunk: where each stands, and the few of them that profiles are made of.

use super::cursor::{Cursor, Text};
use super::hash::{ByKey, NumberMap, Secret};
use super::metadata::{Primitive, Slot, Types};
use super::names::to_java;
use super::{NO_DESCRIPTOR, POOL_EVENT};
use crate::error::ReadError;
use std::collections::HashMap;
use tare_profile::{
    ContextId, Execution, Frame, FrameId, Method, MethodId, MethodKind, Profile, StringId, Thread,
    ThreadId, ThreadKind,
};

/// References from constant to constant (a text that is a constant that is a constant …).
const MAX_HOPS: usize = 4;

/// The fields of a frame that matter.
const FRAME_FIELDS: [&str; 4] = ["method", "lineNumber", "bytecodeIndex", "type"];

/// What stays the same from chunk to chunk.
#[derive(Default)]
pub struct Known {
    threads: HashMap<(u64, u64, String), ThreadId>,
}

/// What a stack lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    Nothing,
    Outermost,
    All,
}

pub struct Pools<'a> {
    cursor: Cursor<'a>,
    pub types: Types,
    /// For each type, by its row: where the constant of a key stands.
    places: Vec<NumberMap<usize>>,
    fuel: u64,
    stacks: ByKey<(ContextId, Missing)>,
    /// By the keys or numbers of method, line, bytecode and execution.
    frames: HashMap<[i64; 4], FrameId, Secret>,
    methods: NumberMap<(MethodId, bool)>,
    classes: NumberMap<String>,
    threads: NumberMap<ThreadId>,
    executions: NumberMap<Execution>,
}

impl<'a> Pools<'a> {
    pub fn new(cursor: Cursor<'a>, types: Types) -> Self {
        let places = types.rows.iter().map(|_| NumberMap::default()).collect();
        // Every honest value takes bytes, so steps beyond a few per byte are an attack.
        let fuel = cursor.remaining() as u64 * 8 + 1_000_000;
        Pools {
            cursor,
            types,
            places,
            fuel,
            stacks: ByKey::default(),
            frames: HashMap::default(),
            methods: NumberMap::default(),
            classes: NumberMap::default(),
            threads: NumberMap::default(),
            executions: NumberMap::default(),
        }
    }

    /// Notes the constants of a pool event.
    pub fn add(&mut self, mut cursor: Cursor<'_>) -> Result<(), ReadError> {
        cursor.int()?;
        if cursor.long()? != POOL_EVENT {
            return Err(cursor.problem("no constants where there should be some"));
        }
        for _ in ["start", "duration", "delta"] {
            cursor.long()?;
        }
        cursor.byte()?;
        for _ in 0..cursor.int()? {
            let id = cursor.long()?;
            let Some(kind) = self.types.row(id) else {
                return Err(cursor.problem("constants of a type that is not described"));
            };
            for _ in 0..cursor.count()? {
                let key = cursor.long()?;
                self.places[kind].insert(key, cursor.position());
                self.types.skip(kind, false, &mut cursor, &mut self.fuel, 0)?;
            }
        }
        Ok(())
    }

    /// Reads a value with fields that stands at a place.
    pub fn record_at(
        &mut self,
        kind: usize,
        at: usize,
        slots: &mut Vec<Slot>,
    ) -> Result<(), ReadError> {
        self.types.record(kind, &mut self.cursor.at(at), &mut self.fuel, slots)
    }

    /// The type of a value with fields, and where it stands.
    fn place_of(&self, slot: Slot) -> Option<(usize, usize)> {
        match slot {
            Slot::Constant { kind, key } => Some((kind, *self.places[kind].get(&key)?)),
            Slot::Nested { kind, at } => Some((kind, at)),
            _ => None,
        }
    }

    /// The fields of a constant, or of a value that stands there itself.
    fn fields_of(&mut self, slot: Slot) -> Option<(usize, Vec<Slot>)> {
        let (kind, at) = self.place_of(slot)?;
        let mut slots = Vec::new();
        if self.types.rows[kind].primitive.is_some() {
            return Some((kind, vec![Slot::Text(at)]));
        }
        self.record_at(kind, at, &mut slots).ok()?;
        Some((kind, slots))
    }

    fn field(&self, kind: usize, slots: &[Slot], name: &str) -> Option<Slot> {
        slots.get(self.types.rows[kind].field(name)?).copied()
    }

    /// The text of a field, wherever it stands: here, in a pool, or in a constant of one field
    /// (a symbol, the name of a state).
    pub fn text(&mut self, slot: Slot) -> Option<String> {
        let mut slot = slot;
        for _ in 0..MAX_HOPS {
            slot = match slot {
                Slot::Text(at) => match self.cursor.at(at).text().ok()? {
                    Text::Here(text) => return Some(text),
                    Text::Null => return None,
                    Text::Constant(key) => {
                        Slot::Constant { kind: self.types.named("java.lang.String")?, key }
                    }
                },
                Slot::Constant { .. } | Slot::Nested { .. } => {
                    let (kind, slots) = self.fields_of(slot)?;
                    match self.field(kind, &slots, "name") {
                        Some(name) => name,
                        None => *slots.first()?,
                    }
                }
                _ => return None,
            };
        }
        None
    }

    /// The Java name of a class.
    pub fn class(&mut self, slot: Slot) -> Option<String> {
        let Slot::Constant { key, .. } = slot else { return None };
        if let Some(name) = self.classes.get(&key) {
            return Some(name.clone());
        }
        let (kind, slots) = self.fields_of(slot)?;
        let name = self.field(kind, &slots, "name")?;
        let name = to_java(&self.text(name)?);
        self.classes.insert(key, name.clone());
        Some(name)
    }

    /// The frame of a class, as the leaf of an allocation's or lock's stack.
    pub fn class_frame(&mut self, profile: &mut Profile, slot: Slot) -> Option<FrameId> {
        let class = profile.strings.intern(&self.class(slot)?);
        let kind = MethodKind::Class;
        let method = profile.methods.intern(Method { kind, class, ..Method::default() });
        Some(profile.frames.intern(Frame::of(method)))
    }

    pub fn thread(&mut self, known: &mut Known, profile: &mut Profile, slot: Slot) -> ThreadId {
        let Slot::Constant { key, .. } = slot else { return ThreadId::UNKNOWN };
        if let Some(id) = self.threads.get(&key) {
            return *id;
        }
        let id = self.read_thread(known, profile, slot).unwrap_or(ThreadId::UNKNOWN);
        self.threads.insert(key, id);
        id
    }

    fn read_thread(
        &mut self,
        known: &mut Known,
        profile: &mut Profile,
        slot: Slot,
    ) -> Option<ThreadId> {
        let (kind, slots) = self.fields_of(slot)?;
        let number = |name| match self.field(kind, &slots, name) {
            Some(Slot::Integer(number)) => u64::try_from(number).ok().filter(|n| *n > 0),
            _ => None,
        };
        let (java_id, os_id) = (number("javaThreadId"), number("osThreadId"));
        let is_virtual = number("virtual").is_some();
        let java_name = self.field(kind, &slots, "javaName").and_then(|slot| self.text(slot));
        let os_name = self.field(kind, &slots, "osName").and_then(|slot| self.text(slot));
        let name = java_name.filter(|name| !name.is_empty()).or(os_name).unwrap_or_default();
        if name.is_empty() && java_id.is_none() && os_id.is_none() {
            return None;
        }
        let kind = match (is_virtual, java_id) {
            (true, _) => ThreadKind::Virtual,
            (false, Some(_)) => ThreadKind::Java,
            (false, None) => ThreadKind::Vm,
        };
        let key = (java_id.unwrap_or(0), os_id.unwrap_or(0), name);
        Some(*known.threads.entry(key).or_insert_with_key(|(_, _, name)| {
            let name = profile.strings.intern(name);
            profile.threads.push(Thread { kind, name, java_id, os_id, ..Thread::default() })
        }))
    }

    /// The context of a stack, and whether frames of it are missing.
    pub fn stack(&mut self, profile: &mut Profile, slot: Slot) -> (ContextId, Missing) {
        let Slot::Constant { kind, key } = slot else { return (ContextId::ROOT, Missing::Nothing) };
        // The key of no stack at all.
        if key == 0 {
            return (ContextId::ROOT, Missing::Nothing);
        }
        if let Some(stack) = self.stacks.get(key) {
            return stack;
        }
        let stack = self.read_stack(profile, slot).unwrap_or_else(|| {
            let frame = profile.special("[unknown: the stack is not in the file]");
            (profile.contexts.stack([frame]), Missing::All)
        });
        self.stacks.insert(key, stack, self.places[kind].len());
        stack
    }

    fn read_stack(&mut self, profile: &mut Profile, slot: Slot) -> Option<(ContextId, Missing)> {
        let (kind, at) = self.place_of(slot)?;
        let mut cursor = self.cursor.at(at);
        let mut truncated = false;
        let (mut frames, mut slots) = (Vec::new(), Vec::new());
        // Stacks are most of a file's constants, so their frames are read where they stand, once.
        for field in &self.types.rows[kind].fields {
            let count = if field.array { cursor.count().ok()? } else { 1 };
            if field.name == "frames" && field.array && !field.constant {
                let places = FRAME_FIELDS.map(|name| self.types.rows[field.kind].field(name));
                frames.reserve(count);
                for _ in 0..count {
                    let fuel = &mut self.fuel;
                    self.types.record(field.kind, &mut cursor, fuel, &mut slots).ok()?;
                    frames.push(places.map(|place| slots.get(place?).copied()));
                }
            } else if field.name == "truncated"
                && self.types.rows[field.kind].primitive == Some(Primitive::Boolean)
                && !field.array
                && !field.constant
            {
                truncated = cursor.byte().ok()? != 0;
            } else {
                for _ in 0..count {
                    let fuel = &mut self.fuel;
                    self.types.skip(field.kind, field.constant, &mut cursor, fuel, 0).ok()?;
                }
            }
        }
        let mut context = ContextId::ROOT;
        if truncated {
            let outermost = profile.special("[truncated]");
            context = profile.contexts.child(context, outermost);
        }
        for fields in frames.into_iter().rev() {
            let frame = self.frame(profile, fields);
            context = profile.contexts.child(context, frame);
        }
        Some((context, if truncated { Missing::Outermost } else { Missing::Nothing }))
    }

    /// The frame of some fields, in the order of [`FRAME_FIELDS`].
    fn frame(&mut self, profile: &mut Profile, fields: [Option<Slot>; 4]) -> FrameId {
        // Equal frames come again and again; finding them must not take a step for each field.
        let key = fields.map(|field| match field {
            Some(Slot::Integer(key) | Slot::Constant { key, .. }) => Some(key),
            None => Some(i64::MIN),
            Some(_) => None,
        });
        let key = match key {
            [Some(a), Some(b), Some(c), Some(d)] => Some([a, b, c, d]),
            _ => None,
        };
        if let Some(frame) = key.and_then(|key| self.frames.get(&key)) {
            return *frame;
        }
        let frame = self.read_frame(profile, fields);
        if let Some(key) = key {
            self.frames.insert(key, frame);
        }
        frame
    }

    fn read_frame(&mut self, profile: &mut Profile, fields: [Option<Slot>; 4]) -> FrameId {
        let [method, line, bci, execution] = fields;
        let number = |slot| match slot {
            Some(Slot::Integer(number)) => Some(number),
            _ => None,
        };
        let line = number(line).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        let bci = number(bci).and_then(|n| u16::try_from(n).ok());
        let execution = execution.map_or(Execution::Unknown, |slot| self.execution(slot));
        let (method, code) = match method {
            Some(slot) => self.method(profile, slot, execution),
            None => self.unknown(profile),
        };
        // Where a function or an account of losses stands is told by no bytecode.
        let bci = bci.filter(|_| code);
        profile.frames.intern(Frame { method, bci, line, execution })
    }

    fn unknown(&self, profile: &mut Profile) -> (MethodId, bool) {
        let frame = profile.special("[unknown]");
        (profile.frames.get(frame).method, false)
    }

    fn execution(&mut self, slot: Slot) -> Execution {
        let Slot::Constant { key, .. } = slot else { return Execution::Unknown };
        if let Some(execution) = self.executions.get(&key) {
            return *execution;
        }
        let execution = match self.text(slot).as_deref() {
            Some("Interpreted") => Execution::Interpreted,
            Some("JIT compiled") => Execution::Compiled { tier: 0 },
            Some("C1 compiled") => Execution::Compiled { tier: 1 },
            Some("Inlined") => Execution::Inlined,
            Some("Native" | "C++") => Execution::Native,
            Some("Kernel") => Execution::Kernel,
            _ => Execution::Unknown,
        };
        self.executions.insert(key, execution);
        execution
    }

    /// A method, and whether it is one of Java.
    fn method(
        &mut self,
        profile: &mut Profile,
        slot: Slot,
        execution: Execution,
    ) -> (MethodId, bool) {
        let Slot::Constant { key, .. } = slot else { return self.unknown(profile) };
        if let Some(method) = self.methods.get(&key) {
            return *method;
        }
        let method = match self.read_method(profile, slot, execution) {
            Some(method) => {
                let java = method.kind == MethodKind::Java;
                (profile.methods.intern(method), java)
            }
            None => self.unknown(profile),
        };
        self.methods.insert(key, method);
        method
    }

    fn read_method(
        &mut self,
        profile: &mut Profile,
        slot: Slot,
        execution: Execution,
    ) -> Option<Method> {
        let (kind, slots) = self.fields_of(slot)?;
        let get = |this: &Self, name| this.field(kind, &slots, name);
        let class_slot = get(self, "type");
        let class = class_slot.and_then(|slot| self.class(slot)).unwrap_or_default();
        let name = get(self, "name").and_then(|slot| self.text(slot)).unwrap_or_default();
        let descriptor = get(self, "descriptor").and_then(|slot| self.text(slot));
        let descriptor = descriptor.filter(|text| text != NO_DESCRIPTOR).unwrap_or_default();
        // async-profiler gives functions of native code a descriptor that no Java method has, and
        // their library in place of the class.
        let java = descriptor != "()L;" && !(class.is_empty() && descriptor.is_empty());
        let intern = |profile: &mut Profile, text: &str| profile.strings.intern(text);
        if !java {
            let kind = match execution {
                Execution::Kernel => MethodKind::Kernel,
                _ if name.starts_with('[') && name.ends_with(']') => MethodKind::Special,
                _ => MethodKind::Native,
            };
            let (name, module) = (intern(profile, &name), intern(profile, &class));
            return Some(Method { kind, name, module, ..Method::default() });
        }
        let kind = if name.is_empty() { MethodKind::Class } else { MethodKind::Java };
        let (loader, module) = match class_slot {
            Some(slot) => self.origin(profile, slot),
            None => (StringId::EMPTY, StringId::EMPTY),
        };
        Some(Method {
            kind,
            class: intern(profile, &class),
            name: intern(profile, &name),
            descriptor: intern(profile, &descriptor),
            loader,
            module,
            ..Method::default()
        })
    }

    /// The names of a class's loader and module.
    fn origin(&mut self, profile: &mut Profile, class: Slot) -> (StringId, StringId) {
        let mut named = |path: &[&str]| {
            let mut slot = class;
            for name in path {
                let (kind, slots) = self.fields_of(slot)?;
                slot = self.field(kind, &slots, name)?;
            }
            let text = self.text(slot)?;
            Some(profile.strings.intern(&text))
        };
        let loader = named(&["classLoader", "name"]).unwrap_or_default();
        let module = named(&["package", "module", "name"]).unwrap_or_default();
        (loader, module)
    }
}
