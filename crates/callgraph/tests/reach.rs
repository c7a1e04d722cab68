//! Reachability on small programs, compiled when the tests run: source in, names out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};
use tare_callgraph::{
    ClassFacts, ClassId, Graph, MethodFacts, MethodId, Past, Scheme, Side, Site, handles,
    is_trivial, references, sites,
};
use tare_classfile::{ClassFile, Code, access};

/// Compiles sources, each in a file of its own name, and gives back class bytes by class name.
fn compile(sources: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let place = env::temp_dir().join(format!("tare-callgraph-{}-{number}", std::process::id()));
    let _ = fs::remove_dir_all(&place);
    let files: Vec<PathBuf> = sources
        .iter()
        .map(|(name, text)| {
            let file = place.join("src").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            file
        })
        .collect();
    let javac =
        env::var_os("JAVA_HOME").map_or("javac".into(), |h| Path::new(&h).join("bin/javac"));
    let classes = place.join("classes");
    let output = Command::new(javac)
        .args(["--release", "17", "-nowarn", "-d"])
        .arg(&classes)
        .args(&files)
        .output()
        .expect("javac can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = BTreeMap::new();
    let mut waiting = vec![classes];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                waiting.push(entry.path());
            } else {
                let bytes = fs::read(entry.path()).unwrap();
                let name = ClassFile::parse(&bytes).unwrap().name().unwrap().to_vec();
                found.insert(String::from_utf8(name).unwrap(), bytes);
            }
        }
    }
    fs::remove_dir_all(&place).unwrap();
    found
}

struct World {
    graph: Graph,
    roots: BTreeSet<String>,
    bodies: BTreeMap<MethodId, Vec<u8>>,
    names: BTreeMap<MethodId, String>,
    /// Of methods whose past is known.
    pasts: BTreeMap<String, Past>,
    dormant: Vec<&'static str>,
    /// The classes are older than the look at them.
    made_before: bool,
}

fn side(name: &[u8]) -> Side {
    if name.starts_with(b"javax/management/") || name.starts_with(b"java/lang/management/") {
        Side::JdkApart(1)
    } else if name.starts_with(b"java/") {
        Side::Jdk
    } else if name.starts_with(b"out/") {
        Side::Outside
    } else {
        Side::Inside
    }
}

impl World {
    fn new(scheme: Scheme, roots: &[&str]) -> Self {
        World {
            graph: Graph::new(scheme, side),
            roots: roots.iter().map(|r| (*r).to_owned()).collect(),
            bodies: BTreeMap::new(),
            names: BTreeMap::new(),
            pasts: BTreeMap::new(),
            dormant: Vec::new(),
            made_before: false,
        }
    }

    /// Some classes of the JDK, as far as the tests need them.
    fn jdk(&mut self) {
        let open = access::PUBLIC;
        let hook = access::PUBLIC | access::ABSTRACT;
        let comparing = &[("compare", "(Ljava/lang/Object;Ljava/lang/Object;)I")];
        let object = &[("toString", "()Ljava/lang/String;"), ("hashCode", "()I")];
        self.foreign("java/lang/Object", open, object);
        self.foreign("java/lang/Runnable", hook | access::INTERFACE, &[("run", "()V")]);
        self.foreign("java/util/Comparator", hook | access::INTERFACE, comparing);
    }

    /// What the JDK has for managed beans.
    fn beans(&mut self) {
        let hook = access::PUBLIC | access::ABSTRACT | access::INTERFACE;
        let handle = "(Ljavax/management/Notification;Ljava/lang/Object;)V";
        let send = [("sendNotification", "(Ljavax/management/Notification;)V")];
        let listener = [("handleNotification", handle)];
        self.foreign("javax/management/NotificationListener", hook, &listener);
        self.foreign("javax/management/NotificationBroadcasterSupport", access::PUBLIC, &send);
    }

