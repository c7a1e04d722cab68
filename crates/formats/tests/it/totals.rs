//! Totals survive: whatever the format, the values that it holds add up to those of the profile.

use crate::support::{export, profile};
use serde_json::Value;
use std::collections::HashMap;
use tare_formats::{Format, Options, default_series, series_name};
use tare_profile::{Profile, SeriesId};

const SEEDS: u64 = 25;

/// The total of each series, by its name.
fn expected(profile: &Profile) -> HashMap<String, i64> {
    profile.all_series().map(|(_, s)| (series_name(s.info()), s.total())).collect()
}

fn json(profile: &Profile, format: Format) -> Value {
    serde_json::from_slice(&export(profile, format, Options::default())).unwrap()
}

fn sum(numbers: &Value) -> i64 {
    numbers.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).sum()
}

#[test]
fn collapsed() {
    for seed in 0..SEEDS {
        let profile = profile(seed);
        for (id, series) in profile.all_series() {
            let options = Options { series: Some(id), ..Options::default() };
            let text = String::from_utf8(export(&profile, Format::Collapsed, options)).unwrap();
            let values = text.lines().map(|line| line.rsplit_once(' ').unwrap().1);
            let total: i64 = values.map(|value| value.parse::<i64>().unwrap()).sum();
            assert_eq!(total, series.total());
        }
    }
}

#[test]
fn speedscope() {
    for seed in 0..SEEDS {
        let profile = profile(seed);
        let file = json(&profile, Format::Speedscope);
        let mut found: HashMap<String, i64> = HashMap::new();
        for one in file["profiles"].as_array().unwrap() {
            let name = one["name"].as_str().unwrap().trim_end_matches(" (no times)");
            let series = name.rsplit_once(" · ").unwrap().1;
            let total = sum(&one["weights"]);
            assert_eq!(one["endValue"], total);
            assert_eq!(
                one["samples"].as_array().unwrap().len(),
                one["weights"].as_array().unwrap().len()
            );
            *found.entry(series.to_owned()).or_default() += total;
            let frames = file["shared"]["frames"].as_array().unwrap().len() as u64;
            let samples = one["samples"].as_array().unwrap().iter();
            assert!(
                samples.flat_map(|s| s.as_array().unwrap()).all(|f| f.as_u64().unwrap() < frames)
            );
        }
        assert_eq!(found, expected(&profile), "seed {seed}");
    }
}

#[test]
fn firefox() {
    for seed in 0..SEEDS {
        let profile = profile(seed);
        let file = json(&profile, Format::Firefox);
        let expected = expected(&profile);
        let threads = file["threads"].as_array().unwrap();
        let samples: i64 = threads.iter().map(|thread| sum(&thread["samples"]["weight"])).sum();
        let allocated = threads.iter().filter(|thread| !thread["nativeAllocations"].is_null());
        let allocated: i64 = allocated.map(|t| sum(&t["nativeAllocations"]["weight"])).sum();
        assert_eq!(samples, expected["cpu:samples"]);
        assert_eq!(allocated, expected["alloc:allocated-bytes"]);
        check_tables(&file);
    }
}

/// Every column of a table has the length that the table says, and every index is in its table.
fn check_tables(file: &Value) {
    let length = |table: &Value| table["length"].as_u64().unwrap();
    let shared = &file["shared"];
    let tables = ["stackTable", "frameTable", "funcTable", "sources"].map(|name| &shared[name]);
    let threads = file["threads"].as_array().unwrap().iter();
    let per_thread = threads.flat_map(|thread| [&thread["samples"], &thread["markers"]]);
    for table in tables.into_iter().chain(per_thread) {
        for (name, column) in table.as_object().unwrap() {
            if let Some(column) = column.as_array() {
                assert_eq!(column.len() as u64, length(table), "{name}");
            }
        }
    }
    let strings = shared["stringArray"].as_array().unwrap().len() as u64;
    let within = |column: &Value, limit: u64| {
        let numbers = column.as_array().unwrap().iter().filter_map(Value::as_u64);
        numbers.for_each(|number| assert!(number < limit, "{number} of {limit}"));
    };
    within(&shared["stackTable"]["frame"], length(&shared["frameTable"]));
    within(&shared["frameTable"]["func"], length(&shared["funcTable"]));
    within(&shared["funcTable"]["name"], strings);
    within(&shared["funcTable"]["source"], length(&shared["sources"]));
    for (row, prefix) in shared["stackTable"]["prefix"].as_array().unwrap().iter().enumerate() {
        assert!(prefix.as_u64().is_none_or(|prefix| prefix < row as u64));
    }
    for thread in file["threads"].as_array().unwrap() {
        within(&thread["samples"]["stack"], length(&shared["stackTable"]));
        within(&thread["markers"]["name"], strings);
    }
}

