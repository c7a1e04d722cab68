//! Findings on allocation and on what lives: each names a place and what to do about it. Noise
//! brings none about: every one needs samples enough to be sure of its share.

use super::{Finding, FindingKind, percent};
use crate::memory::{Ages, Memory, Part, Site, SiteBy};
use std::collections::HashMap;
use tare_profile::{EventKind, FieldValue, Profile};

/// A share of what is allocated that is worth a sentence.
const LARGE: f64 = 0.1;
/// Samples that such a share needs.
const SAMPLES: u64 = 30;
/// A share of what lives that makes a leak of what grows.
const HELD: f64 = 0.4;
/// Samples of what lives that a leak needs.
const LIVE_SAMPLES: u64 = 20;
/// Arrays that are made when something is first put into a collection are no larger.
const FIRST_ARRAY: i64 = 128;
/// Humongous objects: a share that is worth a sentence, and how many samples it needs.
const HUMONGOUS: f64 = 0.05;
const HUMONGOUS_SAMPLES: u64 = 10;
/// Half of the region that is assumed where nobody knows it.
const HALF_A_REGION: u64 = 1 << 20;

/// The findings on memory, of which `listed` says whether the lists of sites are on the page. On
/// pages of other values only a leak is worth a word.
pub fn memory_findings(profile: &Profile, memory: &Memory, listed: bool) -> Vec<Finding> {
    let finding = |kind| move |text| Finding { kind, text };
    if !listed {
        return leak(memory).map(finding(FindingKind::Dominates)).into_iter().collect();
    }
    let told = [
        leak(memory),
        humongous(profile, memory),
        boxing(memory),
        growing(memory),
        unproven(memory),
    ];
    let told = told.into_iter().flatten().map(finding(FindingKind::Dominates));
    told.chain(trust(memory).map(finding(FindingKind::Trust))).collect()
}

/// How far the lists can be trusted.
fn trust(memory: &Memory) -> Option<String> {
    if memory.exact || memory.samples == 0 {
        return None;
    }
    let top = memory.sites.first()?;
    let few = if memory.samples < 1000 { "only " } else { "" };
    let points = |error: Option<f64>| error.map(|error| format!("± {:.1} points", error * 100.0));
    let allocated = points(top.error)?;
    let stays = memory.sites.iter().max_by_key(|site| site.live.bytes);
    let stays = stays.filter(|site| site.live.bytes > 0).and_then(|site| points(site.live_error));
    let stays = stays.map_or_else(String::new, |stays| format!(", of what stays {stays}"));
    Some(format!(
        "{few}{} samples: the first line of what is allocated is right to {allocated}{stays}",
        memory.samples
    ))
}

/// A site that holds much of what lives, and holds more from collection to collection.
fn leak(memory: &Memory) -> Option<String> {
    let whole = memory.live.bytes;
    let leaks = |site: &&Site| {
        let held = whole > 0 && site.live.bytes as f64 >= HELD * whole as f64;
        let grows = site.growth.is_some_and(|growth| growth.steady && growth.per_minute > 0.0);
        held && grows && (memory.exact || site.live_samples >= LIVE_SAMPLES)
    };
    let sites = memory.grouped(SiteBy::Site);
    let places = memory.grouped(SiteBy::Place);
    // A leak of one thing has many classes; the place has them all.
    let site = sites.iter().filter(leaks).max_by_key(|site| site.live.bytes);
    let site = site.or_else(|| places.iter().filter(leaks).max_by_key(|site| site.live.bytes))?;
    let growth = site.growth?;
    let place = site.name.place.as_deref().unwrap_or("[unknown method]");
    let what = match &site.name.class {
        Some(class) => format!("{class} from {place}"),
        None => format!("objects of several classes from {place}"),
    };
    let age = match site.ages {
        Some(Ages { median, .. }) => format!(", half of it {median} collections old or more"),
        None => String::new(),
    };
    Some(format!(
        "likely a leak: {what}: {} of what lives, {} more a minute{age}; is there a map, list or \
         cache that is filled there and never emptied?",
        percent(site.live.bytes as f64 / whole as f64),
        bytes(growth.per_minute),
    ))
}

/// The place with the most of what a choice of parts allocates, with that part and the sum of all.
struct Most<'a> {
    share: f64,
    /// Of what is allocated in all.
    of_place: f64,
    part: &'a Part,
    objects: i64,
    place: String,
}

fn most<'a>(memory: &'a Memory, is: impl Fn(&Part) -> bool, least: (f64, u64)) -> Option<Most<'a>> {
    let whole = memory.allocated.bytes as f64;
    let mut by_place: HashMap<String, (i64, &Part)> = HashMap::new();
    let (mut sum, mut samples, mut objects) = (0_i64, 0, 0_i64);
    for part in memory.parts.iter().filter(|part| is(part)) {
        let bytes = part.allocated.bytes;
        sum = sum.saturating_add(bytes);
        objects = objects.saturating_add(part.allocated.objects);
        samples += part.samples;
        let place = part.origin.name(SiteBy::Site).place.unwrap_or_default();
        let known = by_place.entry(place).or_insert((0, part));
        known.0 = known.0.saturating_add(bytes);
        if bytes > known.1.allocated.bytes {
            known.1 = part;
        }
    }
    let share = if whole > 0.0 { sum as f64 / whole } else { 0.0 };
    if share < least.0 || (!memory.exact && samples < least.1) {
        return None;
    }
    let mut places: Vec<_> = by_place.into_iter().collect();
    places.sort_by(|a, b| (b.1.0, &a.0).cmp(&(a.1.0, &b.0)));
    let (place, (bytes, part)) = places.into_iter().next()?;
    Some(Most { share, of_place: bytes as f64 / whole, part, objects, place })
}

