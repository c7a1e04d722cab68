//! Threads on the time line, by what samples of the wall clock say that they did.

use super::page::{go, is_clean, page, shot};
use super::support::{Directory, SECOND, Served, shop};
use serde_json::{Value, json};
use tare_browser::Media;
use tare_profile::{
    Event, EventKind, FieldValue, Frame, Method, Profile, Row, SeriesInfo, Thread, TimeAxis,
    ValueKind,
};

/// Ten seconds: one thread runs for five and then is parked, the other one is blocked at the end.
fn walled() -> Profile {
    let mut profile = Profile::new();
    profile.run.main_class = "com.acme.Wait".to_owned();
    profile.run.duration = 10 * SECOND;
    let (class, name) = (profile.strings.intern("com.acme.Wait"), profile.strings.intern("run"));
    let method = profile.methods.intern(Method { class, name, ..Method::default() });
    let frame = profile.frames.intern(Frame::of(method));
    let context = profile.contexts.stack([frame]);
    let threads = ["worker", "waiter"].map(|name| {
        let name = profile.strings.intern(name);
        profile.threads.push(Thread { name, ..Thread::default() })
    });
    let series = ["wall", "running", "parked", "blocked"].map(|name| {
        let info = SeriesInfo::new(name, ValueKind::WallTime).with_time(TimeAxis::Exact);
        profile.add_series(info.with_period(100_000_000, ValueKind::WallTime))
    });
    for n in 0..100 {
        let time = n * 100_000_000;
        let states = [if n < 50 { 1 } else { 2 }, if n < 90 { 2 } else { 3 }];
        for (thread, state) in threads.iter().zip(states) {
            let row = Row::new(context, *thread, 100_000_000).at(time);
            profile.series_mut(series[0]).push(row);
            profile.series_mut(series[state]).push(row);
        }
    }
    profile
}

#[test]
fn threads_are_shown_by_what_they_did() {
    let directory = Directory::new("states");
    let file = directory.record("wall.tare", &walled());
    let served = Served::start(&file);
    let Some(mut browser) = page(&served) else { return };
    go(&mut browser, "/timeline?native=1&idle=1");
    let ask = "fetch('/api/timeline?native&idle&cells=10&threads=all', { headers: { Authorization: \
               'Bearer ' + sessionStorage.getItem('tare-token') } }).then(answer => answer.json())";
    let line = browser.eval(ask).unwrap();
    let names: Vec<&str> =
        line["states"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let of = |thread: &str| {
        let found = line["threads"].as_array().unwrap().iter().find(|one| one["name"] == thread);
        let cells = found.unwrap()["states"].as_array().unwrap().iter();
        cells.map(|cell| names[cell.as_u64().unwrap() as usize]).collect::<Vec<_>>()
    };
    assert_eq!(of("worker"), [["running"; 5], ["parked"; 5]].concat());
    assert_eq!(of("waiter"), [vec!["parked"; 9], vec!["blocked"]].concat());
    let legend = browser
        .eval("[...document.querySelectorAll('.state')].map(one => one.textContent).sort()")
        .unwrap();
    assert_eq!(legend, json!(["blocked", "parked", "running"]));
    shot(&mut browser, "timeline-states");
    browser.media(&Media::Dark).unwrap();
    shot(&mut browser, "timeline-states-dark");
    is_clean(&mut browser, &served);
}

/// Two regions that are looked at each second, a marker, and allocation beside processor time.
#[test]
fn regions_markers_and_allocation_have_lanes() {
    let directory = Directory::new("lanes");
    let mut profile = shop();
    let thread = profile.threads.iter().next().unwrap().0;
    let texts = ["com.acme.A.run", "com.acme.B.run", "deployed"].map(|t| profile.strings.intern(t));
    let regions = profile.events_of(&EventKind::region());
    for second in 1..=4 {
        for (name, total) in [(texts[0], 200_000_000), (texts[1], 50_000_000)] {
            let event = Event { time: second * SECOND, thread, ..Event::default() };
            let figures = [1, total, total, total].map(FieldValue::Integer);
            let row = [&[FieldValue::Text(name)][..], &figures].concat();
            profile.events_mut(regions).push(event, &row);
        }
    }
    let markers = profile.events_of(&EventKind::marker());
    let event = Event { time: 3 * SECOND, thread, ..Event::default() };
    profile.events_mut(markers).push(event, &[FieldValue::Text(texts[2])]);
    let info = SeriesInfo::new("alloc", ValueKind::AllocatedBytes).with_time(TimeAxis::Exact);
    let alloc = profile.add_series(info);
    let row = Row::new(tare_profile::ContextId::ROOT, thread, 5000).at(7 * SECOND);
    profile.series_mut(alloc).push(row);
    let file = directory.record("lanes.tare", &profile);
    let served = Served::start(&file);
    let bearer = format!("Authorization: Bearer {}\r\n", served.login());
    let (status, text) = served.ask("GET /api/timeline?cells=10&from=0&to=10000000000", &bearer);
    assert_eq!(status, 200, "{text}");
    let line: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    let lane = |name: &str| {
        let found = line["lanes"].as_array().unwrap().iter().find(|lane| lane["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is not in {line}")).clone()
    };
    let ms = |each: i64| json!([each, each, each, each, 0, 0, 0, 0, 0, 0]);
    assert_eq!(lane("Region com.acme.A.run")["values"], ms(200_000_000));
    assert_eq!(lane("Region com.acme.B.run")["values"], ms(50_000_000));
    assert_eq!(lane("Markers")["bars"][0]["text"], "deployed");
    assert_eq!(lane("Allocation")["values"], json!([0, 0, 0, 0, 0, 0, 0, 5000, 0, 0]));
}
