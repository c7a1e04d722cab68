//! Pictures of what there is to see, at three sizes, and what keys do to it.
//!
//! The pictures are in `pictures/`; `TARE_BLESS=1 cargo test -p tare-top` writes them anew.

#![forbid(unsafe_code)]

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use std::path::Path;
use tare_profile::{
    Event, EventKind, FieldValue, Frame, LockFields, Method, MethodKind, Profile, Row, SeriesInfo,
    Thread, ThreadId, ThreadKind, TimeAxis, ValueKind, Wait,
};
use tare_top::{
    Action, App, Header, Key, Machine, Model, Page, Paint, Standing, Weighed, Weighing, draw,
};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn fit(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(count + 1 - width.max(1)).collect();
    format!("…{kept}")
}

fn plain() -> Paint {
    Paint { colours: false, ascii: false, fit }
}

/// A shop that is recorded second by second.
struct Shop {
    profile: Profile,
    model: Model,
    elapsed: u64,
}

impl Shop {
    fn new() -> Self {
        let mut profile = Profile::new();
        let timed = |name: &str, kind: ValueKind| {
            SeriesInfo::new(name, kind.clone())
                .with_time(TimeAxis::Exact)
                .with_period(10 * MS, kind)
        };
        profile.add_series(timed("cpu", ValueKind::CpuTime));
        profile.add_series(timed("alloc", ValueKind::AllocatedBytes));
        profile.add_series(timed("lock", ValueKind::BlockedTime));
        for name in ["order-worker-1", "order-worker-2", "注文-worker-é"] {
            let name = profile.strings.intern(name);
            let os_id = Some(100 + profile.threads.len() as u64);
            profile.threads.push(Thread { name, os_id, ..Thread::default() });
        }
        let name = profile.strings.intern("G1 Conc#0");
        profile.threads.push(Thread { name, kind: ThreadKind::Vm, ..Thread::default() });
        Shop { profile, model: Model::default(), elapsed: 0 }
    }

    fn frames(&mut self, stack: &[&str]) -> tare_profile::ContextId {
        let profile = &mut self.profile;
        let frames: Vec<_> = stack
            .iter()
            .map(|name| {
                let begins = |name: &str| name.starts_with(|c: char| c.is_uppercase());
                let method = name.rsplit_once('.').filter(|(_, last)| !begins(last));
                let (class, name) = method.unwrap_or((name, ""));
                let kind = if name.is_empty() { MethodKind::Class } else { MethodKind::Java };
                let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
                let descriptor = profile.strings.intern("(I)V");
                let method = Method { kind, class, name, descriptor, ..Method::default() };
                let method = profile.methods.intern(method);
                profile.frames.intern(Frame::of(method))
            })
            .collect();
        profile.contexts.stack(frames)
    }

    fn value(&mut self, series: usize, stack: &[&str], thread: u32, time: u64, value: i64) {
        let context = self.frames(stack);
        let id = self.profile.all_series().nth(series).unwrap().0;
        let row = Row::new(context, ThreadId::new(thread), value).at(time);
        self.profile.series_mut(id).push(row);
    }

    fn text(&mut self, text: &str) -> FieldValue {
        FieldValue::Text(self.profile.strings.intern(text))
    }

    /// What happened in the second of that number. `place` becomes busier as time goes by.
    fn second(&mut self, number: u64) {
        let run = "shop.Worker.run";
        let from = number * SECOND;
        for sample in 0..40 {
            let time = from + sample * 25 * MS;
            let stack: &[&str] = match sample {
                _ if sample < number * 3 => &[run, "shop.orders.OrderDesk.place"],
                0..20 => &[run, "shop.orders.OrderDesk.place", "shop.pricing.Pricer.price"],
                20..30 => &[run, "shop.invoice.Printer.print"],
                _ => &[run, "shop.stock.在庫.tāke"],
            };
            self.value(0, stack, 1 + (sample % 3) as u32, time, 10 * MS as i64);
        }
        let stack = [run, "shop.invoice.Printer.print", "byte[]"];
        self.value(1, &stack, 2, from + 500 * MS, 4_000_000 + 100_000 * number as i64);
        let waits = [run, "shop.orders.OrderDesk.place", "shop.payment.LinePool"];
        self.value(2, &waits, 1, from + 900 * MS, 250 * MS as i64);
        self.lock(from + 600 * MS, 250 * MS);
        if number.is_multiple_of(3) {
            self.collect(from + 700 * MS, number);
        }
        self.load_class(from + 100 * MS, number);
        self.elapsed += SECOND;
        self.model.take(&mut self.profile, self.elapsed);
        let machine = Machine { cpu: Some(0.4 + 0.1 * number as f64), tare: Some(0.006), gc: None };
        self.model.second(machine, self.elapsed);
    }