/// What is allocated, and of that what one place does, in words.
fn spread(found: &Most<'_>) -> String {
    match found.of_place >= 0.99 * found.share {
        true => format!("all in {}", found.place),
        false => format!("{} in {}", percent(found.of_place), found.place),
    }
}

fn boxing(memory: &Memory) -> Option<String> {
    let found = most(memory, |part| part.origin.is_boxing(), (LARGE, SAMPLES))?;
    let rate = match memory.duration {
        0 => String::new(),
        nanos => {
            let rate = found.objects as f64 / (nanos as f64 / 1e9);
            format!(" ({} a second)", count(rate))
        }
    };
    Some(format!(
        "boxing: {} of what is allocated is numbers as objects{rate}, {} as {}; use the \
         primitive type, or a collection made for it",
        percent(found.share),
        spread(&found),
        found.part.origin.class,
    ))
}

fn growing(memory: &Memory) -> Option<String> {
    let is = |part: &Part| {
        let size = part.allocated.bytes.checked_div(part.allocated.objects).unwrap_or(0);
        part.origin.growing.is_some() && size > FIRST_ARRAY
    };
    let found = most(memory, is, (LARGE, SAMPLES))?;
    let method = found.part.origin.growing.as_deref().unwrap_or_default();
    Some(format!(
        "resizing: {} of what is allocated is collections and buffers that outgrow their arrays, \
         {} by {method}; make them as large as they will be",
        percent(found.share),
        spread(&found),
    ))
}

/// Objects of half a region and more have regions of their own under G1.
fn humongous(profile: &Profile, memory: &Memory) -> Option<String> {
    if !is_g1(profile) {
        return None;
    }
    let region = region_size(profile);
    let half = region.map_or(HALF_A_REGION, |region| region / 2);
    let large = |part: &Part| {
        let sizes = part.sizes.iter().filter(|(size, _)| *size >= half);
        sizes.fold((0_i64, 0), |sum, (_, bytes)| (sum.0.saturating_add(*bytes), sum.1 + 1))
    };
    let (sum, count) = memory
        .parts
        .iter()
        .map(large)
        .fold((0_i64, 0_u64), |sum, part| (sum.0.saturating_add(part.0), sum.1 + part.1));
    let whole = memory.allocated.bytes;
    let share = if whole > 0 { sum as f64 / whole as f64 } else { 0.0 };
    if share < HUMONGOUS || (!memory.exact && count < HUMONGOUS_SAMPLES) {
        return None;
    }
    let most = memory.parts.iter().max_by_key(|part| large(part).0)?;
    let place = most.origin.name(SiteBy::Site).place.unwrap_or_default();
    let largest = most.sizes.iter().map(|(size, _)| *size).max().unwrap_or(0);
    let known = match region {
        Some(region) => format!("regions have {}", binary(region)),
        None => "taking regions to have 2 MB, since the recording does not tell".to_owned(),
    };
    Some(format!(
        "humongous: {} of what is allocated is objects of half a G1 region or more ({known}), \
         mostly {} of up to {} in {place}; each takes whole regions: make them smaller, use them \
         again, or set a larger -XX:G1HeapRegionSize",
        percent(share),
        most.origin.class,
        bytes(largest as f64),
    ))
}

/// What nobody can tell yet, where that is much beside what lives.
fn unproven(memory: &Memory) -> Option<String> {
    memory.has_much_unproven().then(|| {
        format!(
            "not proven yet: whether {} of what is allocated lives is told by the next collection \
             (of generational ZGC: the next major one)",
            bytes(memory.unproven.bytes as f64),
        )
    })
}

fn is_g1(profile: &Profile) -> bool {
    let run = &profile.run;
    let mut options = run.flags.iter().chain(&run.command_line);
    if options.any(|option| option == "-XX:+UseG1GC") {
        return true;
    }
    let name = EventKind::gc().name;
    let mut tables = profile.all_events().filter(|(_, table)| table.kind().name == name);
    tables.any(|(_, table)| {
        let Some(field) = table.field_named("collector") else { return false };
        (0..table.len()).any(|row| match table.field(row, field) {
            Some(FieldValue::Text(text)) => profile.strings.get(text).starts_with("G1"),
            _ => false,
        })
    })
}

/// The size of a region, if an option sets it.
fn region_size(profile: &Profile) -> Option<u64> {
    let run = &profile.run;
    let options = run.flags.iter().chain(&run.command_line);
    let text =
        options.filter_map(|option| option.strip_prefix("-XX:G1HeapRegionSize=")).next_back()?;
    let (digits, unit) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 1 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok().map(|number| number.saturating_mul(unit)).filter(|size| *size > 0)
}

fn scaled(value: f64, units: [&str; 4]) -> String {
    let (mut value, mut unit) = (value, units[0]);
    for larger in &units[1..] {
        if value.abs() >= 1000.0 {
            (value, unit) = (value / 1000.0, larger);
        }
    }
    let decimals = usize::from(value.abs() < 100.0 && unit != units[0]);
    format!("{value:.decimals$}{unit}")
}

fn bytes(value: f64) -> String {
    scaled(value, [" B", " kB", " MB", " GB"])
}

fn count(value: f64) -> String {
    scaled(value, ["", " thousand", " million", " billion"])
}

/// `2 MB` of a power of two, as options have it.
fn binary(size: u64) -> String {
    match size >> 20 {
        0 => format!("{} KB", size >> 10),
        megabytes => format!("{megabytes} MB"),
    }
}
