//! The types that we write, and the metadata event that describes them. Names and fields are the
//! JDK's, so that its tools know them; the numbers are ours. What the JVM itself does has a list of
//! its own (`of_jvm`).

pub mod of_jvm;

use super::METADATA_EVENT;
use super::write::Encoder;

pub const BOOLEAN: i64 = 4;
pub const INT: i64 = 10;
pub const LONG: i64 = 11;
pub const STRING: i64 = 20;
pub const CLASS: i64 = 21;
pub const THREAD: i64 = 22;
pub const CLASS_LOADER: i64 = 23;
pub const FRAME_TYPE: i64 = 24;
pub const THREAD_STATE: i64 = 25;
pub const STACK_TRACE: i64 = 26;
const STACK_FRAME: i64 = 27;
pub const METHOD: i64 = 28;
pub const PACKAGE: i64 = 29;
pub const SYMBOL: i64 = 30;
pub const MODULE: i64 = 31;
pub const OLD_OBJECT: i64 = 32;

pub const EXECUTION_SAMPLE: i64 = 101;
pub const NATIVE_METHOD_SAMPLE: i64 = 102;
pub const CPU_TIME_SAMPLE: i64 = 103;
pub const ALLOCATION_SAMPLE: i64 = 104;
pub const MONITOR_ENTER: i64 = 105;
pub const MONITOR_WAIT: i64 = 106;
pub const THREAD_PARK: i64 = 107;
pub const JVM_INFORMATION: i64 = 110;
pub const ACTIVE_RECORDING: i64 = 111;
pub const OWN_VALUE: i64 = 112;
pub const ACTIVE_SETTING: i64 = 113;
pub const OLD_OBJECT_SAMPLE: i64 = 114;
pub const THREAD_SLEEP: i64 = 115;
pub const TASK_QUEUED: i64 = 120;

const LABEL: i64 = 201;
const TIMESTAMP: i64 = 202;
const TIMESPAN: i64 = 203;
const DATA_AMOUNT: i64 = 204;
const CATEGORY: i64 = 205;
const CONTENT_TYPE: i64 = 206;

const EVENT: &str = "jdk.jfr.Event";
const ANNOTATION: &str = "java.lang.annotation.Annotation";

/// How a field stands in its class.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Plain,
    /// A key of a constant.
    Constant,
    Array,
    /// A moment or a stretch, in ticks.
    Moment,
    Stretch,
    Bytes,
}

use Shape::{Array, Bytes, Constant, Moment, Plain, Stretch};

type Field = (&'static str, i64, Shape);

const START: Field = ("startTime", LONG, Moment);
const DURATION: Field = ("duration", LONG, Stretch);
const EVENT_THREAD: Field = ("eventThread", THREAD, Constant);
const STACK: Field = ("stackTrace", STACK_TRACE, Constant);
/// Of waits: which object it is, and what the JDK has no place for.
const ADDRESS: Field = ("address", LONG, Plain);
const OPERATION: Field = ("operation", STRING, Plain);
const OWNER_STACK: Field = ("ownerStackTrace", STACK_TRACE, Constant);
const OWNER_HELD: Field = ("ownerHeld", BOOLEAN, Plain);
const QUEUE: Field = ("queueLength", INT, Plain);

struct Class {
    id: i64,
    name: &'static str,
    parent: &'static str,
    /// For events: what people see.
    label: &'static str,
    category: &'static [&'static str],
    fields: &'static [Field],
}

const fn plain(id: i64, name: &'static str, fields: &'static [Field]) -> Class {
    Class { id, name, parent: "", label: "", category: &[], fields }
}

const fn annotation(id: i64, name: &'static str, fields: &'static [Field]) -> Class {
    Class { id, name, parent: ANNOTATION, label: "", category: &[], fields }
}

const fn event(
    id: i64,
    name: &'static str,
    label: &'static str,
    category: &'static [&'static str],
    fields: &'static [Field],
) -> Class {
    Class { id, name, parent: EVENT, label, category, fields }
}