    fn foreign(&mut self, name: &str, flags: u16, methods: &[(&'static str, &'static str)]) {
        let method = |(name, descriptor): &(&'static str, &'static str)| MethodFacts {
            name: name.as_bytes(),
            descriptor: descriptor.as_bytes(),
            access_flags: flags & !access::INTERFACE,
            root: false,
            past: Past::Unknown,
        };
        self.graph.add_class(&ClassFacts {
            name: name.as_bytes(),
            loader: 0,
            access_flags: flags,
            superclass: (name != "java/lang/Object").then_some((0, b"java/lang/Object")),
            interfaces: Vec::new(),
            initialised: true,
            dormant: false,
            methods: Some(methods.iter().map(method).collect()),
        });
    }

    fn load(&mut self, loader: u32, bytes: &[u8]) -> ClassId {
        let class = ClassFile::parse(bytes).unwrap();
        let name = class.name().unwrap();
        let of = |index| class.pool.class_name(index).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let label = |m: &tare_classfile::Member<'_>| {
            format!("{}.{}", text(name), text(class.pool.utf8(m.name_index).unwrap()))
        };
        let methods = class
            .methods
            .iter()
            .map(|m| MethodFacts {
                name: class.pool.utf8(m.name_index).unwrap(),
                descriptor: class.pool.utf8(m.descriptor_index).unwrap(),
                access_flags: m.access_flags,
                root: self.roots.contains(&label(m)),
                past: self.pasts.get(&label(m)).copied().unwrap_or_default(),
            })
            .collect();
        let id = self.graph.add_class(&ClassFacts {
            name,
            loader,
            access_flags: class.access_flags,
            superclass: Some((loader, of(class.super_class))),
            interfaces: class.interfaces().map(|i| (loader, of(i))).collect(),
            initialised: false,
            dormant: self.dormant.iter().any(|n| n.as_bytes() == name),
            methods: Some(methods),
        });
        for m in &class.methods {
            let (n, d) = (m.name_index, m.descriptor_index);
            let (n, d) = (class.pool.utf8(n).unwrap(), class.pool.utf8(d).unwrap());
            let Some(method) = self.graph.find_method(id, n, d) else { continue };
            if m.attributes.find(&class.pool, "Code").is_none() {
                continue;
            }
            let loader = if loader == 1 { String::new() } else { format!("{loader}:") };
            self.names.insert(method, format!("{loader}{}", label(m)));
            self.bodies.insert(method, bytes.to_vec());
        }
        match side(name) {
            Side::Inside => {
                handles(&class.pool, |site| match self.made_before {
                    true => self.graph.handle_when_made(id, site),
                    false => self.graph.handle(id, site),
                });
            }
            Side::Outside => {
                references(&class.pool, |m| self.graph.named_by(id, Site::Virtual(m)));
            }
            Side::Jdk | Side::JdkApart(_) => {}
        }
        id
    }

    /// Gives the graph what it asks for until it asks no more.
    fn settle(&mut self) {
        loop {
            let wanted = self.graph.take_bodies_wanted();
            if wanted.is_empty() {
                return;
            }
            for method in wanted {
                let bytes = self.bodies[&method].clone();
                let class = ClassFile::parse(&bytes).unwrap();
                let (name, descriptor) = self.graph.method_name(method);
                let (name, descriptor) = (name.to_vec(), descriptor.to_vec());
                let member = class
                    .methods
                    .iter()
                    .find(|m| {
                        class.pool.utf8(m.name_index).unwrap() == name
                            && class.pool.utf8(m.descriptor_index).unwrap() == descriptor
                    })
                    .unwrap();
                let code = member.attributes.find(&class.pool, "Code").unwrap();
                let code = Code::parse(&code).unwrap();
                let mut found = Vec::new();
                sites(&class.pool, code.code, |site| found.push(site));
                self.graph.set_body(method, found);
                self.graph.follow(method);
            }
        }
    }

    /// A method runs for the first time.
    fn run(&mut self, name: &str) {
        let all: Vec<MethodId> =
            self.names.iter().filter(|(_, n)| *n == name).map(|(id, _)| *id).collect();
        assert!(!all.is_empty(), "no {name}");
        for method in all {
            self.graph.ran(method);
        }
        self.settle();
    }

    /// Reachable methods with code.
    fn reachable(&self) -> String {
        let mut all: Vec<&str> = self
            .names
            .iter()
            .filter(|(id, _)| self.graph.reachable(**id).is_some())
            .map(|(_, name)| name.as_str())
            .collect();
        all.sort_unstable();
        all.dedup();
        all.join(" ")
    }
}

