//! The constants of a chunk that is being written: each thread, stack, method, class and name once.

use super::names::to_jvm;
use super::schema::{
    CLASS, CLASS_LOADER, FRAME_TYPE, METHOD, MODULE, OLD_OBJECT, PACKAGE, STACK_TRACE, SYMBOL,
    THREAD, THREAD_STATE,
};
use super::write::Encoder;
use super::{NO_DESCRIPTOR, POOL_EVENT};
use std::collections::{HashMap, HashSet};
use tare_profile::{
    ContextId, Execution, FrameId, Method, MethodId, MethodKind, Profile, StringId, Strings,
    ThreadId, ThreadKind,
};

/// One kind of constant: its entries, and how many they are.
#[derive(Default)]
struct Pool {
    entries: Encoder,
    count: i32,
}

impl Pool {
    /// Begins an entry, whose fields the caller appends.
    fn entry(&mut self, key: i64) -> &mut Encoder {
        self.count += 1;
        self.entries.long(key);
        &mut self.entries
    }
}

pub struct Constants<'p> {
    profile: &'p Profile,
    symbols: Strings,
    /// By name, loader and module.
    class_keys: HashMap<(StringId, StringId, StringId), i64>,
    loader_keys: HashMap<StringId, i64>,
    module_keys: HashMap<StringId, i64>,
    method_keys: HashMap<MethodId, i64>,
    stack_keys: HashMap<ContextId, i64>,
    thread_keys: HashMap<ThreadId, i64>,
    classes: Pool,
    loaders: Pool,
    packages: Pool,
    modules: Pool,
    methods: Pool,
    stacks: Pool,
    threads: Pool,
    /// One for each class, by the class's key: which object it is, nobody knows.
    objects: Pool,
    object_keys: HashSet<i64>,
}

/// How a frame was running, as the JDK and async-profiler name it. Keys are places, from 1.
const FRAME_TYPES: [&str; 7] =
    ["Interpreted", "JIT compiled", "Inlined", "Native", "C++", "Kernel", "C1 compiled"];

/// The states of threads, as we call them and as the JDK does. Keys are places, from 1.
const STATES: [(&str, &str); 5] = [
    ("running", "STATE_RUNNABLE"),
    ("waiting", "STATE_IN_OBJECT_WAIT"),
    ("blocked", "STATE_BLOCKED_ON_MONITOR_ENTER"),
    ("parked", "STATE_PARKED"),
    ("sleeping", "STATE_SLEEPING"),
];

fn frame_type(execution: Execution, kind: MethodKind) -> i64 {
    match (execution, kind) {
        (_, MethodKind::Kernel) | (Execution::Kernel, _) => 6,
        (Execution::Native, MethodKind::Java) => 4,
        (_, MethodKind::Native) => 5,
        (Execution::Native, _) => 4,
        (Execution::Interpreted, _) => 1,
        (Execution::Compiled { tier: 1..=3 }, _) => 7,
        (Execution::Compiled { .. }, _) => 2,
        (Execution::Inlined, _) => 3,
        (Execution::Unknown, _) => 0,
    }
}

impl<'p> Constants<'p> {
    pub fn new(profile: &'p Profile) -> Self {
        Constants {
            profile,
            symbols: Strings::default(),
            class_keys: HashMap::new(),
            loader_keys: HashMap::new(),
            module_keys: HashMap::new(),
            method_keys: HashMap::new(),
            stack_keys: HashMap::new(),
            thread_keys: HashMap::new(),
            classes: Pool::default(),
            loaders: Pool::default(),
            packages: Pool::default(),
            modules: Pool::default(),
            methods: Pool::default(),
            stacks: Pool::default(),
            threads: Pool::default(),
            objects: Pool::default(),
            object_keys: HashSet::new(),
        }
    }

    /// The state that a sampled thread was in, by what we call it. A sampler of running code meets
    /// only the first.
    pub fn state(&self, name: &str) -> i64 {
        let known = STATES.iter().position(|(ours, _)| *ours == name);
        known.map_or(1, |place| place as i64 + 1)
    }

