//! What a person made of the figures: a page, an order, a filter, a row. Keys and seconds change it;
//! nothing here knows a terminal or a JVM.

use crate::history::History;
use crate::keys::Key;
use crate::model::{Snapshot, Wanted};
use crate::pages::{Callable, Page};
use crate::table::{Row, sort};
use std::collections::{HashMap, HashSet};

/// What whoever runs it is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    Quit,
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Other figures are to be shown: the same second, seen otherwise.
    Look,
    /// Sample by the wall clock, or by processor time again.
    Clock {
        wall: bool,
    },
    /// Begin to record into a file, or end that.
    Record,
    /// A page in the browser.
    View,
    /// Weave this method, and no other; or take it back.
    Weigh {
        key: String,
        method: Callable,
    },
    TakeBack,
}

/// How it stands with what is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// It is not there yet; what is being done.
    #[default]
    Beginning,
    Live,
    /// Somebody else has the sampler: who, and what is shown meanwhile.
    Waiting(String),
    /// Nothing more comes; why.
    Ended(String),
}

/// What is said at the top.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    pub name: String,
    pub pid: u32,
    pub jdk: String,
    /// How it is sampled: `cpu, every 10 ms`.
    pub how: String,
    pub standing: Standing,
    /// The file that is being written.
    pub recording: Option<String>,
    pub cpus: u32,
}

/// What exact counts say of a method.
#[derive(Clone, PartialEq, Debug)]
pub struct Weighed {
    pub state: Weighing,
    /// A second.
    pub calls: f64,
    /// Nanoseconds a call, with what it called: the mean, and what half and 99 % of the calls are
    /// within.
    pub times: Option<[f64; 3]>,
    pub seconds: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Weighing {
    /// Its class is being woven.
    Begins,
    Counts,
    /// Its code is as it was.
    Over,
    Failed(String),
}

/// What the terminal can show.
#[derive(Clone, Copy)]
pub struct Paint {
    pub colours: bool,
    /// Nothing but ASCII.
    pub ascii: bool,
    /// Makes a name fit so many columns.
    pub fit: fn(&str, usize) -> String,
}

impl std::fmt::Debug for Paint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "colours: {}, ascii: {}", self.colours, self.ascii)
    }
}

/// Seconds to look back.
const SPANS: [u64; 5] = [1, 5, 10, 30, 60];

/// How many seconds a message stays.
const STAYS: u32 = 8;

/// One page as it is looked at.
#[derive(Default, Debug)]
pub(crate) struct View {
    /// A column, or past the last one: as the rows come.
    pub order: usize,
    pub reversed: bool,
    pub selected: Option<String>,
    /// The first row on the screen.
    pub top: usize,
    /// What is shown, in that order.
    pub rows: Vec<Row>,
}

#[derive(Debug)]
pub struct App {
    pub page: Page,
    views: [View; 5],
    pub filter: String,
    /// What is being typed.
    pub typing: Option<String>,
    /// Rows keep their order.
    pub frozen: bool,
    /// Details have half of the screen.
    pub wide: bool,
    pub help: bool,
    span: usize,
    pub wall: bool,
    message: Option<(String, u32)>,
    pub header: Header,
    pub snapshot: Snapshot,
    pub history: History,
    /// By the keys of methods.
    pub weighed: HashMap<String, Weighed>,
    /// What threads do now, by their keys.
    pub states: HashMap<String, String>,
    pub paint: Paint,
    /// Rows that there was room for when it was drawn last.
    pub(crate) room: usize,
}

impl App {
    #[must_use]
    pub fn new(header: Header, wall: bool, seconds: u64, paint: Paint) -> Self {
        let span = SPANS.iter().position(|span| *span >= seconds).unwrap_or(SPANS.len() - 1);
        let view = |page: Page| View { order: page.first_order(), ..View::default() };
        App {
            page: Page::default(),
            views: Page::ALL.map(view),
            filter: String::new(),
            typing: None,
            frozen: false,
            wide: false,
            help: false,
            span,
            wall,
            message: None,
            header,
            snapshot: Snapshot::default(),
            history: History::default(),
            weighed: HashMap::new(),
            states: HashMap::new(),
            paint,
            room: 10,
        }
    }

    pub(crate) fn view(&self) -> &View {
        &self.views[self.page.number()]
    }

    fn view_mut(&mut self) -> &mut View {
        &mut self.views[self.page.number()]
    }