    fn lock(&mut self, time: u64, duration: u64) {
        let class = self.profile.strings.intern("shop.payment.LinePool");
        let operation = self.profile.strings.intern(Wait::MonitorEnter.name());
        let context = self.frames(&["shop.Worker.run", "shop.orders.OrderDesk.place"]);
        let owner_context = self.frames(&["shop.Worker.run", "shop.payment.LinePool.refresh"]);
        let fields = LockFields {
            class,
            operation,
            owner: ThreadId::new(2),
            instance: 7,
            owner_context,
            owner_held: true,
            queue: 1,
        };
        let table = self.profile.events_of(&EventKind::lock());
        let event = Event { time, duration, thread: ThreadId::new(1), context };
        self.profile.events_mut(table).push(event, &fields.values());
    }

    fn collect(&mut self, time: u64, number: u64) {
        let (collector, cause) = (self.text("G1 young"), self.text("G1 Evacuation Pause"));
        let sizes = [80_000_000 + number as i64, 21_000_000].map(FieldValue::Integer);
        let table = self.profile.events_of(&EventKind::gc());
        let event = Event { time, duration: 12 * MS, ..Event::default() };
        self.profile.events_mut(table).push(event, &[collector, cause, sizes[0], sizes[1]]);
    }

    fn load_class(&mut self, time: u64, number: u64) {
        let class = self.text(&format!("shop.carriers.Carrier{number}"));
        let (loader, source) = (self.text("app"), self.text("carriers.jar"));
        let numbers = [number as i64 + 1, 0].map(FieldValue::Integer);
        let context = self.frames(&["shop.Worker.run", "shop.shipping.CarrierLoader.load"]);
        let table = self.profile.events_of(&EventKind::class_load());
        let event = Event { time, context, ..Event::default() };
        self.profile
            .events_mut(table)
            .push(event, &[class, loader, source, numbers[0], numbers[1]]);
    }

    fn show(&mut self, app: &mut App) {
        let snapshot = self.model.snapshot(&mut self.profile, &app.wanted());
        app.show(snapshot, &self.model.history);
        let threads = app.visible_threads().into_iter();
        app.states = threads.map(|(key, _)| (key, "waits".to_owned())).collect();
    }
}

fn app() -> App {
    let header = Header {
        name: "shop.Main".to_owned(),
        pid: 4711,
        jdk: "JDK 25".to_owned(),
        how: "cpu, every 10 ms".to_owned(),
        standing: Standing::Live,
        recording: None,
        cpus: 4,
    };
    App::new(header, false, 10, plain())
}

fn shop() -> (Shop, App) {
    let (mut shop, mut app) = (Shop::new(), app());
    (0..8).for_each(|number| shop.second(number));
    shop.show(&mut app);
    (shop, app)
}