/// Loads all classes in the order of their names, and the other way round; each case is which
/// methods run, and what is then reachable.
fn check(source: &str, cases: &[(Scheme, &[&str], &str)]) {
    let classes = compile(&[("T.java", source)]);
    for &(scheme, runs, expected) in cases {
        for reversed in [false, true] {
            let mut world = World::new(scheme, &["T.root"]);
            world.jdk();
            let mut all: Vec<&Vec<u8>> = classes.values().collect();
            if reversed {
                all.reverse();
            }
            for bytes in all {
                world.load(1, bytes);
            }
            world.settle();
            for name in runs {
                world.run(name);
            }
            assert_eq!(world.reachable(), expected, "{scheme:?} {runs:?}, reversed: {reversed}");
        }
    }
}

const CHAIN: &str = "class T {
    static void root() { a(); }
    static void a() { b(); }
    static void b() { }
    static void other() { elsewhere(); }
    static void elsewhere() { }
}";

#[test]
fn eager_follows_everything_and_lazy_what_ran() {
    check(
        CHAIN,
        &[
            (Scheme::Eager, &[], "T.a T.b T.root"),
            (Scheme::Lazy, &[], "T.root"),
            (Scheme::Lazy, &["T.root"], "T.a T.root"),
            (Scheme::Lazy, &["T.root", "T.a"], "T.a T.b T.root"),
        ],
    );
}

#[test]
fn virtual_calls_reach_what_could_be_meant() {
    let source = "class T {
        static void root(B b, I i) { b.m(); i.n(); }
    }
    class A { void m() { } void n2() { } }
    class B extends A { }
    class C extends B { void m() { } }
    class D extends C { }
    class Unrelated { void m() { } public void n() { } }
    interface I { void n(); default void d() { } }
    class Upper { public void n() { } }
    class Lower extends Upper implements I { }
    class Other implements I { public void n() { d(); } }";
    check(
        source,
        &[
            (Scheme::Lazy, &["T.root"], "A.m C.m Other.n T.root Upper.n"),
            (Scheme::Lazy, &["T.root", "Other.n"], "A.m C.m I.d Other.n T.root Upper.n"),
        ],
    );
}

#[test]
fn constructors_initialisers_bridges_and_super() {
    let source = "class T {
        static void root(G<String> g) { new Y(); g.take(null); int i = S.value; }
    }
    class X { X() { } X(int i) { } void m() { } }
    class Y extends X { Y() { super(3); } void m() { super.m(); } }
    class S { static int value = compute(); static int compute() { return 1; } }
    class G<P> { void take(P p) { } }
    class H extends G<String> { void take(String s) { } }";
    // The bridge H.take(Object) is reached by the call, the method itself by the bridge.
    let all = "G.take H.take S.<clinit> S.compute T.root X.<init> Y.<init>";
    check(source, &[(Scheme::Eager, &[], all)]);
}

#[test]
fn the_jdk_can_call_what_it_declares() {
    let source = "class T {
        static Runnable made() { return () -> inLambda(); }
        static void inLambda() { }
        static void root(java.util.List<Object> list) { list.sort(null); }
    }
    class K { public int hashCode() { return help(); } int help() { return 1; } }
    class Task implements Runnable { public void run() { } void other() { } }
    class Base { public void run() { } }
    class Both extends Base implements Runnable { }
    class NotATask { public void run() { } }";
    let all = "Base.run K.hashCode T.lambda$made$0 T.root Task.run";
    check(source, &[(Scheme::Lazy, &["T.root"], all)]);
}

#[test]
fn looking_ahead_follows_what_has_not_run() {
    let source = "class T {
        static void root() { one(); }
        static void one() { two(); }
        static void two() { three(); }
        static void three() { four(); }
        static void four() { }
    }";
    let classes = compile(&[("T.java", source)]);
    for (levels, expected) in [
        (0, "T.one T.root"),
        (1, "T.one T.root T.two"),
        (2, "T.one T.root T.three T.two"),
        (9, "T.four T.one T.root T.three T.two"),
    ] {
        let mut world = World::new(Scheme::Lazy, &["T.root"]);
        world.jdk();
        world.graph.look_ahead(levels);
        classes.values().for_each(|bytes| _ = world.load(1, bytes));
        world.run("T.root");
        assert_eq!(world.reachable(), expected, "{levels} levels");
    }
}