const PROFILING: &[&str] = &["Java Virtual Machine", "Profiling"];
const APPLICATION: &[&str] = &["Java Application"];
const SAMPLE: &[Field] =
    &[START, ("sampledThread", THREAD, Constant), STACK, ("state", THREAD_STATE, Constant)];

const CLASSES: &[Class] = &[
    plain(BOOLEAN, "boolean", &[]),
    plain(INT, "int", &[]),
    plain(LONG, "long", &[]),
    plain(STRING, "java.lang.String", &[]),
    plain(
        CLASS,
        "java.lang.Class",
        &[
            ("classLoader", CLASS_LOADER, Constant),
            ("name", SYMBOL, Constant),
            ("package", PACKAGE, Constant),
            ("modifiers", INT, Plain),
            ("hidden", BOOLEAN, Plain),
        ],
    ),
    plain(
        THREAD,
        "java.lang.Thread",
        &[
            ("osName", STRING, Plain),
            ("osThreadId", LONG, Plain),
            ("javaName", STRING, Plain),
            ("javaThreadId", LONG, Plain),
            ("virtual", BOOLEAN, Plain),
        ],
    ),
    plain(
        CLASS_LOADER,
        "jdk.types.ClassLoader",
        &[("type", CLASS, Constant), ("name", SYMBOL, Constant)],
    ),
    plain(FRAME_TYPE, "jdk.types.FrameType", &[("description", STRING, Plain)]),
    plain(THREAD_STATE, "jdk.types.ThreadState", &[("name", STRING, Plain)]),
    plain(
        STACK_TRACE,
        "jdk.types.StackTrace",
        &[("truncated", BOOLEAN, Plain), ("frames", STACK_FRAME, Array)],
    ),
    plain(
        STACK_FRAME,
        "jdk.types.StackFrame",
        &[
            ("method", METHOD, Constant),
            ("lineNumber", INT, Plain),
            ("bytecodeIndex", INT, Plain),
            ("type", FRAME_TYPE, Constant),
        ],
    ),
    plain(
        METHOD,
        "jdk.types.Method",
        &[
            ("type", CLASS, Constant),
            ("name", SYMBOL, Constant),
            ("descriptor", SYMBOL, Constant),
            ("modifiers", INT, Plain),
            ("hidden", BOOLEAN, Plain),
        ],
    ),
    plain(
        PACKAGE,
        "jdk.types.Package",
        &[("name", SYMBOL, Constant), ("module", MODULE, Constant), ("exported", BOOLEAN, Plain)],
    ),
    plain(SYMBOL, "jdk.types.Symbol", &[("string", STRING, Plain)]),
    plain(
        MODULE,
        "jdk.types.Module",
        &[
            ("name", SYMBOL, Constant),
            ("version", SYMBOL, Constant),
            ("location", SYMBOL, Constant),
            ("classLoader", CLASS_LOADER, Constant),
        ],
    ),
    plain(
        OLD_OBJECT,
        "jdk.types.OldObject",
        &[("address", LONG, Plain), ("type", CLASS, Constant), ("description", STRING, Plain)],
    ),
    event(EXECUTION_SAMPLE, "jdk.ExecutionSample", "Method Profiling Sample", PROFILING, SAMPLE),
    event(
        NATIVE_METHOD_SAMPLE,
        "jdk.NativeMethodSample",
        "Method Profiling Sample Native",
        PROFILING,
        SAMPLE,
    ),
    event(
        CPU_TIME_SAMPLE,
        "jdk.CPUTimeSample",
        "CPU Time Method Sample",
        PROFILING,
        &[
            START,
            STACK,
            EVENT_THREAD,
            ("failed", BOOLEAN, Plain),
            ("samplingPeriod", LONG, Stretch),
            ("biased", BOOLEAN, Plain),
        ],
    ),
    event(
        ALLOCATION_SAMPLE,
        "jdk.ObjectAllocationSample",
        "Object Allocation Sample",
        APPLICATION,
        &[START, EVENT_THREAD, STACK, ("objectClass", CLASS, Constant), ("weight", LONG, Bytes)],
    ),
    event(
        OLD_OBJECT_SAMPLE,
        "jdk.OldObjectSample",
        "Old Object Sample",
        PROFILING,
        &[
            START,
            EVENT_THREAD,
            STACK,
            ("allocationTime", LONG, Moment),
            ("objectSize", LONG, Bytes),
            ("objectAge", LONG, Stretch),
            ("object", OLD_OBJECT, Constant),
            ("arrayElements", INT, Plain),
        ],
    ),
    event(
        MONITOR_ENTER,
        "jdk.JavaMonitorEnter",
        "Java Monitor Blocked",
        APPLICATION,
        &[
            START,
            DURATION,
            EVENT_THREAD,
            STACK,
            ("monitorClass", CLASS, Constant),
            ("previousOwner", THREAD, Constant),
            ADDRESS,
            OPERATION,
            OWNER_STACK,
            OWNER_HELD,
            QUEUE,
        ],
    ),
    event(
        MONITOR_WAIT,
        "jdk.JavaMonitorWait",
        "Java Monitor Wait",
        APPLICATION,
        &[
            START,
            DURATION,
            EVENT_THREAD,
            STACK,
            ("monitorClass", CLASS, Constant),
            ("notifier", THREAD, Constant),
            ADDRESS,
            OPERATION,
        ],
    ),
    event(
        THREAD_PARK,
        "jdk.ThreadPark",
        "Java Thread Park",
        APPLICATION,
        &[
            START,
            DURATION,
            EVENT_THREAD,
            STACK,
            ("parkedClass", CLASS, Constant),
            ("owner", THREAD, Constant),
            ADDRESS,
            OPERATION,
            OWNER_STACK,
            OWNER_HELD,
            QUEUE,
        ],
    ),
    event(
        THREAD_SLEEP,
        "jdk.ThreadSleep",
        "Java Thread Sleep",
        APPLICATION,
        &[START, DURATION, EVENT_THREAD, STACK, ("time", LONG, Stretch)],
    ),
    event(
        TASK_QUEUED,
        "tare.TaskQueued",
        "Task in the Queue of an Executor",
        APPLICATION,
        &[
            START,
            DURATION,
            EVENT_THREAD,
            STACK,
            ("taskClass", CLASS, Constant),
            ("executor", STRING, Plain),
        ],
    ),
    event(
        JVM_INFORMATION,
        "jdk.JVMInformation",
        "JVM Information",
        &["Java Virtual Machine"],
        &[
            START,
            ("jvmName", STRING, Plain),
            ("jvmVersion", STRING, Plain),
            ("jvmArguments", STRING, Plain),
            ("jvmFlags", STRING, Plain),
            ("javaArguments", STRING, Plain),
            ("pid", LONG, Plain),
        ],
    ),
    event(
        ACTIVE_RECORDING,
        "jdk.ActiveRecording",
        "Flight Recording",
        &["Flight Recorder"],
        &[START, DURATION, ("id", LONG, Plain), ("name", STRING, Plain)],
    ),
    event(
        ACTIVE_SETTING,
        "jdk.ActiveSetting",
        "Recording Setting",
        &["Flight Recorder"],
        &[START, ("id", LONG, Plain), ("name", STRING, Plain), ("value", STRING, Plain)],
    ),
    event(
        OWN_VALUE,
        "tare.Value",
        "Value",
        &["Tare"],
        &[
            START,
            EVENT_THREAD,
            STACK,
            ("series", STRING, Plain),
            ("kind", STRING, Plain),
            ("unit", STRING, Plain),
            ("estimate", STRING, Plain),
            ("value", LONG, Plain),
        ],
    ),
    annotation(LABEL, "jdk.jfr.Label", &[("value", STRING, Plain)]),
    annotation(TIMESTAMP, "jdk.jfr.Timestamp", &[("value", STRING, Plain)]),
    annotation(TIMESPAN, "jdk.jfr.Timespan", &[("value", STRING, Plain)]),
    annotation(DATA_AMOUNT, "jdk.jfr.DataAmount", &[("value", STRING, Plain)]),
    annotation(CONTENT_TYPE, "jdk.jfr.ContentType", &[]),
    annotation(CATEGORY, "jdk.jfr.Category", &[("value", STRING, Array)]),
];