#[test]
fn callgrind() {
    for seed in 0..SEEDS {
        let profile = profile(seed);
        for (id, series) in profile.all_series() {
            let options = Options { series: Some(id), ..Options::default() };
            let text = String::from_utf8(export(&profile, Format::Callgrind, options)).unwrap();
            let (mut own, mut after_call) = (0, false);
            for line in text.lines() {
                let cost = line.split_once(' ').filter(|(at, _)| at.parse::<u32>().is_ok());
                match cost {
                    Some((_, cost)) if !after_call => own += cost.parse::<i64>().unwrap(),
                    _ => {}
                }
                after_call = line.starts_with("calls=");
            }
            assert_eq!(own, series.total());
            assert!(text.contains(&format!("\nsummary: {own}\n")));
        }
    }
}

#[test]
fn a_recursive_call_costs_callgrind_no_more_than_the_whole() {
    let profile = tare_formats::open_bytes(b"A.a;B.b;A.a;B.b 5\nA.a;B.b 2\n").unwrap();
    let text = String::from_utf8(export(&profile, Format::Callgrind, Options::default())).unwrap();
    let costs: Vec<&str> = text
        .lines()
        .zip(text.lines().skip(1))
        .filter(|(a, _)| a.starts_with("calls="))
        .map(|(_, b)| b)
        .collect();
    assert_eq!(costs, ["0 7", "0 5"], "A calls B for 7 of 7, B calls A for 5\n{text}");
}

#[test]
fn html() {
    for seed in 0..SEEDS {
        let profile = profile(seed);
        let page = String::from_utf8(export(&profile, Format::Html, Options::default())).unwrap();
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let data: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
        let mut found = HashMap::new();
        for series in data["series"].as_array().unwrap() {
            let mut total = 0;
            for group in series["groups"].as_array().unwrap() {
                let numbers = numbers(group["values"].as_str().unwrap());
                let values: i64 = numbers.iter().skip(1).step_by(2).sum();
                let last: i64 = numbers.iter().step_by(2).sum();
                assert_eq!(values, group["total"].as_i64().unwrap());
                assert!(last < data["count"].as_i64().unwrap());
                total += values;
            }
            found.insert(series["name"].as_str().unwrap().to_owned(), total);
        }
        assert_eq!(found, expected(&profile), "seed {seed}");
        let nodes = numbers(data["nodes"].as_str().unwrap());
        assert_eq!(nodes.len() as i64, 2 * (data["count"].as_i64().unwrap() - 1));
        let first = data["series"][0]["name"].as_str().unwrap();
        let default = default_series(&profile).unwrap();
        assert_eq!(first, series_name(profile.series(default).info()));
    }
}

/// What the page's program does: base64, then seven bits per byte.
fn numbers(text: &str) -> Vec<i64> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let (mut out, mut value, mut shift) = (Vec::new(), 0_i64, 0);
    for four in text.as_bytes().chunks(4) {
        let bits = four.iter().fold(0_u32, |bits, c| bits << 6 | u32::from(digit(*c) & 63));
        let good = four.iter().filter(|c| **c != b'=').count() - 1;
        for byte in bits.to_be_bytes()[1..].iter().take(good) {
            value |= i64::from(byte & 127) << shift;
            shift += 7;
            if *byte < 128 {
                out.push(value);
                (value, shift) = (0, 0);
            }
        }
    }
    out
}

