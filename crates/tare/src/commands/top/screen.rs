//! The live view: seconds and keys in, pictures out.

use super::watch::Watch;
use super::weigh::Weight;
use crate::cli::TopArgs;
use crate::commands::record::unused;
use crate::interrupt;
use crate::term::{FullScreen, Input, full_output};
use anyhow::Result;
use ratatui_core::layout::Size;
use ratatui_core::terminal::Terminal;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tare_top::{Action, Ansi, App, Keys, Standing, Weighing, draw};

const SECOND: Duration = Duration::from_secs(1);
/// Bytes of one key come together.
const SETTLE: Duration = Duration::from_millis(30);

pub fn run(args: &TopArgs, watch: &mut Watch, stop: &AtomicBool) -> Result<()> {
    let seconds = args.last.map_or(10, |last| last.as_secs());
    let mut app = watch.app(args.wall, seconds);
    let mut screen = FullScreen::enter()?;
    let mut shown = Shown {
        terminal: Terminal::new(Ansi::new(
            full_output()?,
            Size::from(screen.size()),
            app.paint.colours,
        ))?,
    };
    let mut top = Top { watch, weights: Vec::new(), page: None };
    let outcome = top.go(&mut app, &mut screen, &mut shown, stop);
    // What is woven is taken back, and what is shown in a browser ends, before the terminal tells
    // that all is over.
    top.weights.clear();
    if let Some(page) = top.page.take() {
        page.end();
    }
    drop(screen);
    if let Standing::Ended(why) = top.watch.standing() {
        errln!("{}", crate::term::plain(&why));
    }
    outcome
}

struct Shown {
    terminal: Terminal<Ansi<File>>,
}

impl Shown {
    fn draw(&mut self, app: &mut App, size: (u16, u16)) -> Result<()> {
        self.terminal.backend_mut().size = Size::from(size);
        self.terminal.draw(|frame| draw(frame, app))?;
        Ok(())
    }
}

struct Top<'w> {
    watch: &'w mut Watch,
    /// The last one may be under way.
    weights: Vec<Weight>,
    page: Option<PageOf>,
}

