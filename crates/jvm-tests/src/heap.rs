//! Heap snapshots, object by object; and how many there are of each class, as HotSpot counts them.

use crate::env::env;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;
use tare_heapdump::snapshot::{Class, Layout, Root, Snapshot};

/// A snapshot with all of its objects in memory.
pub struct HeapFile {
    pub snapshot: Snapshot,
    layout: Layout,
    classes: HashMap<u64, usize>,
    objects: BTreeMap<u64, (usize, Vec<u8>)>,
}

/// An object of a snapshot.
#[derive(Clone, Copy)]
pub struct Object<'a> {
    file: &'a HeapFile,
    pub address: u64,
    class: usize,
    bytes: &'a [u8],
}

impl HeapFile {
    /// Reads all of a file, which has to be whole: runs end where objects end, and there are as many
    /// as it says.
    #[track_caller]
    pub fn open(path: &Path) -> Self {
        let snapshot = Snapshot::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let layout = Layout::of(&snapshot.head);
        let numbered = snapshot.classes.iter().enumerate();
        let classes: HashMap<u64, usize> = numbered.map(|(at, class)| (class.klass, at)).collect();
        let mut objects = BTreeMap::new();
        for run in &snapshot.runs {
            let mut bytes = vec![0; usize::try_from(run.length).expect("it fits")];
            snapshot.read_at(run.offset, &mut bytes).expect("the image is there");
            let mut at = 0;
            while at < bytes.len() {
                let klass = layout.klass(&bytes[at..]).expect("a header");
                let class = *classes.get(&klass).unwrap_or_else(|| panic!("no class {klass:#x}"));
                let size = layout.size_of(&snapshot.classes[class], &bytes[at..]).expect("a size");
                let end = at + usize::try_from(size).expect("it fits");
                assert!(end <= bytes.len(), "an object leaves its run");
                objects.insert(run.address + at as u64, (class, bytes[at..end].to_vec()));
                at = end;
            }
        }
        assert_eq!(objects.len() as u64, snapshot.head.objects);
        HeapFile { snapshot, layout, classes, objects }
    }

    /// How many objects there are of each class, and their bytes.
    pub fn counts(&self) -> BTreeMap<String, (u64, u64)> {
        let mut counts = BTreeMap::<String, (u64, u64)>::new();
        for (class, bytes) in self.objects.values() {
            let name = self.snapshot.classes[*class].name.to_string();
            let count = counts.entry(name).or_default();
            *count = (count.0 + 1, count.1 + bytes.len() as u64);
        }
        counts
    }

    pub fn object(&self, address: u64) -> Option<Object<'_>> {
        let (class, bytes) = self.objects.get(&address)?;
        Some(Object { file: self, address, class: *class, bytes })
    }

    pub fn of_class(&self, name: &str) -> Vec<Object<'_>> {
        let all = self.objects.keys().filter_map(|address| self.object(*address));
        all.filter(|object| object.class_name() == name).collect()
    }

    /// The class object of a class, which has its static fields.
    #[track_caller]
    pub fn mirror(&self, name: &str) -> (Object<'_>, &Class) {
        let class = self.snapshot.classes.iter().find(|class| &*class.name == name);
        let class = class.unwrap_or_else(|| panic!("no class {name}"));
        (self.object(class.mirror).expect("its mirror is reached"), class)
    }

    /// The reference in a static field.
    #[track_caller]
    pub fn static_reference(&self, class: &str, field: &str) -> Option<Object<'_>> {
        let (mirror, class) = self.mirror(class);
        let field = class.fields.iter().find(|one| &*one.name == field && one.is_static);
        mirror.reference_at(field.expect("a static field").offset as usize)
    }

    /// The roots that lead to an object.
    pub fn roots_of(&self, address: u64) -> Vec<&Root> {
        self.snapshot.roots.iter().filter(|root| root.object == address).collect()
    }

    /// Asserts that every reference of every object leads to an object, and so does every root.
    #[track_caller]
    pub fn check_references(&self) {
        for address in self.objects.keys() {
            let object = self.object(*address).expect("it is there");
            for (place, target) in object.references() {
                let known = target == 0 || self.objects.contains_key(&target);
                assert!(known, "{} at {address:#x}: {place} is {target:#x}", object.class_name());
            }
        }
        for root in &self.snapshot.roots {
            assert!(self.objects.contains_key(&root.object), "{root:?}");
        }
    }
}

