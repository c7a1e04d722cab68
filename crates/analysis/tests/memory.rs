//! What is said of allocation and of what lives, on made-up recordings.

use tare_analysis::{
    Ages, Filter, Finding, Grouping, Memory, SiteBy, Tree, findings, hot_list, memory_findings,
};
use tare_profile::facts::{Bytes, keys};
use tare_profile::{
    ContextId, Event, EventKind, FieldValue, Frame, Method, MethodKind, Profile, Row, SeriesId,
    SeriesInfo, ThreadId, TimeAxis, ValueKind,
};

const INTERVAL: u64 = 512 << 10;
const SECOND: u64 = 1_000_000_000;

/// A recording that is being made up.
struct Made {
    profile: Profile,
    /// Allocated bytes and objects, live bytes and objects.
    series: [SeriesId; 4],
}

impl Made {
    fn new(duration: u64) -> Self {
        let mut profile = Profile::new();
        profile.run.duration = duration;
        profile.run.facts.set(keys::ALLOCATION_INTERVAL, &Bytes(INTERVAL));
        let mut add = |name: &str, kind: ValueKind| {
            let info = SeriesInfo::new(name, kind).with_time(TimeAxis::Exact);
            profile.add_series(info.with_period(INTERVAL, ValueKind::AllocatedBytes))
        };
        let series = [
            add("alloc", ValueKind::AllocatedBytes),
            add("alloc", ValueKind::AllocatedObjects),
            add("live", ValueKind::LiveBytes),
            add("live", ValueKind::LiveObjects),
        ];
        Made { profile, series }
    }

    /// `com.acme.Main.main:1 java.util.ArrayList.grow:9`, outermost first, then the class.
    fn stack(&mut self, methods: &str, class: &str) -> ContextId {
        let mut at = ContextId::ROOT;
        for text in methods.split_whitespace() {
            let (name, line) = text.split_once(':').unwrap_or((text, "0"));
            let (owner, name) = name.rsplit_once('.').unwrap();
            let strings = &mut self.profile.strings;
            let (class, name) = (strings.intern(owner), strings.intern(name));
            let method = self.profile.methods.intern(Method { class, name, ..Method::default() });
            let line = line.parse().ok().filter(|line| *line > 0);
            let frame = self.profile.frames.intern(Frame { line, ..Frame::of(method) });
            at = self.profile.contexts.child(at, frame);
        }
        let class = self.profile.strings.intern(class);
        let method = Method { kind: MethodKind::Class, class, ..Method::default() };
        let method = self.profile.methods.intern(method);
        let frame = self.profile.frames.intern(Frame::of(method));
        self.profile.contexts.child(at, frame)
    }

    fn push(&mut self, which: usize, context: ContextId, time: u64, value: i64) {
        let row = Row::new(context, ThreadId::UNKNOWN, value).at(time);
        self.profile.series_mut(self.series[which]).push(row);
    }

    /// So many samples of objects of one size, spread over the run.
    fn allocate(&mut self, context: ContextId, samples: u64, size: u64) {
        let chance = -(-(size as f64) / INTERVAL as f64).exp_m1();
        for n in 0..samples {
            let time = self.profile.run.duration * n / samples;
            self.push(0, context, time, (size as f64 / chance) as i64);
            self.push(1, context, time, (1.0 / chance) as i64);
        }
    }

    fn live(&mut self, context: ContextId, time: u64, bytes: i64) {
        self.push(2, context, time, bytes);
        self.push(3, context, time, bytes / 100);
    }

    fn memory(&self, by: SiteBy) -> Memory {
        Memory::of(&self.profile, None, &Filter::default(), by).unwrap().unwrap()
    }

    fn found(&self) -> Vec<String> {
        let found = memory_findings(&self.profile, &self.memory(SiteBy::Site), true);
        found.into_iter().map(|Finding { text, .. }| text).collect()
    }

    fn says(&self, words: &str) -> Option<String> {
        self.found().into_iter().find(|text| text.contains(words))
    }
}

