//! Collapsed stacks: one line per stack, outermost frame first, as `a;b;c 12`.
//!
//! The format holds names and one value. A first frame such as `[main tid=42]`, as async-profiler's
//! `-t` writes it, is the thread.

use crate::error::{ReadError, WriteError};
use crate::merged::{self, Labels, Merged};
use crate::names;
use crate::prepared::NO_STACK;
use std::collections::HashMap;
use std::io::Write;
use tare_profile::{
    FrameId, LossKind, MethodKind, Profile, Row, SeriesId, SeriesInfo, Thread, ThreadId, ValueKind,
};

/// More frames than this are no stack. The JVM's own limit is far below.
const MAX_DEPTH: usize = 100_000;

/// Writes one series; with `threads`, each stack begins with its thread.
pub fn write(
    profile: &Profile,
    series: SeriesId,
    threads: bool,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let series = profile.series(series);
    let mut labels = Labels::default();
    let of_frames = labels.of_frames(profile);
    let mut merged = Merged::default();
    let node_of = merged.add(profile, &of_frames, &merged::used(profile, [series]));
    let texts: Vec<String> =
        labels.rows.iter().map(|label| text(&label.text, label.kind)).collect();
    let mut sums = merged::sums(series, &node_of);
    if !threads {
        // One thread's rows follow another's; without threads, equal stacks become one.
        sums.iter_mut().for_each(|(thread, _, _)| *thread = ThreadId::UNKNOWN);
        sums.sort_unstable();
        sums.dedup_by(|next, kept| {
            let same = next.1 == kept.1;
            if same {
                kept.2 = kept.2.saturating_add(next.2);
            }
            same
        });
        sums.retain(|(_, _, value)| *value != 0);
    }
    let mut path = Vec::new();
    let mut line = String::new();
    for (thread, node, value) in sums {
        line.clear();
        if thread != ThreadId::UNKNOWN {
            line.push_str(&thread_frame(profile, thread));
            line.push(';');
        }
        merged::path(&merged.nodes, node, &mut path);
        for label in &path {
            line.push_str(&texts[*label as usize]);
            line.push(';');
        }
        line.pop();
        writeln!(out, "{line} {value}")?;
    }
    Ok(())
}

fn thread_frame(profile: &Profile, id: ThreadId) -> String {
    let thread = profile.threads.get(id);
    let number = thread.os_id.or(thread.java_id).unwrap_or(u64::from(id.raw()));
    clean(&format!("[{} tid={number}]", profile.thread_name(id)))
}

fn text(name: &str, kind: MethodKind) -> String {
    match kind {
        MethodKind::Kernel => clean(name) + "_[k]",
        _ => clean(name),
    }
}

/// Without the characters that the format itself uses.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            ';' => ',',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}

/// Whether the beginning of a file looks like collapsed stacks.
pub fn looks_like(bytes: &[u8]) -> bool {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !is_blank(line)).take(20);
    // The last line of the beginning may be cut.
    let lines: Vec<&[u8]> = lines.collect();
    lines.first().is_some_and(|line| split(line).is_some())
}

/// Whether a file that begins like this is read as collapsed stacks and as nothing else.
pub fn is_read_first(bytes: &[u8]) -> bool {
    !crate::jfr::looks_like(bytes) && looks_like(bytes)
}

pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    let mut reader = Reader::default();
    bytes.split(|&byte| byte == b'\n').for_each(|line| reader.line(line));
    reader.finish()
}

/// Reads line by line.
pub struct Reader {
    profile: Profile,
    series: SeriesId,
    frames: HashMap<Vec<u8>, FrameId>,
    threads: HashMap<(String, u64), ThreadId>,
    /// Bytes of the names of frames.
    names: usize,
    good: u64,
    bad: u64,
}

impl Default for Reader {
    fn default() -> Self {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("collapsed", ValueKind::Samples));
        let (frames, threads) = (HashMap::new(), HashMap::new());
        Reader { profile, series, frames, threads, names: 0, good: 0, bad: 0 }
    }
}

impl Reader {
    /// Bytes that are held, about.
    pub fn memory(&self) -> u64 {
        (self.profile.memory() + self.names) as u64
    }

