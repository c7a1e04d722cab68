//! OpenTelemetry's profiles, `opentelemetry.proto.profiles.v1development.ProfilesData`: a
//! dictionary of tables, and one profile per series. Row 0 of every table is the empty one, by its
//! rules. The states of sampled threads are no profiles of their own, which would be added up, but
//! attributes of samples.

use crate::error::WriteError;
use crate::proto::Message;
use crate::sampled::states_of;
use crate::select::{estimate_name, series_name};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use tare_profile::{
    ContextId, MethodId, MethodKind, Profile, Series, SeriesId, SeriesInfo, Strings, ThreadId,
    TimeAxis, Unit, ValueKind,
};

/// The tables that samples name rows of.
struct Dictionary<'p> {
    profile: &'p Profile,
    strings: Strings,
    /// Stacks by context; the root is row 0.
    stacks: HashMap<ContextId, u64>,
    stack_table: Message,
    attributes: HashMap<(&'static str, String), u64>,
    attribute_table: Message,
    threads: HashMap<ThreadId, Vec<u64>>,
}

impl Dictionary<'_> {
    fn text(&mut self, text: &str) -> u64 {
        u64::from(self.strings.intern(text).raw())
    }

    /// A text attribute; a number goes as one.
    fn attribute(&mut self, key: &'static str, value: &str) -> u64 {
        if let Some(row) = self.attributes.get(&(key, value.to_owned())) {
            return *row;
        }
        let mut any = Message::new();
        match value.parse::<i64>().ok().filter(|_| key.ends_with(".id")) {
            Some(number) => any.signed(3, number),
            None => any.text(1, value),
        }
        let mut attribute = Message::new();
        attribute.number(1, self.text(key));
        attribute.message(2, &any);
        self.attribute_table.message(6, &attribute);
        let row = self.attributes.len() as u64 + 1;
        self.attributes.insert((key, value.to_owned()), row);
        row
    }

    fn stack(&mut self, context: ContextId) -> u64 {
        if context == ContextId::ROOT {
            return 0;
        }
        let (profile, next) = (self.profile, self.stacks.len() as u64 + 1);
        *self.stacks.entry(context).or_insert_with(|| {
            let mut stack = Message::new();
            let frames = profile.contexts.frames(context);
            stack.packed(1, frames.map(|frame| u64::from(frame.raw()) + 1));
            self.stack_table.message(7, &stack);
            next
        })
    }

    fn thread(&mut self, id: ThreadId) -> Vec<u64> {
        if id == ThreadId::UNKNOWN {
            return Vec::new();
        }
        if let Some(rows) = self.threads.get(&id) {
            return rows.clone();
        }
        let thread = self.profile.threads.get(id);
        let mut rows = vec![self.attribute("thread.name", &self.profile.thread_name(id))];
        if let Some(number) = thread.os_id.or(thread.java_id) {
            rows.push(self.attribute("thread.id", &number.to_string()));
        }
        self.threads.insert(id, rows.clone());
        rows
    }
}

pub fn write(profile: &Profile, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut dictionary = Dictionary {
        profile,
        strings: Strings::default(),
        stacks: HashMap::new(),
        stack_table: Message::new(),
        attributes: HashMap::new(),
        attribute_table: Message::new(),
        threads: HashMap::new(),
    };
    let mut scope = Message::new();
    let mut about = Message::new();
    about.text(1, "tare");
    about.text(2, env!("CARGO_PKG_VERSION"));
    scope.message(1, &about);
    // The states of sampled threads are in the samples of the whole.
    let states: Vec<SeriesId> =
        profile.all_series().flat_map(|(id, _)| states_of(profile, id)).collect();
    let written = |(id, series): &(SeriesId, &Series)| !series.is_empty() && !states.contains(id);
    for (id, _) in profile.all_series().filter(written) {
        scope.message(2, &write_series(id, &mut dictionary));
    }
    let mut resource_profiles = Message::new();
    resource_profiles.message(1, &resource(profile));
    resource_profiles.message(2, &scope);
    drop(scope);
    // Stacks may be many, and are not copied together to be written.
    let tables = write_dictionary(&mut dictionary);
    for (field, parts) in [(1, &[&resource_profiles][..]), (2, &[&tables, &dictionary.stack_table])]
    {
        let size = parts.iter().map(|part| part.as_bytes().len()).sum::<usize>();
        let mut head = Message::new();
        head.begin(field, size as u64);
        out.write_all(head.as_bytes())?;
        for part in parts {
            out.write_all(part.as_bytes())?;
        }
    }
    Ok(())
}