#[test]
fn sites_are_classes_and_the_first_line_outside_of_the_jdk() {
    let mut made = Made::new(10 * SECOND);
    let copied = made.stack("com.acme.Main.main:3 java.util.Arrays.copyOf:9", "byte[]");
    let plain = made.stack("com.acme.Main.main:4", "com.acme.Order");
    made.allocate(copied, 3000, 64);
    made.allocate(plain, 1000, 64);
    let names = |by| {
        let sites = made.memory(by).sites.into_iter();
        let text = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
        sites
            .map(|site| [site.name.class, site.name.place, site.name.by].map(text).join(" "))
            .collect::<Vec<_>>()
    };
    let first = "byte[] com.acme.Main.main:3 java.util.Arrays.copyOf";
    assert_eq!(names(SiteBy::Site), [first, "com.acme.Order com.acme.Main.main:4 -"]);
    assert_eq!(names(SiteBy::Class), ["byte[] - -", "com.acme.Order - -"]);
    let lines = ["- java.util.Arrays.copyOf:9 -", "- com.acme.Main.main:4 -"];
    assert_eq!(names(SiteBy::Line), lines);
    assert_eq!(names(SiteBy::Method), ["- java.util.Arrays.copyOf -", "- com.acme.Main.main -"]);
    // Whatever the JDK does for it, a class and a line are one site, by what does the most.
    let mut other = Made::new(10 * SECOND);
    for (method, samples) in [("java.util.Arrays.copyOf", 20), ("java.lang.String.getBytes", 10)] {
        let stack = other.stack(&format!("com.acme.Main.main:3 {method}:9"), "byte[]");
        other.allocate(stack, samples, 64);
    }
    let sites = other.memory(SiteBy::Site).sites;
    assert_eq!((sites.len(), sites[0].samples), (1, 30));
    assert_eq!(sites[0].name.by.as_deref(), Some("java.util.Arrays.copyOf"));
    let memory = made.memory(SiteBy::Site);
    // 4,000 samples, of which three quarters are the first's: 1.96 × √(¾ × ¼ / 4,000).
    let error = memory.sites[0].error.unwrap();
    assert!((error - 0.01342).abs() < 0.0002, "{error}");
    assert_eq!((memory.samples, memory.interval), (4000, Some(INTERVAL)));
}

#[test]
fn what_cannot_be_missed_has_no_error() {
    let mut made = Made::new(SECOND);
    let large = made.stack("com.acme.Main.main:3", "byte[]");
    let other = made.stack("com.acme.Main.main:4", "int[]");
    made.allocate(large, 50, 64 << 20);
    made.allocate(other, 50, 64 << 20);
    assert!(made.memory(SiteBy::Site).sites.iter().all(|site| site.error.unwrap() < 1e-6));
}

/// Something that grows from collection to collection, beside something that does not.
fn leaking() -> (Made, ContextId) {
    let mut made = Made::new(60 * SECOND);
    let leak = made.stack("com.acme.Cache.put:42 java.util.HashMap.newNode:5", "com.acme.Order");
    let steady = made.stack("com.acme.Main.main:7", "byte[]");
    made.allocate(leak, 500, 100);
    made.allocate(steady, 500, 100);
    made.live(steady, SECOND, 8_000_000);
    for second in 1..60 {
        made.live(leak, second * SECOND, 1_000_000);
    }
    (made, leak)
}

