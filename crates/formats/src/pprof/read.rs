//! A pprof file as a profile. Tables may stand anywhere in it, so samples are read last.

use super::{FORMAT, series_info};
use crate::error::ReadError;
use crate::names;
use crate::prepared::as_read;
use crate::proto::{Fields, Nested, Value, numbers};
use std::collections::HashMap;
use tare_profile::{
    ContextId, Frame, FrameId, LossKind, Method, MethodKind, Profile, Row, SeriesId, Thread,
    ThreadId,
};

/// Methods inlined at one place. More is no code but an attack: every mention of the place costs
/// that many steps.
const MAX_INLINED: usize = 256;

#[derive(Default)]
struct Function {
    name: u64,
    system_name: u64,
    file: u64,
    line: u64,
}

#[derive(Default)]
struct Location<'a> {
    mapping: u64,
    address: u64,
    /// Function and line, innermost first; still on the wire.
    lines: Vec<Nested<'a>>,
}

/// The tables of a file, as they stand in it.
#[derive(Default)]
struct Tables<'a> {
    strings: Vec<Nested<'a>>,
    types: Vec<(u64, u64)>,
    samples: Vec<Nested<'a>>,
    functions: HashMap<u64, Function>,
    locations: HashMap<u64, Location<'a>>,
    /// From a mapping's number to its file's name.
    mappings: HashMap<u64, u64>,
    comments: Vec<u64>,
    period_type: (u64, u64),
    period: u64,
    started: i64,
    duration: u64,
}

impl<'a> Tables<'a> {
    fn text(&self, index: u64) -> String {
        let text = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        text.map(|text| text.text()).unwrap_or_default()
    }
}

/// Whether a file can be pprof: its first fields are of the right kind and its table of strings,
/// which every such file has, begins with the empty one.
pub fn looks_like(bytes: &[u8]) -> bool {
    let mut fields = Nested { bytes, offset: 0 }.fields(FORMAT);
    let mut seen = 0;
    while let Ok(Some((field, value))) = fields.next() {
        let fits = match field {
            1..=6 | 11 => matches!(value, Value::Bytes(_)),
            7..=10 | 12 | 14 | 15 => matches!(value, Value::Number(_)),
            13 => value != Value::Fixed,
            _ => false,
        };
        if !fits {
            return false;
        }
        if field == 6 {
            return matches!(value, Value::Bytes(text) if text.bytes.is_empty());
        }
        seen += 1;
    }
    // A file that was cut before its strings.
    seen > 2
}

pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    let mut profile = Profile::new();
    let mut tables = Tables::default();
    let mut fields = Nested { bytes, offset: 0 }.fields(FORMAT);
    loop {
        let offset = fields.offset();
        match next_of(&mut fields, &mut tables) {
            Ok(true) => {}
            Ok(false) => break,
            // What stands before a damage is good, if it can be understood without the rest.
            Err(error) if tables.strings.is_empty() || tables.types.is_empty() => {
                return Err(error);
            }
            Err(error) => {
                let lost = (bytes.len() - offset) as u64;
                profile.run.lose(LossKind::Damaged, "bytes", lost, &error.reason());
                break;
            }
        }
    }
    if tables.types.is_empty() || tables.strings.is_empty() {
        return Err(ReadError::malformed(FORMAT, 0, "there are no sample types or no strings"));
    }
    let mut reader = Reader { tables, profile, locations: HashMap::new(), threads: HashMap::new() };
    reader.read_run();
    reader.read_samples();
    Ok(reader.profile)
}