fn resource(profile: &Profile) -> Message {
    let run = &profile.run;
    let facts = [
        ("service.name", run.main_class.clone()),
        ("host.name", run.host.clone()),
        ("os.description", run.os.clone()),
        ("process.command_line", run.command_line.join(" ")),
        ("process.runtime.name", run.vm.clone()),
        ("process.runtime.version", run.jdk.clone()),
        ("process.pid", run.pid.map(|pid| pid.to_string()).unwrap_or_default()),
    ];
    let mut resource = Message::new();
    for (key, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        let mut any = Message::new();
        match value.parse::<u64>().ok().filter(|_| key == "process.pid") {
            Some(pid) => any.number(3, pid),
            None => any.text(1, &value),
        }
        let mut pair = Message::new();
        pair.text(1, key);
        pair.message(2, &any);
        resource.message(1, &pair);
    }
    resource
}

fn value_type(kind: &ValueKind, name: &str, dictionary: &mut Dictionary<'_>) -> Message {
    let unit = match kind.unit() {
        Unit::Count => "count",
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
    };
    let mut message = Message::new();
    message.number(1, dictionary.text(name));
    message.number(2, dictionary.text(unit));
    message
}

/// The name of what is counted. Two profiles of one name would be added up by whoever receives
/// them, so their engines tell them apart.
fn type_name(profile: &Profile, info: &SeriesInfo) -> String {
    let name = match estimate_name(info.estimate) {
        "" => info.kind.name().to_owned(),
        estimate => format!("{}-{estimate}", info.kind.name()),
    };
    let same = |other: &SeriesInfo| other.kind == info.kind && other.estimate == info.estimate;
    let others = profile.all_series().filter(|(id, other)| {
        let of_it = same(other.info()) && other.info().name != info.name && !other.is_empty();
        // Not its own states.
        of_it && !profile.all_series().any(|(whole, _)| states_of(profile, whole).contains(id))
    });
    if others.count() > 0 { format!("{}-{name}", info.name) } else { name }
}

fn write_series(id: SeriesId, dictionary: &mut Dictionary<'_>) -> Message {
    let profile = dictionary.profile;
    let series = profile.series(id);
    let run = &profile.run;
    let (started, duration) = (run.started.unwrap_or(0), run.duration);
    let info = series.info();
    // Times are absolute here, so without a start there are none.
    let timed = info.time == TimeAxis::Exact && started > 0;
    // By the state of the thread, where that is known: a sample has it as an attribute.
    let states = states_of(profile, id);
    let parts: Vec<(Option<u64>, &Series)> = match states.is_empty() {
        true => vec![(None, series)],
        false => states
            .into_iter()
            .map(|part| {
                let part = profile.series(part);
                (Some(dictionary.attribute("thread.state", &part.info().name)), part)
            })
            .collect(),
    };
    let mut groups: BTreeMap<_, Vec<(u64, i64)>> = BTreeMap::new();
    let rows = parts.iter().flat_map(|(state, part)| part.rows().map(|row| (*state, row)));
    for (state, row) in rows.filter(|(_, row)| row.value != 0) {
        let values = groups.entry((row.context, row.thread, state)).or_default();
        match values.last_mut().filter(|_| !timed) {
            Some(last) => last.1 = last.1.saturating_add(row.value),
            None => values.push((row.time, row.value)),
        }
    }
    let mut message = Message::new();
    let name = type_name(profile, info);
    message.message(1, &value_type(&info.kind, &name, dictionary));
    for ((context, thread, state), values) in groups {
        let mut sample = Message::new();
        sample.number(1, dictionary.stack(context));
        sample.packed(2, dictionary.thread(thread).into_iter().chain(state));
        sample.packed(4, values.iter().map(|(_, value)| *value as u64));
        if timed {
            let moments = values.iter().map(|(time, _)| (started as u64).saturating_add(*time));
            let bytes: Vec<u8> = moments.flat_map(u64::to_le_bytes).collect();
            sample.bytes(5, &bytes);
        }
        message.message(2, &sample);
    }
    message.fixed64(3, u64::try_from(started).unwrap_or(0));
    message.number(4, duration);
    if let Some(kind) = info.period_kind.as_ref().filter(|_| info.period > 0) {
        message.message(5, &value_type(kind, kind.name(), dictionary));
        message.number(6, info.period);
    }
    message.bytes(7, &identity(series, profile));
    let engine = dictionary.attribute("tare.series", &series_name(info));
    message.packed(11, [engine]);
    message
}