    /// Bytes of what was taken so far, nearly: stacks are most of it.
    pub fn len(&self) -> usize {
        let pools = [&self.stacks, &self.methods, &self.classes, &self.threads];
        pools.iter().map(|pool| pool.entries.len()).sum()
    }

    fn symbol(&mut self, text: &str) -> i64 {
        i64::from(self.symbols.intern(text).raw()) + 1
    }

    pub fn thread(&mut self, id: ThreadId) -> i64 {
        if id == ThreadId::UNKNOWN {
            return 0;
        }
        let (profile, next) = (self.profile, self.thread_keys.len() as i64 + 1);
        *self.thread_keys.entry(id).or_insert_with(|| {
            let thread = profile.threads.get(id);
            let name = profile.strings.get(thread.name);
            let number = |id: Option<u64>| id.and_then(|id| i64::try_from(id).ok()).unwrap_or(0);
            let entry = self.threads.entry(next);
            entry.text(name);
            entry.long(number(thread.os_id));
            entry.text(if thread.java_id.is_some() { name } else { "" });
            entry.long(number(thread.java_id));
            entry.flag(thread.kind == ThreadKind::Virtual);
            next
        })
    }

    fn loader(&mut self, name: StringId) -> i64 {
        if name.is_empty() {
            return 0;
        }
        let symbol = self.symbol(self.profile.strings.get(name));
        let next = self.loader_keys.len() as i64 + 1;
        *self.loader_keys.entry(name).or_insert_with(|| {
            let entry = self.loaders.entry(next);
            entry.long(0);
            entry.long(symbol);
            next
        })
    }

    /// The package that stands between a class and its module; one for each module is enough.
    fn package(&mut self, module: StringId) -> i64 {
        if module.is_empty() {
            return 0;
        }
        let (symbol, empty) = (self.symbol(self.profile.strings.get(module)), self.symbol(""));
        let next = self.module_keys.len() as i64 + 1;
        *self.module_keys.entry(module).or_insert_with(|| {
            let entry = self.modules.entry(next);
            [symbol, empty, empty, 0].into_iter().for_each(|key| entry.long(key));
            let entry = self.packages.entry(next);
            entry.long(empty);
            entry.long(next);
            entry.flag(true);
            next
        })
    }

    pub fn class_named(&mut self, name: StringId, loader: StringId, module: StringId) -> i64 {
        let symbol = self.symbol(&to_jvm(self.profile.strings.get(name)));
        let (loader_key, package) = (self.loader(loader), self.package(module));
        let next = self.class_keys.len() as i64 + 1;
        *self.class_keys.entry((name, loader, module)).or_insert_with(|| {
            let entry = self.classes.entry(next);
            [loader_key, symbol, package].into_iter().for_each(|key| entry.long(key));
            entry.int(0);
            entry.flag(false);
            next
        })
    }

    fn method(&mut self, id: MethodId) -> i64 {
        if let Some(key) = self.method_keys.get(&id) {
            return *key;
        }
        let strings = &self.profile.strings;
        let method = *self.profile.methods.get(id);
        let Method { kind, class, name, descriptor, loader, module, .. } = method;
        let key = self.method_keys.len() as i64 + 1;
        let (class, descriptor) = match kind {
            MethodKind::Java => {
                let descriptor = match strings.get(descriptor) {
                    "" => NO_DESCRIPTOR,
                    descriptor => descriptor,
                };
                (self.class_named(class, loader, module), descriptor)
            }
            MethodKind::Class => (self.class_named(class, loader, module), "()V"),
            // What async-profiler does for code that is not Java.
            _ => (self.class_named(module, StringId::EMPTY, StringId::EMPTY), "()L;"),
        };
        let (name, descriptor) = (self.symbol(strings.get(name)), self.symbol(descriptor));
        let entry = self.methods.entry(key);
        [class, name, descriptor].into_iter().for_each(|key| entry.long(key));
        entry.int(0);
        entry.flag(false);
        self.method_keys.insert(id, key);
        key
    }