struct Element {
    name: &'static str,
    attributes: Vec<(String, String)>,
    children: Vec<Element>,
}

impl Element {
    fn new(name: &'static str, attributes: &[(&str, &str)], children: Vec<Element>) -> Self {
        let attributes = attributes.iter();
        let attributes = attributes.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Element { name, attributes: attributes.collect(), children }
    }

    fn encode(&self, strings: &mut Strings, out: &mut Encoder) {
        out.int(strings.number(self.name));
        out.int(self.attributes.len() as i32);
        for (key, value) in &self.attributes {
            out.int(strings.number(key));
            out.int(strings.number(value));
        }
        out.int(self.children.len() as i32);
        self.children.iter().for_each(|child| child.encode(strings, out));
    }
}

/// The texts of the metadata, each once.
#[derive(Default)]
struct Strings(Vec<String>);

impl Strings {
    fn number(&mut self, text: &str) -> i32 {
        let known = self.0.iter().position(|known| known == text);
        let number = known.unwrap_or_else(|| {
            self.0.push(text.to_owned());
            self.0.len() - 1
        });
        number as i32
    }
}

fn mark(id: i64, value: &str) -> Element {
    Element::new("annotation", &[("class", &id.to_string()), ("value", value)], Vec::new())
}

fn class_element(class: &Class) -> Element {
    let mut children: Vec<Element> = class.fields.iter().map(field_element).collect();
    if !class.label.is_empty() {
        children.push(mark(LABEL, class.label));
        let id = CATEGORY.to_string();
        let keys: Vec<String> = (0..class.category.len()).map(|n| format!("value-{n}")).collect();
        let mut attributes = vec![("class", id.as_str())];
        attributes.extend(keys.iter().map(String::as_str).zip(class.category.iter().copied()));
        children.push(Element::new("annotation", &attributes, Vec::new()));
    }
    // Without this mark, readers take the number of a moment, a stretch or an amount for a plain
    // one.
    if matches!(class.id, TIMESTAMP | TIMESPAN | DATA_AMOUNT) {
        let id = CONTENT_TYPE.to_string();
        children.push(Element::new("annotation", &[("class", &id)], Vec::new()));
    }
    let id = class.id.to_string();
    let mut attributes = vec![("name", class.name), ("id", id.as_str())];
    // Of a type so marked, the JDK's readers give the one field in place of the whole.
    if matches!(class.id, SYMBOL | FRAME_TYPE | THREAD_STATE) {
        attributes.push(("simpleType", "true"));
    }
    if !class.parent.is_empty() {
        attributes.push(("superType", class.parent));
    }
    Element::new("class", &attributes, children)
}