/// Takes one field of the outermost message into the tables; false at the end.
fn next_of<'a>(fields: &mut Fields<'a>, tables: &mut Tables<'a>) -> Result<bool, ReadError> {
    let Some((field, value)) = fields.next()? else { return Ok(false) };
    match (field, value) {
        (1, Value::Bytes(message)) => {
            let [kind, unit] = plain(message, [1, 2])?;
            tables.types.push((kind, unit));
        }
        (2, Value::Bytes(message)) => tables.samples.push(message),
        (3, Value::Bytes(message)) => {
            let [id, file] = plain(message, [1, 5])?;
            tables.mappings.insert(id, file);
        }
        (4, Value::Bytes(message)) => {
            let mut location = Location::default();
            let mut id = 0;
            let mut inner = message.fields(FORMAT);
            while let Some(field) = inner.next()? {
                match field {
                    (1, Value::Number(number)) => id = number,
                    (2, Value::Number(number)) => location.mapping = number,
                    (3, Value::Number(number)) => location.address = number,
                    (4, Value::Bytes(line)) => location.lines.push(line),
                    _ => {}
                }
            }
            tables.locations.insert(id, location);
        }
        (5, Value::Bytes(message)) => {
            let [id, name, system_name, file, line] = plain(message, [1, 2, 3, 4, 5])?;
            tables.functions.insert(id, Function { name, system_name, file, line });
        }
        (6, Value::Bytes(text)) => tables.strings.push(text),
        (9, Value::Number(number)) => tables.started = number as i64,
        (10, Value::Number(number)) => tables.duration = number,
        (11, Value::Bytes(message)) => {
            let [kind, unit] = plain(message, [1, 2])?;
            tables.period_type = (kind, unit);
        }
        (12, Value::Number(number)) => tables.period = number,
        (13, value) => numbers(FORMAT, value, |index| tables.comments.push(index))?,
        _ => {}
    }
    Ok(true)
}

/// The numbers of a message that holds nothing else of interest.
fn plain<const N: usize>(message: Nested<'_>, wanted: [u32; N]) -> Result<[u64; N], ReadError> {
    let mut found = [0; N];
    let mut fields = message.fields(FORMAT);
    while let Some((field, value)) = fields.next()? {
        if let (Value::Number(number), Some(at)) =
            (value, wanted.iter().position(|wanted| *wanted == field))
        {
            found[at] = number;
        }
    }
    Ok(found)
}

struct Reader<'a> {
    tables: Tables<'a>,
    profile: Profile,
    /// The frames of each place that was met, outermost first.
    locations: HashMap<u64, Vec<FrameId>>,
    threads: HashMap<(String, Option<u64>), ThreadId>,
}