    pub fn line(&mut self, line: &[u8]) {
        if is_blank(line) {
            return;
        }
        let Some((stack, value)) = split(line) else {
            self.bad += 1;
            return;
        };
        self.good += 1;
        let profile = &mut self.profile;
        let mut thread = ThreadId::UNKNOWN;
        let mut context = tare_profile::ContextId::ROOT;
        for (depth, text) in stack.split(|&byte| byte == b';').enumerate() {
            if depth == 0
                && let Some(known) = as_thread(text)
            {
                thread = *self.threads.entry(known).or_insert_with_key(|(name, number)| {
                    let name = profile.strings.intern(name);
                    let os_id = Some(*number);
                    profile.threads.push(Thread { name, os_id, ..Thread::default() })
                });
                continue;
            }
            if depth == MAX_DEPTH {
                profile.run.lose(LossKind::Folded, "frames", 1, "a line of too many frames");
                break;
            }
            if text == NO_STACK.as_bytes() || text.is_empty() {
                continue;
            }
            let frame = match self.frames.get(text) {
                Some(frame) => *frame,
                None => {
                    let frame = names::frame(profile, &String::from_utf8_lossy(text));
                    self.frames.insert(text.to_vec(), frame);
                    self.names += text.len();
                    frame
                }
            };
            context = profile.contexts.child(context, frame);
        }
        profile.series_mut(self.series).push(Row::new(context, thread, value));
    }

    pub fn finish(mut self) -> Result<Profile, ReadError> {
        if self.good == 0 {
            return Err(ReadError::malformed("collapsed", 0, "no line is a stack and a number"));
        }
        if self.bad > 0 {
            let reason = "not a stack and a number";
            self.profile.run.lose(LossKind::Damaged, "lines", self.bad, reason);
        }
        Ok(self.profile)
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace) || line.starts_with(b"#")
}

/// The stack and the value of a line.
fn split(line: &[u8]) -> Option<(&[u8], i64)> {
    let line = line.trim_ascii_end();
    let space = line.iter().rposition(|&byte| byte == b' ' || byte == b'\t')?;
    let stack = line[..space].trim_ascii_end();
    let number = std::str::from_utf8(&line[space + 1..]).ok()?;
    // Some tools write fractions.
    let value = number.parse::<i64>().ok().or_else(|| {
        let number = number.parse::<f64>().ok().filter(|number| number.abs() < 9e18)?;
        number.is_finite().then_some(number.round() as i64)
    })?;
    let text = stack.iter().all(|byte| *byte >= b' ' || *byte == b'\t');
    (!stack.is_empty() && text).then_some((stack, value))
}

/// `[main tid=42]`: the thread's name and number.
fn as_thread(text: &[u8]) -> Option<(String, u64)> {
    let text = std::str::from_utf8(text).ok()?;
    let (name, number) = text.strip_prefix('[')?.strip_suffix(']')?.rsplit_once("tid=")?;
    Some((name.trim_end().to_owned(), number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str, threads: bool) -> String {
        let profile = read(text.as_bytes()).unwrap();
        profile.check().unwrap();
        let mut out = Vec::new();
        write(&profile, SeriesId::new(0), threads, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn stacks_come_back() {
        let text = "[main tid=7];a.B.c;a.B.d 3\n[main tid=7];a.B.c;memcpy;do_x_[k] 4\n";
        assert_eq!(again(text, true), text);
        assert_eq!(again(text, false), "a.B.c;a.B.d 3\na.B.c;memcpy;do_x_[k] 4\n");
    }

    #[test]
    fn equal_stacks_add_up_and_compilation_does_not_tell_them_apart() {
        assert_eq!(
            again("a/B.c_[j] 1\na/B.c_[0] 2\n\n# note\n[x tid=1];a/B.c 4\n", false),
            "a.B.c 7\n"
        );
    }

    #[test]
    fn bad_lines_are_counted_and_a_file_of_them_refused() {
        let profile = read(b"a;b 1\nnonsense\nb c x\n").unwrap();
        assert_eq!(profile.run.losses[0].count, 2);
        assert!(read(b"nonsense\n").is_err());
        assert!(read(b"").is_err());
        assert!(looks_like(b"a;b 1\n") && looks_like(b"x 1.5\n"));
        assert!(!looks_like(b"\x1f\x8b 1\n") && !looks_like(b"hello\n"));
    }

    #[test]
    fn names_cannot_break_the_format() {
        assert_eq!(clean("a;b\nc"), "a,b c");
    }
}