fn field_element((name, kind, shape): &Field) -> Element {
    let kind = kind.to_string();
    let mut attributes = vec![("name", *name), ("class", kind.as_str())];
    let mut children = Vec::new();
    match shape {
        Plain => {}
        Constant => attributes.push(("constantPool", "true")),
        Array => attributes.push(("dimension", "1")),
        Moment => children.push(mark(TIMESTAMP, "TICKS")),
        Stretch => children.push(mark(TIMESPAN, "TICKS")),
        Bytes => children.push(mark(DATA_AMOUNT, "BYTES")),
    }
    Element::new("field", &attributes, children)
}

/// The metadata event, without its size.
pub fn metadata() -> Encoder {
    let classes = CLASSES.iter().chain(of_jvm::CLASSES).map(class_element).collect();
    let region = Element::new("region", &[("locale", "en_US"), ("gmtOffset", "0")], Vec::new());
    let metadata = Element::new("metadata", &[], classes);
    let root = Element::new("root", &[], vec![metadata, region]);
    let mut strings = Strings::default();
    let mut tree = Encoder::default();
    root.encode(&mut strings, &mut tree);
    let mut out = Encoder::default();
    // Type, start, duration, and the number of this version of the metadata.
    [METADATA_EVENT, 0, 0, 1].into_iter().for_each(|number| out.long(number));
    out.int(strings.0.len() as i32);
    strings.0.iter().for_each(|text| out.text(text));
    out.append(&tree);
    out
}