#[test]
fn interface_roots_are_their_implementations() {
    let source = "class T { }
    interface Service { void serve(); default void rest() { } static void unmeant() { } }
    class One implements Service { public void serve() { help(); } void help() { } }
    class Two extends One { public void serve() { } public void rest() { } }";
    let classes = compile(&[("T.java", source)]);
    let mut world = World::new(Scheme::Lazy, &["Service.serve", "Service.rest"]);
    world.jdk();
    for bytes in classes.values() {
        world.load(1, bytes);
    }
    let roots = world.names.iter().filter(|(id, _)| world.graph.reachable(**id) == Some(true));
    let mut roots: Vec<&str> = roots.map(|(_, name)| name.as_str()).collect();
    roots.sort_unstable();
    assert_eq!(roots, ["One.serve", "Service.rest", "Two.rest", "Two.serve"]);
}

#[test]
fn code_that_is_not_woven_can_call_what_it_names() {
    let sources = [
        (
            "T.java",
            "public class T extends in.Part implements out.Api {
                static void root() { out.Lib.go(new T()); }
                public void back() { }
                void unseen() { }
            }",
        ),
        ("in/Part.java", "package in; public class Part { public void part() { } void not() { } }"),
        ("out/Api.java", "package out; public interface Api { void back(); }"),
        (
            "out/Lib.java",
            "package out; public class Lib {
                public static void go(Api a) { a.back(); new in.Part().part(); }
            }",
        ),
    ];
    let classes = compile(&sources);
    let mut world = World::new(Scheme::Lazy, &["T.root"]);
    world.jdk();
    for name in ["out/Api", "in/Part", "out/Lib", "T"] {
        world.load(1, &classes[name]);
    }
    world.settle();
    assert_eq!(world.reachable(), "T.back T.root in/Part.<init> in/Part.part");
}

#[test]
fn classes_that_come_later_are_judged_when_they_come() {
    let source = "class T { static void root(B b) { b.m(); } }
    class B { void m() { } }
    class Late extends Mid { void m() { } void n() { } }
    class Mid extends B { }";
    let classes = compile(&[("T.java", source)]);
    let mut world = World::new(Scheme::Lazy, &["T.root"]);
    world.jdk();
    world.load(1, &classes["T"]);
    world.run("T.root");
    world.load(1, &classes["B"]);
    assert_eq!(world.reachable(), "B.m T.root");
    // Its superclass is loaded after it has been seen: it could be below B.
    let late = world.load(1, &classes["Late"]);
    assert_eq!(world.reachable(), "B.m Late.m T.root");
    world.graph.forget_change(late);
    world.load(1, &classes["Mid"]);
    assert_eq!(world.reachable(), "B.m Late.m T.root");
    assert!(!world.graph.take_changed().contains(&late), "nothing new in it");
}

#[test]
fn classes_of_one_name_in_two_loaders_are_two() {
    let source = "class T { static void root() { new P().m(); } }
    class P { void m() { } }";
    let classes = compile(&[("T.java", source)]);
    let mut world = World::new(Scheme::Lazy, &["T.root"]);
    world.jdk();
    for loader in [1, 2] {
        world.load(loader, &classes["P"]);
    }
    world.load(1, &classes["T"]);
    world.run("T.root");
    assert_eq!(world.reachable(), "P.<init> P.m T.root");
    // One more of that name will be used like the first.
    world.load(4, &classes["P"]);
    assert_eq!(world.reachable(), "4:P.<init> 4:P.m P.<init> P.m T.root");
    // A loader that has no such class of its own may mean any of them.
    world.load(3, &classes["T"]);
    world.run("3:T.root");
    assert_eq!(world.reachable(), "2:P.<init> 2:P.m 3:T.root 4:P.<init> 4:P.m P.<init> P.m T.root");
}