    /// Seconds that are looked back.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        SPANS[self.span]
    }

    /// What figures are to be made for it.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let span = self.seconds() * 1_000_000_000;
        Wanted { pages: vec![self.page], selected: self.view().selected.clone(), span }
    }

    /// Whether rows stay where they are.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen || self.view().selected.is_some()
    }

    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some((text.into(), STAYS));
    }

    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_ref().map(|(text, _)| text.as_str())
    }

    /// A second has passed.
    pub fn tick(&mut self) {
        self.message = self.message.take().filter(|(_, left)| *left > 0);
        if let Some((_, left)) = &mut self.message {
            *left -= 1;
        }
    }

    /// New figures of the page that is looked at.
    pub fn show(&mut self, snapshot: Snapshot, history: &History) {
        self.snapshot = snapshot;
        self.history.clone_from(history);
        self.arrange();
    }

    /// Threads that can be seen, by key, and what the system calls them.
    #[must_use]
    pub fn visible_threads(&self) -> Vec<(String, u64)> {
        let view = self.view();
        let rows = view.rows.iter().skip(view.top).take(self.room);
        let rows = rows.filter(|_| self.page == Page::Threads);
        rows.filter_map(|row| Some((row.key.clone(), row.tid?))).collect()
    }

    /// Brings the rows of the page into the order in which they are shown.
    fn arrange(&mut self) {
        let number = self.page.number();
        let frozen = self.is_frozen();
        let lower = self.filter.to_lowercase();
        let mut new = self.snapshot.tables[number].rows.clone();
        self.add_weighed(&mut new);
        new.retain(|row| row.has(&lower));
        let view = &mut self.views[number];
        if view.order < self.page.columns().len() {
            sort(&mut new, view.order, view.reversed);
        }
        if frozen && !view.rows.is_empty() {
            let place: HashMap<String, usize> =
                new.iter().enumerate().map(|(at, row)| (row.key.clone(), at)).collect();
            let known: HashSet<&str> = view.rows.iter().map(|row| row.key.as_str()).collect();
            let is_new = |row: &&Row| !known.contains(row.key.as_str());
            let more: Vec<Row> = new.iter().filter(is_new).cloned().collect();
            let same =
                |row: &Row| place.get(&row.key).map_or_else(|| row.gone(), |at| new[*at].clone());
            let mut rows: Vec<Row> =
                view.rows.iter().filter(|row| row.has(&lower)).map(same).collect();
            rows.extend(more);
            view.rows = rows;
        } else {
            view.rows = new;
        }
        self.keep_in_sight();
    }

    /// What was counted exactly takes its place among the columns.
    fn add_weighed(&self, rows: &mut [Row]) {
        use crate::table::Value;
        if self.page != Page::Methods {
            return;
        }
        let at = |id: &str| self.page.columns().iter().position(|column| column.id == id);
        let (Some(calls), Some(mean)) = (at("calls_per_second"), at("mean")) else { return };
        for row in rows {
            let Some(weighed) = self.weighed.get(&row.key) else { continue };
            if matches!(weighed.state, Weighing::Counts | Weighing::Over) {
                row.values[calls] = Value::Count(weighed.calls);
                row.values[mean] =
                    weighed.times.map_or(Value::Nothing, |times| Value::Time(times[0]));
            }
        }
    }

    /// Whether the columns of exact counts have something to show.
    pub(crate) fn has_weighed(&self) -> bool {
        self.weighed.values().any(|one| matches!(one.state, Weighing::Counts | Weighing::Over))
    }

    /// Something was counted.
    pub fn weigh(&mut self, key: &str, weighed: Weighed) {
        self.weighed.insert(key.to_owned(), weighed);
        self.arrange();
    }

    fn keep_in_sight(&mut self) {
        let room = self.room.max(1);
        let view = self.view_mut();
        let count = view.rows.len();
        if let Some(at) = view.place() {
            if at < view.top {
                view.top = at;
            } else if at >= view.top + room {
                view.top = at + 1 - room;
            }
        }
        view.top = view.top.min(count.saturating_sub(room));
    }

    /// What a key means.
    pub fn key(&mut self, key: Key) -> Option<Action> {
        match key {
            Key::Ctrl('c') => return Some(Action::Quit),
            Key::Ctrl('z') => return Some(Action::Suspend),
            Key::Ctrl('l') => return Some(Action::Redraw),
            _ => {}
        }
        if self.typing.is_some() {
            return self.typed(key);
        }
        if self.help {
            self.help = false;
            return None;
        }
        match key {
            Key::Char('q') => Some(Action::Quit),
            Key::Char('?' | 'h') => {
                self.help = true;
                None
            }
            Key::Char(digit @ '1'..='5') => {
                let number = digit as usize - '1' as usize;
                self.turn_to(Page::ALL[number])
            }
            Key::Tab | Key::Right => self.turn_to(Page::ALL[(self.page.number() + 1) % 5]),
            Key::BackTab | Key::Left => self.turn_to(Page::ALL[(self.page.number() + 4) % 5]),
            Key::Up | Key::Char('k') => self.go(-1),
            Key::Down | Key::Char('j') => self.go(1),
            Key::PageUp => self.go(-(self.room.max(1) as isize)),
            Key::PageDown => self.go(self.room.max(1) as isize),
            Key::Home | Key::Char('g') => self.go(isize::MIN),
            Key::End | Key::Char('G') => self.go(isize::MAX),
            Key::Esc => self.back(),
            Key::Enter => {
                self.wide = !self.wide;
                None
            }
            Key::Char(' ') => {
                self.frozen = !self.frozen;
                self.arrange();
                None
            }
            Key::Char('/') => {
                self.typing = Some(self.filter.clone());
                None
            }
            Key::Char('[') => self.look_back(-1),
            Key::Char(']') => self.look_back(1),
            Key::Char('w') => Some(Action::Clock { wall: !self.wall }),
            Key::Char('r') => Some(Action::Record),
            Key::Char('v') => Some(Action::View),
            Key::Char('e') => self.weigh_row(),
            Key::Char('<') => self.order_beside(-1),
            Key::Char('>') => self.order_beside(1),
            Key::Char('i') => {
                let view = self.view_mut();
                view.reversed = !view.reversed;
                self.rearrange();
                None
            }
            Key::Char(letter) => {
                let column = self.page.columns().iter().position(|column| column.key == letter);
                if let Some(column) = column {
                    self.order_by(column);
                }
                None
            }
            _ => None,
        }
    }

    fn typed(&mut self, key: Key) -> Option<Action> {
        let text = self.typing.as_mut()?;
        match key {
            Key::Char(letter) => text.push(letter),
            Key::Backspace => _ = text.pop(),
            Key::Esc => {
                self.typing = None;
                self.filter.clear();
                self.rearrange();
                return None;
            }
            Key::Enter => {
                self.typing = None;
                return None;
            }
            _ => return None,
        }
        self.filter.clone_from(text);
        self.rearrange();
        None
    }

    fn turn_to(&mut self, page: Page) -> Option<Action> {
        self.page = page;
        self.arrange();
        Some(Action::Look)
    }

    /// Selects another row.
    fn go(&mut self, by: isize) -> Option<Action> {
        let view = self.view_mut();
        let last = view.rows.len().checked_sub(1)?;
        let at = match view.place() {
            Some(at) => at.saturating_add_signed(by).min(last),
            None if by == isize::MAX => last,
            None => view.top.min(last),
        };
        view.selected = Some(view.rows[at].key.clone());
        self.keep_in_sight();
        Some(Action::Look)
    }

    /// Takes back the last thing that was chosen.
    fn back(&mut self) -> Option<Action> {
        if self.wide {
            self.wide = false;
            return None;
        }
        if self.view_mut().selected.take().is_some() {
            self.arrange();
            return Some(Action::Look);
        }
        if self.frozen {
            self.frozen = false;
        } else {
            self.filter.clear();
        }
        self.arrange();
        None
    }

    fn look_back(&mut self, by: isize) -> Option<Action> {
        self.span = self.span.saturating_add_signed(by).min(SPANS.len() - 1);
        Some(Action::Look)
    }

    fn order_beside(&mut self, by: isize) -> Option<Action> {
        let columns = self.page.columns().len();
        let now = self.view().order.min(columns);
        // Past the last one is the order in which rows come.
        let next = (now as isize + by).rem_euclid(columns as isize + 1);
        self.order_by(next as usize);
        None
    }

    fn order_by(&mut self, column: usize) {
        let view = self.view_mut();
        view.reversed = view.order == column && !view.reversed;
        view.order = column;
        self.rearrange();
    }

    /// Brings rows into order although they are frozen: somebody has just asked for another one.
    fn rearrange(&mut self) {
        self.view_mut().rows.clear();
        self.arrange();
    }

    fn weigh_row(&mut self) -> Option<Action> {
        let under_way = |one: &Weighed| matches!(one.state, Weighing::Begins | Weighing::Counts);
        if self.weighed.values().any(under_way) {
            return Some(Action::TakeBack);
        }
        if self.page != Page::Methods {
            self.say("e weighs a method: select one on the first page");
            return None;
        }
        let Some(key) = self.view().selected.clone() else {
            self.say(
                "select a method with ↑ and ↓ first; e then counts and times every call of it",
            );
            return None;
        };
        match self.snapshot.callables.get(&key) {
            Some(method) => Some(Action::Weigh { key, method: method.clone() }),
            None => {
                self.say(format!("{key} is no Java method, and cannot be weighed"));
                None
            }
        }
    }
}

impl View {
    pub fn place(&self) -> Option<usize> {
        let selected = self.selected.as_deref()?;
        self.rows.iter().position(|row| row.key == selected)
    }
}