#[test]
fn chrome_draws_every_sample_of_every_thread() {
    for seed in 0..SEEDS {
        let profile = profile(seed);
        let file = json(&profile, Format::Chrome);
        let events = file["traceEvents"].as_array().unwrap();
        let slices: Vec<&Value> =
            events.iter().filter(|e| e["ph"] == "X" && e["cat"] == "cpu:samples").collect();
        let series = profile.series(SeriesId::new(0));
        for row in series.rows() {
            let time = row.time as f64 / 1000.0;
            let covers = |slice: &&&Value| {
                let start = slice["ts"].as_f64().unwrap();
                let end = start + slice["dur"].as_f64().unwrap();
                slice["tid"] == row.thread.raw() && start <= time + 0.001 && time <= end
            };
            let depth = profile.contexts.depth(row.context);
            assert!(slices.iter().filter(covers).count() >= depth, "seed {seed}, time {time}");
        }
        let drawn = |is_one: &dyn Fn(&Value) -> bool| {
            events.iter().filter(|e| is_one(e) && e["args"]["class"].is_string()).count()
        };
        let recorded = |kind: &str| {
            let tables = profile.all_events().filter(|(_, table)| table.kind().name == kind);
            tables.map(|(_, table)| table.len()).sum::<usize>()
        };
        assert_eq!(drawn(&|e| e["cat"] == "locks"), recorded("lock"), "seed {seed}");
        assert_eq!(drawn(&|e| e["name"] == "task"), recorded("task"), "seed {seed}");
    }
}

/// What the description of the trace event format asks for, and Perfetto's importer with it: the
/// fields of each phase, and slices of a thread that lie inside each other or apart.
#[test]
fn chrome_events_are_as_the_format_describes_them() {
    let nanos = |value: &Value| (value.as_f64().expect("a number") * 1000.0).round() as i64;
    for seed in 0..SEEDS {
        let file = json(&profile(seed), Format::Chrome);
        assert!(matches!(file["displayTimeUnit"].as_str(), Some("ms" | "ns")));
        let mut slices: HashMap<u64, Vec<(i64, i64)>> = HashMap::new();
        let mut arrows: HashMap<u64, i64> = HashMap::new();
        for event in file["traceEvents"].as_array().unwrap() {
            let thread = event["tid"].as_u64().expect("a thread");
            assert!(event["name"].is_string() && event["pid"].is_u64(), "{event}");
            match event["ph"].as_str().expect("a phase") {
                "M" => {
                    let known = ["process_name", "thread_name"];
                    assert!(known.contains(&event["name"].as_str().unwrap()), "{event}");
                    assert!(event["args"]["name"].is_string(), "{event}");
                }
                "X" => {
                    let (start, length) = (nanos(&event["ts"]), nanos(&event["dur"]));
                    assert!(start >= 0 && length >= 0 && event["cat"].is_string(), "{event}");
                    // Events lie on the thread beside its stacks, and may cross them.
                    let owner = event["args"]["waits"].is_u64();
                    if event["cat"] == "cpu:samples" || owner {
                        slices.entry(thread).or_default().push((start, start + length));
                    }
                }
                "i" | "I" => {
                    assert!(nanos(&event["ts"]) >= 0, "{event}");
                    assert!(matches!(event["s"].as_str(), None | Some("g" | "p" | "t")), "{event}");
                }
                // Arrows from waits to the owners of locks.
                "s" | "f" => {
                    assert!(nanos(&event["ts"]) >= 0 && event["id"].is_u64(), "{event}");
                    let ends = event["ph"] == "f";
                    assert_eq!(ends, event["bp"] == "e", "{event}");
                    *arrows.entry(event["id"].as_u64().unwrap()).or_default() +=
                        if ends { -1 } else { 1 };
                }
                phase => panic!("{phase:?} is no phase that we write"),
            }
        }
        assert!(arrows.values().all(|ends| *ends == 0), "seed {seed}: {arrows:?}");
        for mut slices in slices.into_values() {
            slices.sort_by_key(|(start, end)| (*start, -*end));
            let mut open: Vec<i64> = Vec::new();
            for (start, end) in slices {
                open.retain(|outer| *outer > start);
                assert!(open.iter().all(|outer| end <= *outer), "seed {seed}: {start} to {end}");
                open.push(end);
            }
        }
    }
}