#[test]
fn what_is_seen_to_be_called_is_reachable() {
    let source =
        "class T { void hidden(int i) { deeper(); } void deeper() { } static void root() { } }
    class U extends T { void hidden(int i) { } }";
    let classes = compile(&[("T.java", source)]);
    let mut world = World::new(Scheme::Lazy, &["T.root"]);
    world.jdk();
    for bytes in classes.values() {
        world.load(1, bytes);
    }
    world.graph.reveal(1, b"T", b"hidden", b"(I)V");
    world.run("T.hidden");
    assert_eq!(world.reachable(), "T.deeper T.hidden T.root U.hidden");
}

#[test]
fn explanations_name_the_chain() {
    let classes = compile(&[("T.java", CHAIN)]);
    let mut world = World::new(Scheme::Eager, &["T.root"]);
    world.jdk();
    world.load(1, &classes["T"]);
    world.settle();
    let chain = |name: &str| {
        let all = world.graph.explain(|class, method, _| class == "T" && method == name);
        let steps = all[0].chain.iter().map(|step| format!("{}: {}", step.method, step.how));
        steps.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(chain("b"), "T.b: called by; T.a: called by; T.root: a root");
    assert_eq!(chain("elsewhere"), "");
}

#[test]
fn trivial_methods() {
    let source = "class T {
        int f; static int s; String t;
        T() { } T(int i) { f = i; }
        int get() { return f; } static int gets() { return s; }
        void set(int i) { f = i; } T with(String t) { this.t = t; return this; }
        int one() { return 1; } void nothing() { } String same(String x) { return x; }
        int sum(int x) { return f + x; } void calls() { nothing(); } String text() { return \"a\" + f; }
        static { s = 3; }
    }";
    let classes = compile(&[("T.java", source)]);
    let class = ClassFile::parse(&classes["T"]).unwrap();
    let mut trivial = Vec::new();
    for m in &class.methods {
        let name = class.pool.utf8(m.name_index).unwrap();
        let code = Code::parse(&m.attributes.find(&class.pool, "Code").unwrap()).unwrap();
        if is_trivial(&class.pool, name, code.code) {
            let descriptor = class.pool.utf8(m.descriptor_index).unwrap();
            trivial.push(String::from_utf8_lossy(&[name, descriptor].concat()).into_owned());
        }
    }
    trivial.sort();
    assert_eq!(
        trivial.join(" "),
        "<init>()V get()I gets()I nothing()V one()I same(Ljava/lang/String;)Ljava/lang/String; \
         set(I)V with(Ljava/lang/String;)LT;"
    );
}

#[test]
fn what_ran_before_is_followed_when_something_calls_it() {
    let classes = compile(&[("T.java", CHAIN)]);
    let mut world = World::new(Scheme::Lazy, &["T.root"]);
    for (name, past) in [
        ("T.root", Past::RanOften),
        ("T.a", Past::Ran),
        ("T.other", Past::RanOften), // Nothing below the root calls it.
    ] {
        world.pasts.insert(name.to_owned(), past);
    }
    world.jdk();
    classes.values().for_each(|bytes| _ = world.load(1, bytes));
    world.settle();
    assert_eq!(world.reachable(), "T.a T.root");
    world.graph.trust(Past::Ran);
    world.settle();
    assert_eq!(world.reachable(), "T.a T.b T.root");
}

#[test]
fn a_class_without_objects_is_called_by_nobody() {
    let source = "class T {
        static void root(I i, boolean b) { i.m(); if (b) make(); }
        static void make() { new B(); }
    }
    interface I { void m(); }
    class A implements I { public void m() { } public String toString() { return null; } }
    class B extends A { public void m() { } }";
    let classes = compile(&[("T.java", source)]);
    for (runs, expected) in [
        (&["T.root"][..], "T.make T.root"),
        (&["T.root", "T.make"], "A.m A.toString B.<init> B.m T.make T.root"),
    ] {
        let mut world = World::new(Scheme::Lazy, &["T.root"]);
        world.dormant = vec!["A", "B"];
        world.jdk();
        classes.values().for_each(|bytes| _ = world.load(1, bytes));
        world.settle();
        runs.iter().for_each(|name| world.run(name));
        assert_eq!(world.reachable(), expected);
        // What is used elsewhere is told from outside.
        assert_eq!(world.graph.sleepers().len(), if runs.len() == 1 { 2 } else { 0 });
        for class in world.graph.sleepers() {
            world.graph.wake(class);
        }
        assert!(world.reachable().starts_with("A.m A.toString B"), "{}", world.reachable());
    }
}