    /// The class at the end of a stack, which has a field of its own, and the stack without it.
    pub fn split_class(&mut self, context: ContextId) -> (i64, ContextId) {
        let leaf = self.profile.contexts.frame(context);
        let leaf = leaf.map(|frame| *self.profile.method_of(frame));
        match leaf.filter(|method| method.kind == MethodKind::Class) {
            Some(method) => {
                let class = self.class_named(method.class, method.loader, method.module);
                (class, self.profile.contexts.parent(context).unwrap_or(ContextId::ROOT))
            }
            None => (0, context),
        }
    }

    /// An object of a class, by the class's key.
    pub fn object(&mut self, class: i64) -> i64 {
        if class != 0 && self.object_keys.insert(class) {
            let entry = self.objects.entry(class);
            entry.long(0);
            entry.long(class);
            entry.text("");
        }
        class
    }

    pub fn stack(&mut self, context: ContextId) -> i64 {
        if context == ContextId::ROOT {
            return 0;
        }
        if let Some(key) = self.stack_keys.get(&context) {
            return *key;
        }
        let key = self.stack_keys.len() as i64 + 1;
        self.stack_keys.insert(context, key);
        let mut frames: Vec<FrameId> = self.profile.contexts.frames(context).collect();
        // The reader's way of saying that outer frames are missing.
        let truncated = frames.last().is_some_and(|frame| {
            let method = self.profile.method_of(*frame);
            method.kind == MethodKind::Special
                && self.profile.strings.get(method.name) == "[truncated]"
        });
        if truncated {
            frames.pop();
        }
        let methods: Vec<i64> = frames
            .iter()
            .map(|frame| self.method(self.profile.frames.get(*frame).method))
            .collect();
        let entry = self.stacks.entry(key);
        entry.flag(truncated);
        entry.int(frames.len() as i32);
        for (frame, method) in frames.iter().zip(methods) {
            let kind = self.profile.method_of(*frame).kind;
            let frame = self.profile.frames.get(*frame);
            entry.long(method);
            entry.int(frame.line.and_then(|line| i32::try_from(line).ok()).unwrap_or(-1));
            entry.int(frame.bci.map_or(-1, i32::from));
            entry.long(frame_type(frame.execution, kind));
        }
        key
    }

    /// The event of all pools, without its size.
    pub fn encode(self) -> Encoder {
        let mut symbols = Pool::default();
        for (id, text) in self.symbols.iter() {
            symbols.entry(i64::from(id.raw()) + 1).text(text);
        }
        let mut frame_types = Pool::default();
        for (key, name) in (1..).zip(FRAME_TYPES) {
            frame_types.entry(key).text(name);
        }
        let mut states = Pool::default();
        for (key, (_, name)) in (1..).zip(STATES) {
            states.entry(key).text(name);
        }
        let pools = [
            (FRAME_TYPE, frame_types),
            (THREAD_STATE, states),
            (SYMBOL, symbols),
            (MODULE, self.modules),
            (PACKAGE, self.packages),
            (CLASS_LOADER, self.loaders),
            (CLASS, self.classes),
            (METHOD, self.methods),
            (STACK_TRACE, self.stacks),
            (THREAD, self.threads),
            (OLD_OBJECT, self.objects),
        ];
        // The JDK's reader refuses a file with an empty pool.
        let pools: Vec<_> = pools.into_iter().filter(|(_, pool)| pool.count > 0).collect();
        let mut out = Encoder::default();
        // Type, start, duration, and no other such event to go to.
        [POOL_EVENT, 0, 0, 0].into_iter().for_each(|number| out.long(number));
        out.flag(true);
        out.int(pools.len() as i32);
        for (kind, pool) in pools {
            out.long(kind);
            out.int(pool.count);
            out.append(&pool.entries);
        }
        out
    }
}