#[test]
fn a_leak_is_named_with_class_site_growth_and_age() {
    let (mut made, leak) = leaking();
    let survivors = made.profile.events_of(&EventKind::survivor());
    for age in [3, 40, 59] {
        let event = Event { context: leak, ..Event::default() };
        let (size, bytes) = (FieldValue::Integer(100), FieldValue::Integer(524_338));
        let objects = FieldValue::Real(5243.0);
        let fields = [size, bytes, objects, FieldValue::Integer(age), FieldValue::Integer(0)];
        made.profile.events_mut(survivors).push(event, &fields);
    }
    let told = made.says("leak").expect("is a leak");
    for part in [
        "com.acme.Order from com.acme.Cache.put:42",
        "88.1 % of what lives",
        "60.0 MB more a minute",
        "half of it 40 collections old or more",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let memory = made.memory(SiteBy::Site);
    let site = memory.sites.iter().find(|site| site.live_samples == 59).unwrap();
    assert_eq!(site.ages, Some(Ages { median: 40, oldest: 59 }));
    // What lived in the middle, of whatever stretch of time.
    let filter = Filter { time: Some(20 * SECOND..30 * SECOND + 1), ..Filter::default() };
    let then = Memory::of(&made.profile, None, &filter, SiteBy::Site).unwrap().unwrap();
    assert_eq!(then.live.bytes, 38_000_000);
    assert!(then.sites.iter().all(|site| site.ages.is_none()), "ages are of the end");
}

#[test]
fn a_leak_of_several_classes_is_named_by_its_method() {
    let (mut made, _) = leaking();
    for class in ["char[]", "java.lang.String"] {
        let part = made.stack("com.acme.Cache.put:43", class);
        for second in 1..60 {
            made.live(part, second * SECOND, 1_000_000);
        }
    }
    let told = made.says("leak").expect("is a leak");
    assert!(told.contains("several classes from com.acme.Cache.put: 95"), "{told}");
}

#[test]
fn what_does_not_grow_or_is_small_or_is_rare_is_no_leak() {
    let mut full = Made::new(60 * SECOND);
    let cache = full.stack("com.acme.Cache.put:42", "com.acme.Order");
    full.allocate(cache, 500, 100);
    (1..20).for_each(|second| full.live(cache, second * SECOND, 1_000_000));
    (20..60).for_each(|second| {
        full.live(cache, second * SECOND, 1_000_000);
        full.live(cache, second * SECOND, -1_000_000);
    });
    assert_eq!(full.says("leak"), None, "a cache that is full");
    let (mut small, _) = leaking();
    let large = small.stack("com.acme.Main.main:9", "int[]");
    small.live(large, SECOND, 200_000_000);
    assert_eq!(small.says("leak"), None, "a fifth of what lives");
    let mut rare = Made::new(60 * SECOND);
    let few = rare.stack("com.acme.Cache.put:42", "com.acme.Order");
    (1..16).for_each(|second| rare.live(few, 4 * second * SECOND, 1_000_000));
    assert_eq!(rare.says("leak"), None, "too few samples");
}

#[test]
fn boxing_is_found_where_it_is_much() {
    let mut made = Made::new(10 * SECOND);
    let boxes = made.stack("com.acme.Sum.add:8 java.lang.Integer.valueOf:1", "java.lang.Integer");
    let rest = made.stack("com.acme.Main.main:3", "byte[]");
    made.allocate(rest, 500, 64);
    assert_eq!(made.says("boxing"), None);
    made.allocate(boxes, 29, 16);
    assert_eq!(made.says("boxing"), None, "too few samples, too small a share");
    made.allocate(boxes, 300, 16);
    let told = made.says("boxing").unwrap();
    assert!(told.contains("39.7 % of what is allocated"), "{told}");
    assert!(told.contains("all in com.acme.Sum.add:8 as java.lang.Integer"), "{told}");
    // An Integer that somebody makes on purpose is no box.
    let mut parsed = Made::new(10 * SECOND);
    let other = parsed.stack("com.acme.Sum.add:8", "java.lang.Integer");
    parsed.allocate(other, 300, 16);
    assert_eq!(parsed.says("boxing"), None);
}

#[test]
fn collections_that_grow_are_found_and_first_arrays_are_not() {
    let growing = "com.acme.Load.read:20 java.util.HashMap.putVal:2 java.util.HashMap.resize:7";
    let mut made = Made::new(10 * SECOND);
    let tables = made.stack(growing, "java.util.HashMap$Node[]");
    made.allocate(tables, 300, 80);
    assert_eq!(made.says("outgrow"), None, "a map's first table");
    let mut made = Made::new(10 * SECOND);
    let tables = made.stack(growing, "java.util.HashMap$Node[]");
    made.allocate(tables, 300, 4000);
    let told = made.says("outgrow").unwrap();
    assert!(told.contains("in com.acme.Load.read:20 by java.util.HashMap.resize"), "{told}");
    let mut strings = Made::new(10 * SECOND);
    let text = strings.stack(
        "com.acme.Text.join:5 java.lang.AbstractStringBuilder.ensureCapacityInternal:1 \
         java.util.Arrays.copyOf:2",
        "byte[]",
    );
    strings.allocate(text, 300, 500);
    assert!(strings.says("outgrow").is_some());
}

#[test]
fn humongous_objects_are_of_g1_and_of_half_a_region() {
    let mut made = Made::new(10 * SECOND);
    let array = made.stack("com.acme.Image.load:5", "int[]");
    made.allocate(array, 40, 1_500_000);
    assert_eq!(made.says("humongous"), None, "no G1");
    made.profile.run.flags.push("-XX:+UseG1GC".to_owned());
    let told = made.says("humongous").unwrap();
    assert!(told.contains("int[] of up to 1.5 MB in com.acme.Image.load:5"), "{told}");
    assert!(told.contains("taking regions to have 2 MB"), "{told}");
    made.profile.run.flags.push("-XX:G1HeapRegionSize=4m".to_owned());
    assert_eq!(made.says("humongous"), None, "less than half a region");
    made.profile.run.flags.push("-XX:G1HeapRegionSize=1048576".to_owned());
    let told = made.says("humongous").unwrap();
    assert!(told.contains("regions have 1 MB"), "{told}");
}

#[test]
fn what_is_not_proven_is_told_where_it_is_much() {
    let mut made = Made::new(10 * SECOND);
    let site = made.stack("com.acme.Main.main:3", "byte[]");
    made.allocate(site, 100, 64);
    made.live(site, SECOND, 1_000_000);
    made.profile.run.facts.set(keys::LIVE_UNPROVEN_BYTES, &Bytes(50_000));
    made.profile.run.facts.set(keys::COLLECTIONS, &1);
    assert_eq!(made.says("not proven"), None);
    made.profile.run.facts.set(keys::LIVE_UNPROVEN_BYTES, &Bytes(90_000_000));
    let told = made.says("not proven").unwrap();
    assert!(told.contains("90.0 MB"), "{told}");
}

#[test]
fn survivors_and_deaths_tell_what_survives() {
    let mut made = Made::new(10 * SECOND);
    let site = made.stack("com.acme.Main.main:3", "byte[]");
    made.allocate(site, 100, 64);
    let allocated = made.memory(SiteBy::Site).allocated.bytes;
    made.live(site, SECOND, allocated / 4);
    made.live(site, 2 * SECOND, -allocated / 8);
    let deaths = made.profile.events_of(&EventKind::death());
    let event = Event { context: site, time: 2 * SECOND, ..Event::default() };
    let objects = FieldValue::Real(1.0);
    let fields = [FieldValue::Integer(allocated / 8), objects, FieldValue::Integer(2)];
    made.profile.events_mut(deaths).push(event, &fields);
    let survival = made.memory(SiteBy::Site).sites[0].survival().unwrap();
    assert!((survival - 0.25).abs() < 0.001, "{survival}");
}

/// Of classes that were not followed nobody knows what lives.
#[test]
fn what_survives_is_told_of_the_classes_that_were_followed() {
    let mut made = Made::new(10 * SECOND);
    let orders = made.stack("com.acme.Main.main:3", "com.acme.Order");
    let copies = made.stack("com.acme.Main.main:4", "com.acme.Order (or a subclass)");
    let arrays = made.stack("com.acme.Main.main:3", "com.acme.Order[]");
    let classes = vec!["com.acme.*".to_owned()];
    made.profile.run.facts.set(keys::LIVE_CLASSES, &classes);
    for (site, bytes) in [(orders, 1000), (copies, 400), (arrays, 9000)] {
        made.push(0, site, SECOND, bytes);
    }
    made.live(orders, SECOND, 500);
    let of = |by, what: &str| {
        let memory = made.memory(by);
        assert_eq!(memory.followed, classes);
        let is = |name: &Option<String>| name.as_deref() == Some(what);
        let mut sites = memory.sites.into_iter();
        sites.find(|site| is(&site.name.class) || is(&site.name.place)).unwrap().survival()
    };
    assert_eq!(of(SiteBy::Class, "com.acme.Order"), Some(0.5));
    assert_eq!(of(SiteBy::Class, "com.acme.Order (or a subclass)"), Some(0.0));
    assert_eq!(of(SiteBy::Class, "com.acme.Order[]"), None);
    assert_eq!(of(SiteBy::Line, "com.acme.Main.main:3"), Some(0.5), "arrays do not count");
}

#[test]
fn a_class_is_no_method_in_lists_trees_and_findings() {
    let mut made = Made::new(10 * SECOND);
    let order = made.stack("com.acme.Order.make:3 com.acme.Order.<init>:2", "com.acme.Order");
    made.allocate(order, 100, 64);
    let texts = |group| {
        let filter = Filter { group, ..Filter::default() };
        let tree = Tree::build(&made.profile, &[made.series[0]], &filter).unwrap();
        let texts = tree.nodes().skip(1).map(|node| tree.label_of(node).text.clone());
        texts.collect::<Vec<_>>().join(" > ")
    };
    assert_eq!(texts(Grouping::Class), "com.acme.Order > com.acme.Order (object)");
    assert_eq!(texts(Grouping::Package), "com.acme > com.acme.Order");
    let tree = Tree::build(&made.profile, &[made.series[0]], &Filter::default()).unwrap();
    let found = findings(&made.profile, made.series[0], &tree, &hot_list(&tree), &[], None);
    assert!(found.iter().all(|finding| !finding.text.contains("itself")), "{found:?}");
}