#[test]
fn otlp() {
    for seed in 0..SEEDS {
        let profile = profile(seed);
        let bytes = export(&profile, Format::Otlp, Options::default());
        let mut totals: Vec<i64> = Vec::new();
        let mut strings = Vec::new();
        walk(&bytes, &mut |path, field| match (path, field) {
            ([1, 2], Field::Message(2)) => totals.push(0),
            ([1, 2, 2, 2], Field::Bytes(4, bytes)) => {
                *totals.last_mut().unwrap() += varints(bytes).iter().sum::<i64>();
            }
            ([2], Field::Bytes(5, text)) => strings.push(text.to_vec()),
            _ => {}
        });
        let expected: Vec<i64> = profile.all_series().map(|(_, series)| series.total()).collect();
        assert_eq!(totals, expected, "seed {seed}");
        assert!(strings[0].is_empty() && strings.len() > 5);
    }
}

/// The profiles of an OTLP file: the name of what each counts, its total, and the texts of the
/// attributes of its samples.
pub fn otlp_profiles(bytes: &[u8]) -> Vec<(&str, i64, Vec<&str>)> {
    let (mut strings, mut attributes): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    // Numbers of texts and of attributes, until the dictionary is known, which stands last.
    let mut profiles: Vec<(u64, i64, Vec<i64>)> = Vec::new();
    walk(bytes, &mut |path, field| match (path, field) {
        ([1, 2], Field::Message(2)) => profiles.push((0, 0, Vec::new())),
        ([1, 2, 2], Field::Bytes(1, kind)) => {
            let mut at = 1;
            profiles.last_mut().unwrap().0 = varint(kind, &mut at);
        }
        ([1, 2, 2, 2], Field::Bytes(2, numbers)) => {
            profiles.last_mut().unwrap().2.extend(varints(numbers));
        }
        ([1, 2, 2, 2], Field::Bytes(4, values)) => {
            profiles.last_mut().unwrap().1 += varints(values).iter().sum::<i64>();
        }
        ([2], Field::Bytes(5, text)) => strings.push(std::str::from_utf8(text).unwrap()),
        ([2], Field::Bytes(6, attribute)) => {
            // A key's number, and a value that is a text, or something else.
            let text =
                attribute.windows(2).position(|two| two == [0x12, attribute.len() as u8 - 4]);
            let text = text.map(|at| &attribute[at + 4..]);
            attributes.push(text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or(""));
        }
        _ => {}
    });
    let named = profiles.into_iter().map(|(kind, total, mut numbers)| {
        numbers.sort_unstable();
        numbers.dedup();
        let texts = numbers.into_iter().map(|number| attributes[number as usize]);
        (strings[kind as usize], total, texts.collect())
    });
    named.collect()
}

enum Field<'a> {
    /// A nested message begins.
    Message(u64),
    Bytes(u64, &'a [u8]),
}

/// Goes through the messages of OTLP that lead to samples: data, resource, scope, profile, sample.
fn walk<'a>(bytes: &'a [u8], see: &mut impl FnMut(&[u64], Field<'a>)) {
    fn inner<'a>(path: &mut Vec<u64>, bytes: &'a [u8], see: &mut impl FnMut(&[u64], Field<'a>)) {
        const NESTED: [&[u64]; 5] = [&[1], &[1, 2], &[1, 2, 2], &[1, 2, 2, 2], &[2]];
        let mut at = 0;
        while at < bytes.len() {
            let key = varint(bytes, &mut at);
            match key & 7 {
                0 => drop(varint(bytes, &mut at)),
                1 => at += 8,
                2 => {
                    let length = varint(bytes, &mut at) as usize;
                    let content = &bytes[at..at + length];
                    at += length;
                    path.push(key >> 3);
                    if NESTED.contains(&&path[..]) {
                        see(&path[..path.len() - 1], Field::Message(key >> 3));
                        inner(path, content, see);
                    } else {
                        see(&path[..path.len() - 1], Field::Bytes(key >> 3, content));
                    }
                    path.pop();
                }
                other => panic!("wire type {other}"),
            }
        }
    }
    inner(&mut Vec::new(), bytes, see);
}

fn varint(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            return value;
        }
    }
}

fn varints(bytes: &[u8]) -> Vec<i64> {
    let mut at = 0;
    let mut out = Vec::new();
    while at < bytes.len() {
        out.push(varint(bytes, &mut at) as i64);
    }
    out
}