fn picture(app: &mut App, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let mut text = String::new();
    for y in 0..lines {
        let mut line = String::new();
        let mut x = 0;
        while x < columns {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide character stands in two cells, of which the second is empty.
            x += u16::try_from(ratatui_core::text::Span::raw(symbol).width()).unwrap().max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[track_caller]
fn check(name: &str, app: &mut App, columns: u16, lines: u16) {
    let found = picture(app, columns, lines);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures").join(name);
    if std::env::var_os("TARE_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == known, "{name} is another picture now:\n{found}\nit was:\n{known}");
}

fn press(shop: &mut Shop, app: &mut App, keys: &[Key]) -> Vec<Action> {
    let mut asked = Vec::new();
    for key in keys {
        if let Some(action) = app.key(*key) {
            if action == Action::Look {
                shop.show(app);
            } else {
                asked.push(action);
            }
        }
    }
    asked
}

#[test]
fn every_page_at_three_sizes() {
    for (columns, lines) in [(80, 24), (120, 40), (200, 60)] {
        let (mut shop, mut app) = shop();
        for page in Page::ALL {
            let digit = Key::Char(char::from(b'1' + page.number() as u8));
            // The room that there is becomes known when it is drawn.
            picture(&mut app, columns, lines);
            press(&mut shop, &mut app, &[digit, Key::Down]);
            check(&format!("{}-{columns}x{lines}.txt", page.id()), &mut app, columns, lines);
        }
    }
}

#[test]
fn help_and_what_is_not_there_yet() {
    let (_, mut app) = shop();
    app.key(Key::Char('?'));
    check("help-80x24.txt", &mut app, 80, 24);
    assert_eq!(app.key(Key::Char('q')), None, "closes the help, and nothing else");
    let mut first = App::new(Header::default(), false, 10, plain());
    check("first-80x24.txt", &mut first, 80, 24);
    for (columns, lines) in [(1, 1), (39, 9), (40, 10), (41, 11), (300, 100)] {
        picture(&mut app, columns, lines);
        picture(&mut first, columns, lines);
    }
    let why = "`tare record 4711` (pid 12) records this JVM (sampling); what it records is shown";
    app.header.standing = Standing::Waiting(why.to_owned());
    check("waiting-80x24.txt", &mut app, 80, 24);
}

#[test]
fn nothing_but_ascii_where_there_is_nothing_else() {
    let (mut shop, mut app) = shop();
    // Names are what they are.
    press(&mut shop, &mut app, &[Key::Char('/'), Key::Char('r'), Key::Char('d'), Key::Enter]);
    press(&mut shop, &mut app, &[Key::Down, Key::Char('?')]);
    app.paint.ascii = true;
    for help in [true, false] {
        app.help = help;
        let text = picture(&mut app, 100, 30);
        let odd: Vec<char> =
            text.chars().filter(|c| !c.is_ascii() && *c != '±' && *c != '…').collect();
        assert!(odd.is_empty(), "{odd:?} in\n{text}");
    }
}

#[test]
fn a_method_that_is_weighed_has_its_columns() {
    let (mut shop, mut app) = shop();
    picture(&mut app, 80, 24);
    press(&mut shop, &mut app, &[Key::Down]);
    let asked = press(&mut shop, &mut app, &[Key::Char('e')]);
    let [Action::Weigh { key, method }] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(key, "shop.orders.OrderDesk.place");
    assert_eq!((&*method.class, &*method.descriptor), ("shop.orders.OrderDesk", "(I)V"));
    let times = Some([91.4, 80.0, 304.0]);
    let weighed = Weighed { state: Weighing::Counts, calls: 1_204_331.0, times, seconds: 8 };
    app.weigh(key, weighed.clone());
    check("weighed-80x24.txt", &mut app, 80, 24);
    assert_eq!(press(&mut shop, &mut app, &[Key::Char('e')]), [Action::TakeBack]);
    app.weigh(key, Weighed { state: Weighing::Over, ..weighed });
    check("weighed-120x40.txt", &mut app, 120, 40);
    let asked = press(&mut shop, &mut app, &[Key::Char('e')]);
    assert!(matches!(&asked[..], [Action::Weigh { .. }]), "again: {asked:?}");
}

/// The names of methods in the order in which they are shown.
fn order(app: &mut App) -> Vec<String> {
    let text = picture(app, 80, 24);
    let rows = text.lines().skip(5).take_while(|line| line.contains('.'));
    rows.filter_map(|line| line.split(' ').next_back().map(str::to_owned)).collect()
}

#[test]
fn rows_stay_where_they_are_while_one_is_selected() {
    let (mut shop, mut app) = (Shop::new(), app());
    shop.second(0);
    shop.show(&mut app);
    let before = order(&mut app);
    assert_eq!(before[0], "shop.pricing.Pricer.price");
    press(&mut shop, &mut app, &[Key::Down]);
    (1..14).for_each(|number| shop.second(number));
    shop.show(&mut app);
    assert_eq!(order(&mut app), before, "the order is frozen");
    press(&mut shop, &mut app, &[Key::Esc]);
    let after = order(&mut app);
    assert_eq!(after[0], "shop.orders.OrderDesk.place", "the order is that of the figures");
    // Space freezes without a row.
    press(&mut shop, &mut app, &[Key::Char(' ')]);
    (14..16).for_each(|number| shop.second(number));
    shop.show(&mut app);
    assert_eq!(order(&mut app), after);
}

#[test]
fn rows_are_filtered_ordered_and_inverted() {
    let (mut shop, mut app) = shop();
    let typed: Vec<Key> = "/PRIC".chars().map(Key::Char).collect();
    press(&mut shop, &mut app, &typed);
    assert_eq!(order(&mut app), ["shop.pricing.Pricer.price"]);
    press(&mut shop, &mut app, &[Key::Backspace, Key::Enter]);
    assert_eq!(app.filter, "PRI");
    press(&mut shop, &mut app, &[Key::Esc]);
    let by_own = order(&mut app);
    press(&mut shop, &mut app, &[Key::Char('n')]);
    let mut by_name = by_own.clone();
    by_name.sort();
    assert_eq!(order(&mut app), by_name);
    press(&mut shop, &mut app, &[Key::Char('n')]);
    by_name.reverse();
    assert_eq!(order(&mut app), by_name);
    press(&mut shop, &mut app, &[Key::Char('t')]);
    assert_eq!(order(&mut app)[0], "shop.Worker.run", "by all that it called");
    press(&mut shop, &mut app, &[Key::Char('<'), Key::Char('<')]);
    assert_eq!(order(&mut app)[0], by_own[0]);
}

#[test]
fn keys_ask_for_what_they_should() {
    let (mut shop, mut app) = shop();
    let mut ask = |app: &mut App, key| press(&mut shop, app, &[key]);
    assert_eq!(ask(&mut app, Key::Char('q')), [Action::Quit]);
    assert_eq!(ask(&mut app, Key::Ctrl('c')), [Action::Quit]);
    assert_eq!(ask(&mut app, Key::Ctrl('z')), [Action::Suspend]);
    assert_eq!(ask(&mut app, Key::Ctrl('l')), [Action::Redraw]);
    assert_eq!(ask(&mut app, Key::Char('w')), [Action::Clock { wall: true }]);
    assert_eq!(ask(&mut app, Key::Char('r')), [Action::Record]);
    assert_eq!(ask(&mut app, Key::Char('v')), [Action::View]);
    assert_eq!(ask(&mut app, Key::Char('e')), [], "no row is selected");
    assert!(app.message().is_some_and(|text| text.contains("select a method")));
    // While somebody types, letters are letters, but Ctrl-C is not.
    assert_eq!(ask(&mut app, Key::Char('/')), []);
    assert_eq!(ask(&mut app, Key::Char('q')), []);
    assert_eq!(ask(&mut app, Key::Ctrl('c')), [Action::Quit]);
    assert_eq!(ask(&mut app, Key::Esc), []);
    assert_eq!(app.filter, "");
    for (keys, page) in [
        (&[Key::Tab][..], Page::Threads),
        (&[Key::Right], Page::Collections),
        (&[Key::BackTab, Key::Left, Key::Left], Page::Classes),
        (&[Key::Char('4')], Page::Locks),
        (&[Key::Char('9')], Page::Locks),
    ] {
        keys.iter().for_each(|key| _ = ask(&mut app, *key));
        assert_eq!(app.page, page);
    }
    assert_eq!(app.seconds(), 10);
    (0..9).for_each(|_| _ = ask(&mut app, Key::Char(']')));
    assert_eq!(app.seconds(), 60);
    (0..9).for_each(|_| _ = ask(&mut app, Key::Char('[')));
    assert_eq!(app.seconds(), 1);
}

#[test]
fn the_selected_row_stays_in_sight() {
    let (mut shop, mut app) = shop();
    picture(&mut app, 80, 12);
    press(&mut shop, &mut app, &[Key::End]);
    let text = picture(&mut app, 80, 12);
    assert!(text.contains("Worker.run") || text.contains("OrderDesk"), "{text}");
    press(&mut shop, &mut app, &[Key::Home]);
    let text = picture(&mut app, 80, 12);
    assert!(text.contains("shop.orders.OrderDesk.place"), "{text}");
    // Rows that are gone keep their place, and no key falls off an end.
    for key in [Key::PageDown, Key::PageDown, Key::Down, Key::PageUp, Key::Up, Key::Up, Key::Up] {
        press(&mut shop, &mut app, &[key]);
        picture(&mut app, 80, 12);
    }
}

#[test]
fn figures_are_those_of_the_last_seconds() {
    let (shop, _) = shop();
    let last = shop.model.history.last();
    assert_eq!(last.cpu, Some(1.1));
    let alloc = last.alloc.unwrap();
    assert!((4_000_000.0..6_000_000.0).contains(&alloc), "{alloc}");
    let blocked: Vec<f64> =
        shop.model.history.line(tare_top::Gauge::Blocked, 4).flatten().collect();
    assert!(blocked.iter().all(|share| (share - 0.25).abs() < 0.05), "{blocked:?}");
    let gc: Vec<f64> = shop.model.history.line(tare_top::Gauge::Gc, 8).flatten().collect();
    assert!(gc.iter().any(|share| (share - 0.012).abs() < 0.002), "{gc:?}");
    // What the last collection left, and what was allocated since.
    let heap = last.heap.unwrap();
    assert_eq!(heap, 21_000_000.0 + 4_700_000.0);
}