impl Top<'_> {
    fn go(
        &mut self,
        app: &mut App,
        screen: &mut FullScreen,
        shown: &mut Shown,
        stop: &AtomicBool,
    ) -> Result<()> {
        let mut keys = Keys::default();
        // The first figures are there in a moment; a picture is there at once.
        let mut next = Instant::now() + Duration::from_millis(300);
        shown.draw(app, screen.size())?;
        while !interrupt::is_set(stop) {
            let left = next.saturating_duration_since(Instant::now());
            let input = screen.wait(if keys.is_pending() { SETTLE } else { left })?;
            let pressed = match input {
                Input::Bytes(bytes) => keys.take(&bytes),
                Input::Nothing => keys.settle(),
                Input::Gone => return Ok(()),
            };
            let mut is_new = !pressed.is_empty();
            for key in pressed {
                let Some(action) = app.key(key) else { continue };
                match action {
                    Action::Quit => return Ok(()),
                    Action::Suspend => {
                        screen.suspend()?;
                        shown.terminal.clear()?;
                    }
                    Action::Redraw => shown.terminal.clear()?,
                    action => self.carry_out(action, app),
                }
            }
            if screen.is_spoilt()? {
                shown.terminal.clear()?;
                is_new = true;
            }
            if Instant::now() >= next {
                next += SECOND;
                // Whoever was stopped for a while does not make up for it.
                next = next.max(Instant::now());
                self.watch.second();
                app.tick();
                self.hear(app);
                self.look(app);
                is_new = true;
            }
            if is_new {
                shown.draw(app, screen.size())?;
            }
        }
        Ok(())
    }

    /// What there is to see by now.
    fn look(&mut self, app: &mut App) {
        let snapshot = self.watch.snapshot(&app.wanted());
        app.show(snapshot, &self.watch.model.history);
        let threads = app.visible_threads().into_iter();
        app.states = threads.map(|(key, tid)| (key, self.watch.state(tid).to_owned())).collect();
    }

    /// What others have to say.
    fn hear(&mut self, app: &mut App) {
        {
            let mut shared = self.watch.feed.shared();
            app.header.standing = shared.standing.clone();
            app.header.how.clone_from(&shared.how);
            if let Some(note) = shared.notes.drain(..).next_back() {
                app.say(note);
            }
            let recorded = shared.recorded.take();
            drop(shared);
            if let Some(path) = recorded {
                app.say(format!("recorded into {}", path.display()));
                self.watch.recorded = Some(path);
            }
        }
        let wish = self.watch.feed.wish();
        app.wall = wish.wall;
        app.header.recording = wish.file.map(|path| path.display().to_string());
        for weight in &mut self.weights {
            let now = weight.now();
            if let (Weighing::Failed(why), false) = (&now.state, weight.is_told) {
                weight.is_told = true;
                app.say(format!("{} was not weighed: {why}", weight.key));
            }
            app.weigh(&weight.key, now);
        }
        if let Some(text) = self.page.as_mut().and_then(PageOf::says) {
            app.say(text);
        }
    }

    fn carry_out(&mut self, action: Action, app: &mut App) {
        match action {
            Action::Look => self.look(app),
            Action::Clock { wall } => {
                let mut wish = self.watch.feed.wish();
                if wish.file.is_some() {
                    return app.say("one recording has one clock; end it with r first");
                }
                wish.wall = wall;
                app.wall = wall;
                self.watch.feed.wants(wish);
                app.say(if wall {
                    "samples by the wall clock"
                } else {
                    "samples of processor time"
                });
            }
            Action::Record => self.record(app),
            Action::View => self.view(app),
            Action::Weigh { key, method } => {
                let (jvm, timeout) = (self.watch.feed.jvm.clone(), self.watch.feed.timeout);
                match Weight::begin(jvm, timeout, key, method) {
                    Ok(weight) => {
                        if self.weights.is_empty() {
                            app.say(
                                "its class is woven; HotSpot may have to compile again what it had \
                                 compiled, once",
                            );
                        }
                        app.weigh(&weight.key, weight.now());
                        self.weights.retain(|known| known.key != weight.key);
                        self.weights.push(weight);
                    }
                    Err(error) => app.say(format!("{error:#}")),
                }
            }
            Action::TakeBack => {
                self.weights.iter().for_each(Weight::take_back);
                app.say("its code is put back");
            }
            Action::Quit | Action::Suspend | Action::Redraw => {}
        }
    }

    fn record(&mut self, app: &mut App) {
        let mut wish = self.watch.feed.wish();
        if wish.file.take().is_some() {
            app.say("the recording is being completed");
        } else if !matches!(self.watch.standing(), Standing::Live) {
            return app.say("somebody else records this JVM; r works when that has ended");
        } else {
            let name = &self.watch.feed.jvm;
            let clock = if wish.wall { "wall" } else { "cpu" };
            let short: String = name.name().rsplit(['.', '/']).next().unwrap_or("jvm").into();
            let stem = format!("{short}-{}-{clock}", name.pid);
            let path = unused(&stem, "tare", Path::exists);
            app.say(format!("recording into {}; r ends it", path.display()));
            wish.file = Some(path);
        }
        app.header.recording = wish.file.as_ref().map(|path| path.display().to_string());
        self.watch.feed.wants(wish);
    }

    fn view(&mut self, app: &mut App) {
        let Some(path) = self.watch.path() else {
            return app.say("there is nothing to view yet");
        };
        // A link opens one page: another one is made by another server.
        if let Some(page) = self.page.take() {
            page.end();
        }
        match PageOf::open(&path) {
            Ok(page) => {
                self.page = Some(page);
                app.say("the page is being opened");
            }
            Err(error) => app.say(format!("no page: {error}")),
        }
    }
}

/// A `tare view` of what is being recorded.
struct PageOf {
    child: Child,
    lines: Receiver<String>,
}

impl PageOf {
    fn open(path: &Path) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("view").arg(path).stdin(Stdio::null());
        command.env("NO_COLOR", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (say, lines) = channel();
        if let Some(out) = child.stdout.take() {
            let say = say.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    let _ = say.send(format!("{line}  opens one page, within a minute"));
                }
            });
        }
        if let Some(errors) = child.stderr.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(errors).lines().map_while(Result::ok) {
                    // How its terminal is to be used is of no use here.
                    if !line.contains("Ctrl-C ends") {
                        let _ = say.send(line);
                    }
                }
            });
        }
        Ok(PageOf { child, lines })
    }

    fn says(&mut self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // It may have ended already.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}