impl Reader<'_> {
    fn read_run(&mut self) {
        let run = &mut self.profile.run;
        run.started = Some(self.tables.started).filter(|started| *started != 0);
        run.duration = self.tables.duration;
        for index in &self.tables.comments {
            let comment = self.tables.text(*index);
            match comment.split_once(": ") {
                Some(("tool", text)) => run.tool = text.to_owned(),
                Some(("main class", text)) => run.main_class = text.to_owned(),
                Some(("jdk", text)) => run.jdk = text.to_owned(),
                Some(("vm", text)) => run.vm = text.to_owned(),
                Some(("host", text)) => run.host = text.to_owned(),
                _ => run.options.push(("comment".to_owned(), comment)),
            }
        }
    }

    fn read_samples(&mut self) {
        let (kind, unit) = self.tables.period_type;
        let (period, factor) = series_info(&self.tables.text(kind), &self.tables.text(unit));
        let period_length = self.tables.period.saturating_mul(factor as u64);
        let mut series: Vec<(SeriesId, i64)> = Vec::new();
        for (kind, unit) in &self.tables.types {
            let name = self.tables.text(*kind);
            let (mut info, factor) = series_info(&name, &self.tables.text(*unit));
            if period_length > 0 && info.kind.name() == "samples" {
                info = info.with_period(period_length, period.kind.clone());
            }
            series.push((self.profile.add_series(info), factor));
        }
        let samples = std::mem::take(&mut self.tables.samples);
        for sample in samples {
            let offset = sample.offset;
            if let Err(error) = self.read_sample(sample, &series) {
                let reason = format!("the first at byte {offset}: {}", error.reason());
                let known = self.profile.run.losses.iter_mut();
                match known.into_iter().find(|loss| loss.name == "samples") {
                    Some(loss) => loss.count += 1,
                    None => self.profile.run.lose(LossKind::Damaged, "samples", 1, &reason),
                }
            }
        }
    }

    fn read_sample(
        &mut self,
        sample: Nested<'_>,
        series: &[(SeriesId, i64)],
    ) -> Result<(), ReadError> {
        let (mut locations, mut values) = (Vec::new(), Vec::new());
        let (mut name, mut number) = (String::new(), None);
        let mut fields = sample.fields(FORMAT);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (1, value) => numbers(FORMAT, value, |id| locations.push(id))?,
                (2, value) => numbers(FORMAT, value, |value| values.push(value as i64))?,
                (3, Value::Bytes(label)) => {
                    let [key, text, plain_number] = plain(label, [1, 2, 3])?;
                    match self.tables.text(key).as_str() {
                        "thread" | "thread_name" | "thread name" | "threadName" => {
                            name = self.tables.text(text);
                        }
                        "thread_id" | "tid" | "thread id" | "threadId" => {
                            let text = self.tables.text(text);
                            number = text.parse().ok().or(Some(plain_number).filter(|n| *n > 0));
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        if values.len() != series.len() {
            return Err(ReadError::malformed(FORMAT, sample.offset, "the wrong number of values"));
        }
        let mut context = ContextId::ROOT;
        for id in locations.iter().rev() {
            self.prepare_location(*id, sample.offset)?;
            for frame in &self.locations[id] {
                context = self.profile.contexts.child(context, *frame);
            }
        }
        let context = as_read(&self.profile, context);
        let thread = self.thread(name, number);
        for (value, (id, factor)) in values.iter().zip(series).filter(|(value, _)| **value != 0) {
            let row = Row::new(context, thread, value.saturating_mul(*factor));
            self.profile.series_mut(*id).push(row);
        }
        Ok(())
    }

    fn thread(&mut self, name: String, number: Option<u64>) -> ThreadId {
        if name.is_empty() && number.is_none() {
            return ThreadId::UNKNOWN;
        }
        let profile = &mut self.profile;
        *self.threads.entry((name, number)).or_insert_with_key(|(name, number)| {
            let name = profile.strings.intern(name);
            profile.threads.push(Thread { name, os_id: *number, ..Thread::default() })
        })
    }

    fn prepare_location(&mut self, id: u64, offset: usize) -> Result<(), ReadError> {
        if self.locations.contains_key(&id) {
            return Ok(());
        }
        let Some(location) = self.tables.locations.remove(&id) else {
            return Err(ReadError::malformed(FORMAT, offset, "a place that is not in the file"));
        };
        let module = self.tables.mappings.get(&location.mapping).copied().unwrap_or(0);
        let module = self.tables.text(module);
        let mut frames = Vec::new();
        for line in location.lines.iter().take(MAX_INLINED) {
            let [function, line] = plain(*line, [1, 2])?;
            let method = self.method(function, &module);
            let line = u32::try_from(line).ok().filter(|line| *line > 0);
            frames.push(self.profile.frames.intern(Frame { line, ..Frame::of(method) }));
        }
        if frames.is_empty() {
            let name = match location.address {
                0 => "[unknown]".to_owned(),
                address => format!("{address:#x}"),
            };
            frames.push(names::frame(&mut self.profile, &name));
        }
        frames.reverse();
        self.locations.insert(id, frames);
        Ok(())
    }

    fn method(&mut self, function: u64, module: &str) -> tare_profile::MethodId {
        let none = Function::default();
        let function = self.tables.functions.get(&function).unwrap_or(&none);
        let name = self.tables.text(function.name);
        let system_name = self.tables.text(function.system_name);
        let file = self.tables.text(function.file);
        let line = u32::try_from(function.line).ok().filter(|line| *line > 0);
        let descriptor = system_name.strip_prefix(&name).filter(|rest| rest.starts_with('('));
        let kind = match &system_name {
            _ if descriptor.is_some() => MethodKind::Java,
            text if text.strip_prefix("class ") == Some(&name) => MethodKind::Class,
            text if text.strip_prefix("kernel ") == Some(&name) => MethodKind::Kernel,
            // `main.run` of a Go program is no Java.
            _ if [".go", ".c", ".cc", ".cpp", ".rs", ".py"].iter().any(|e| file.ends_with(e)) => {
                MethodKind::Native
            }
            // Equal names say that the writer had nothing to add; only the shape tells.
            _ => match names::kind_of(&name) {
                MethodKind::Class => MethodKind::Java,
                kind => kind,
            },
        };
        let method = match name.as_str() {
            "" => names::method(&mut self.profile, MethodKind::Special, "[unknown]"),
            name => names::method(&mut self.profile, kind, name),
        };
        let strings = &mut self.profile.strings;
        let method = Method {
            descriptor: strings.intern(descriptor.unwrap_or_default()),
            file: strings.intern(&file),
            module: strings.intern(module),
            line,
            ..method
        };
        self.profile.methods.intern(method)
    }
}