impl<'a> Object<'a> {
    fn class(&self) -> &'a Class {
        &self.file.snapshot.classes[self.class]
    }

    pub fn class_name(&self) -> &'a str {
        &self.class().name
    }

    /// The classes of an object, from its own up.
    fn classes(&self) -> impl Iterator<Item = &'a Class> + use<'a> {
        let file = self.file;
        let up = move |class: &&'a Class| {
            file.classes.get(&class.super_klass).map(|at| &file.snapshot.classes[*at])
        };
        std::iter::successors(Some(self.class()), up)
    }

    #[track_caller]
    fn place(&self, field: &str) -> usize {
        let mut fields = self.classes().flat_map(|class| &class.fields);
        let found = fields.find(|one| &*one.name == field && !one.is_static);
        found.unwrap_or_else(|| panic!("{} has no {field}", self.class_name())).offset as usize
    }

    /// The bytes of a field.
    #[track_caller]
    pub fn value<const N: usize>(&self, field: &str) -> [u8; N] {
        let at = self.place(field);
        self.bytes[at..at + N].try_into().expect("so many bytes")
    }

    #[track_caller]
    pub fn int(&self, field: &str) -> i32 {
        i32::from_le_bytes(self.value(field))
    }

    #[track_caller]
    pub fn long(&self, field: &str) -> i64 {
        i64::from_le_bytes(self.value(field))
    }

    /// What a field refers to.
    #[track_caller]
    pub fn reference(&self, field: &str) -> Option<Object<'a>> {
        self.reference_at(self.place(field))
    }

    #[track_caller]
    fn reference_at(&self, offset: usize) -> Option<Object<'a>> {
        match self.file.layout.reference(self.bytes, offset).expect("inside the object") {
            0 => None,
            address => Some(self.file.object(address).expect("what is referred to is there")),
        }
    }

    /// The elements of an array of numbers, so many bytes each.
    #[track_caller]
    pub fn elements<const N: usize>(&self) -> Vec<[u8; N]> {
        let tare_heapdump::snapshot::ClassKind::PrimitiveArray { first, element, .. } =
            self.class().kind
        else {
            panic!("{} is no array of numbers", self.class_name());
        };
        assert_eq!(element as usize, N);
        let length = self.file.layout.array_length(self.bytes).expect("a length") as usize;
        let bytes = &self.bytes[first as usize..first as usize + N * length];
        bytes.chunks_exact(N).map(|one| one.try_into().expect("so many bytes")).collect()
    }

    /// The addresses in an array of objects; zero is null.
    #[track_caller]
    pub fn items(&self) -> Vec<u64> {
        let tare_heapdump::snapshot::ClassKind::ObjectArray { first, element } = self.class().kind
        else {
            panic!("{} is no array of objects", self.class_name());
        };
        let length = self.file.layout.array_length(self.bytes).expect("a length") as usize;
        (0..length)
            .map(|at| first as usize + at * element as usize)
            .map(|at| self.file.layout.reference(self.bytes, at).expect("inside the array"))
            .collect()
    }

    /// The text of a string.
    #[track_caller]
    pub fn text(&self) -> String {
        assert_eq!(self.class_name(), "java.lang.String");
        let bytes = self.reference("value").expect("it has one").elements::<1>().concat();
        assert_eq!(self.value::<1>("coder"), [0], "only Latin 1 is read here");
        bytes.into_iter().map(char::from).collect()
    }

    /// All that it refers to by fields and elements, with their names.
    pub fn references(&self) -> Vec<(String, u64)> {
        use tare_heapdump::snapshot::ClassKind;
        match self.class().kind {
            ClassKind::PrimitiveArray { .. } => Vec::new(),
            ClassKind::ObjectArray { .. } => {
                let items = self.items().into_iter().enumerate();
                items.map(|(at, address)| (format!("[{at}]"), address)).collect()
            }
            ClassKind::Instance { .. } => {
                let fields = self.classes().flat_map(|class| &class.fields);
                let ours =
                    fields.filter(|one| !one.is_static && one.descriptor.starts_with(['L', '[']));
                ours.map(|one| {
                    let at = one.offset as usize;
                    let address = self.file.layout.reference(self.bytes, at);
                    (one.name.to_string(), address.expect("inside the object"))
                })
                .collect()
            }
        }
    }
}

/// How many objects of each class HotSpot counts, and their bytes, after a collection.
#[track_caller]
pub fn class_histogram(pid: u32) -> BTreeMap<String, (u64, u64)> {
    let mut jcmd = Command::new(env().javac.home.join("bin/jcmd"));
    let output = jcmd.args([&pid.to_string(), "GC.class_histogram"]).output().expect("jcmd runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counts = BTreeMap::<String, (u64, u64)>::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, count, bytes, name, ..] = words[..] else { continue };
        let (Ok(count), Ok(bytes)) = (count.parse::<u64>(), bytes.parse::<u64>()) else { continue };
        if number.ends_with(':') {
            let entry = counts.entry(class_name(name)).or_default();
            *entry = (entry.0 + count, entry.1 + bytes);
        }
    }
    assert!(counts.len() > 100, "{text}");
    counts
}

/// A name of HotSpot's as people know it.
fn class_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let primitives = [
        ("Z", "boolean"),
        ("B", "byte"),
        ("C", "char"),
        ("S", "short"),
        ("I", "int"),
        ("J", "long"),
        ("F", "float"),
        ("D", "double"),
    ];
    let known = primitives.iter().find(|(short, _)| dimensions > 0 && *short == element);
    let element = match known {
        Some((_, long)) => long,
        None if dimensions > 0 => element.trim_start_matches('L').trim_end_matches(';'),
        None => element,
    };
    format!("{element}{}", "[]".repeat(dimensions))
}