/// Sixteen bytes that tell this profile from others: a hash of what it says.
fn identity(series: &Series, profile: &Profile) -> [u8; 16] {
    let mut out = [0; 16];
    for (half, place) in out.chunks_exact_mut(8).enumerate() {
        let mut hasher = DefaultHasher::new();
        let run = &profile.run;
        (half, &run.host, run.pid, run.started, run.duration, &run.command_line).hash(&mut hasher);
        (series_name(series.info()), series.len(), series.total()).hash(&mut hasher);
        place.copy_from_slice(&(hasher.finish() | 1).to_le_bytes());
    }
    out
}

/// All tables but that of stacks, of which only the first row is in it.
fn write_dictionary(dictionary: &mut Dictionary<'_>) -> Message {
    let profile = dictionary.profile;
    let empty = Message::new();
    let mut out = Message::new();
    // One mapping for each module; the empty one is row 0 and stands for "not known".
    let mut mappings = HashMap::from([(tare_profile::StringId::EMPTY, 0_u64)]);
    out.message(1, &empty);
    for (_, method) in profile.methods.iter() {
        let next = mappings.len() as u64;
        if let std::collections::hash_map::Entry::Vacant(entry) = mappings.entry(method.module) {
            entry.insert(next);
            let mut mapping = Message::new();
            mapping.number(4, dictionary.text(profile.strings.get(method.module)));
            out.message(1, &mapping);
        }
    }
    out.message(2, &empty);
    for (_, frame) in profile.frames.iter() {
        let method = profile.methods.get(frame.method);
        let mut line = Message::new();
        line.number(1, u64::from(frame.method.raw()) + 1);
        line.number(2, frame.line.map_or(0, u64::from));
        let mut location = Message::new();
        location.number(1, mappings[&method.module]);
        location.message(3, &line);
        let kind = match method.kind {
            MethodKind::Java | MethodKind::Class => "jvm",
            MethodKind::Kernel => "kernel",
            MethodKind::Native => "native",
            MethodKind::Special => "",
        };
        if !kind.is_empty() {
            location.packed(4, [dictionary.attribute("profile.frame.type", kind)]);
        }
        out.message(2, &location);
    }
    out.message(3, &empty);
    for (id, method) in profile.methods.iter() {
        let mut function = Message::new();
        function.number(1, dictionary.text(&profile.method_name(id)));
        function.number(2, dictionary.text(&system_name(profile, id)));
        function.number(3, dictionary.text(profile.strings.get(method.file)));
        function.number(4, method.line.map_or(0, u64::from));
        out.message(3, &function);
    }
    out.message(4, &empty);
    for (_, text) in dictionary.strings.iter() {
        out.text(5, text);
    }
    out.message(6, &empty);
    out.append(&dictionary.attribute_table);
    out.message(7, &empty);
    out
}

fn system_name(profile: &Profile, id: MethodId) -> String {
    let descriptor = profile.strings.get(profile.methods.get(id).descriptor);
    format!("{}{descriptor}", profile.method_name(id))
}