#[test]
fn an_abstract_class_is_called_through_those_below_it() {
    let source = "class T {
        static void root(A a, B b) { a.m(); a.n(); a.o(); b.own(); }
    }
    abstract class A { void m() { } void n() { } void o() { } }
    class B extends A { void m() { } void o() { } void own() { super.o(); } }";
    // `m` has taken the place of A's everywhere; A's `n` is inherited, and `o` is called by name.
    let lazy = "A.n A.o B.m B.o B.own T.root";
    let all = "A.m A.n A.o B.m B.o B.own T.root";
    check(source, &[(Scheme::Lazy, &["T.root", "B.own"], lazy), (Scheme::Eager, &[], all)]);
}

#[test]
fn handles_that_were_not_made_are_made_by_what_runs() {
    let source = "class T {
        static void root(boolean b) { String s = \"is \" + b; if (b) make(); }
        static void make() { Runnable r = () -> inLambda(); }
        static void other() { Runnable r = T::reference; }
        static void inLambda() { }
        static void reference() { }
    }";
    let classes = compile(&[("T.java", source)]);
    let lambdas = "T.lambda$make$0 T.make T.reference T.root";
    for (scheme, runs, expected) in [
        (Scheme::Lazy, &["T.root"][..], "T.make T.root"),
        (Scheme::Lazy, &["T.root", "T.make"], lambdas),
        (Scheme::Eager, &[], "T.inLambda T.lambda$make$0 T.make T.reference T.root"),
    ] {
        let mut world = World::new(scheme, &["T.root"]);
        world.made_before = true;
        world.jdk();
        world.load(1, &classes["T"]);
        world.settle();
        runs.iter().for_each(|name| world.run(name));
        assert_eq!(world.reachable(), expected, "{scheme:?} {runs:?}");
    }
}

#[test]
fn beans_are_called_by_those_who_go_to_their_server() {
    let source = "class T {
        static void root(boolean b) { if (b) ask(); else own(null); }
        static void ask() { java.lang.management.ManagementFactory.getPlatformMBeanServer(); }
        static void own(Bean bean) { bean.send(null); }
    }
    class Bean extends javax.management.NotificationBroadcasterSupport
            implements javax.management.NotificationListener {
        public void handleNotification(javax.management.Notification n, Object o) { }
        void send(javax.management.Notification n) { sendNotification(n); }
        public String toString() { return null; }
    }";
    let classes = compile(&[("T.java", source)]);
    for (runs, called) in [
        (&["T.root"][..], false),
        (&["T.root", "T.own"], false),
        (&["T.root", "T.own", "Bean.send"], true),
        (&["T.root", "T.ask"], true),
    ] {
        let mut world = World::new(Scheme::Lazy, &["T.root"]);
        world.jdk();
        world.beans();
        classes.values().for_each(|bytes| _ = world.load(1, bytes));
        world.settle();
        runs.iter().for_each(|name| world.run(name));
        let reachable = world.reachable();
        assert_eq!(reachable.contains("handleNotification"), called, "{runs:?}: {reachable}");
        assert!(reachable.contains("Bean.toString"), "{reachable}");
    }
}

#[test]
fn native_methods_are_told_when_they_are_called() {
    let source = "class T {
        static void root() { a(); }
        static native void a();
        static native void b();
    }";
    let mut world = World::new(Scheme::Lazy, &["T.root"]);
    world.jdk();
    compile(&[("T.java", source)]).values().for_each(|bytes| _ = world.load(1, bytes));
    world.run("T.root");
    let natives = world.graph.take_natives();
    let names: Vec<String> = natives.into_iter().map(|m| world.graph.full_name(m)).collect();
    assert_eq!(names, ["T.a"]);
}
