//! The server: listens on loopback, a thread for each connection and a bound on how many, and what
//! path leads where.

use crate::access::Access;
use crate::http::{self, Answer, Heard, Method, Refused, Request};
use crate::prepared::Cache;
use crate::queries;
use crate::source::{Kind, Source};
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Connections at a time. A browser has six, and one page more than one stream of ticks never.
const CONNECTIONS: usize = 32;

/// How often the page hears of live data, and of a file.
const TICK: Duration = Duration::from_secs(1);
const TICK_OF_FILE: Duration = Duration::from_secs(10);

/// A server that listens.
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<TcpListener>,
    port: u16,
}

struct Shared {
    access: Access,
    source: Arc<dyn Source>,
    cache: Cache,
    connections: AtomicUsize,
    stopped: AtomicBool,
}

/// What makes links to a server, and ends it.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    port: u16,
}

impl Handle {
    /// A link that can be opened once, within a minute. `place` is a deep link, such as
    /// `/flame?metric=cpu`.
    pub fn link(&self, place: &str) -> io::Result<String> {
        let code = self.shared.access.code()?;
        let place = if place.is_empty() { String::new() } else { format!("&{place}") };
        Ok(format!("http://127.0.0.1:{}/#c={code}{place}", self.port))
    }

    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
    }
}

impl Server {
    /// Listens on loopback; port 0 is any that is free.
    pub fn bind(port: u16, source: Arc<dyn Source>) -> io::Result<Server> {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = first.local_addr()?.port();
        let mut listeners = vec![first];
        // There need not be a second one: the link leads to the first.
        listeners.extend(TcpListener::bind((Ipv6Addr::LOCALHOST, port)));
        let shared = Arc::new(Shared {
            access: Access::new(port)?,
            source,
            cache: Cache::default(),
            connections: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        Ok(Server { shared, listeners, port })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn handle(&self) -> Handle {
        Handle { shared: Arc::clone(&self.shared), port: self.port }
    }

    /// Serves from threads of its own, until the process ends or the handle says so.
    pub fn start(self) -> io::Result<()> {
        for listener in self.listeners {
            let shared = Arc::clone(&self.shared);
            let name = "tare-view".to_owned();
            std::thread::Builder::new().name(name).spawn(move || accept(&listener, &shared))?;
        }
        Ok(())
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut stream) = stream else {
            // Without descriptors there is nobody to tell.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let guest = Guest::enter(shared);
        let Some(guest) = guest else {
            let full = Answer::error(503, "too many connections", Some("close other pages"));
            // Only what fits the socket's buffer: nobody is waited for here.
            let _ = stream.set_nonblocking(true);
            let _ = http::write(&mut stream, &full, true, false);
            continue;
        };
        let _ = stream.set_nodelay(true);
        let body = move || serve(stream, &guest.0);
        // A machine that has no room for a thread refuses like one with too many connections.
        let _ = std::thread::Builder::new().name("tare-view-page".to_owned()).spawn(body);
    }
}

/// One of the connections that there may be.
struct Guest(Arc<Shared>);

impl Guest {
    fn enter(shared: &Arc<Shared>) -> Option<Guest> {
        let entered = shared.connections.fetch_add(1, Ordering::Relaxed);
        let guest = Guest(Arc::clone(shared));
        // Whoever is one too many leaves by being dropped.
        (entered < CONNECTIONS).then_some(guest)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers one connection until it ends.
fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut buffer = Vec::new();
    loop {
        let request = match http::read(&mut stream, &mut buffer) {
            Heard::Nothing => return,
            Heard::Refused(Refused(status, text)) => {
                let _ = http::write(&mut stream, &Answer::error(status, text, None), true, false);
                return;
            }
            Heard::Request(request) => request,
        };
        if request.path == "/api/ticks" && request.method == Method::Get {
            match may_ask(shared, &request) {
                Ok(()) => return ticks(&mut stream, shared),
                Err(answer) => {
                    if http::write(&mut stream, &answer, true, request.keeps).is_err() {
                        return;
                    }
                    continue;
                }
            }
        }
        let answer = route(shared, &request);
        let with_body = request.method != Method::Head;
        if http::write(&mut stream, &answer, with_body, request.keeps).is_err() || !request.keeps {
            return;
        }
    }
}

fn may_ask(shared: &Shared, request: &Request) -> Result<(), Answer> {
    shared.access.is_own(request)?;
    shared.access.is_allowed(request)
}

fn route(shared: &Shared, request: &Request) -> Answer {
    // Before anything else: whose page is it?
    if let Err(answer) = shared.access.is_own(request) {
        return answer;
    }
    if !request.path.starts_with("/api/") {
        return match request.method {
            Method::Post => Answer::error(405, "files are not posted to", None),
            Method::Get | Method::Head => asset(&request.path),
        };
    }
    if request.path == "/api/login" {
        return login(shared, request);
    }
    if let Err(answer) = shared.access.is_allowed(request) {
        return answer;
    }
    match request.method {
        Method::Post => queries::posted(shared.source.as_ref(), request),
        Method::Get | Method::Head => {
            queries::answer(shared.source.as_ref(), &shared.cache, request)
        }
    }
}

fn login(shared: &Shared, request: &Request) -> Answer {
    if request.method != Method::Post {
        return Answer::error(405, "codes are posted", None);
    }
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let Some(code) = body["code"].as_str() else {
        return Answer::error(400, "there is no code in the request", None);
    };
    match shared.access.trade(code) {
        Ok(token) => Answer::json(&json!({ "token": token })),
        Err(answer) => answer,
    }
}

fn asset(path: &str) -> Answer {
    let name = if path == "/" { Some("index.html") } else { path.strip_prefix("/assets/") };
    // Only names from the list: no path of a request ever meets the file system.
    let found = name.and_then(|name| FILES.iter().find(|(known, _)| *known == name));
    let Some((name, bytes)) = found else {
        return Answer::error(404, "there is no such file", None);
    };
    let kind = match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        _ => "text/html; charset=utf-8",
    };
    // While the page is being written: its files as they are, without building anew.
    #[cfg(debug_assertions)]
    if let Some(folder) = std::env::var_os("TARE_VIEW_ASSETS")
        && let Ok(bytes) = std::fs::read(std::path::Path::new(&folder).join(name))
    {
        return Answer::new(kind, bytes);
    }
    Answer::new(kind, bytes.to_vec())
}

/// Tells how things stand, for as long as somebody listens.
fn ticks(stream: &mut TcpStream, shared: &Shared) {
    let head = http::head(200, "text/event-stream", None, &[], false);
    let _ = stream.set_write_timeout(Some(http::PATIENCE));
    if stream.write_all(head.as_bytes()).is_err() {
        return;
    }
    let mut last: Option<(u64, Kind, Value, Instant)> = None;
    while !shared.stopped.load(Ordering::Relaxed) {
        let state = shared.source.state();
        let pause = if state.kind == Kind::Live { TICK } else { TICK_OF_FILE };
        let exactly = shared.source.exactly();
        let is_new = last.as_ref().is_none_or(|(epoch, kind, measured, at)| {
            let is_same = (*epoch, *kind) == (state.epoch, state.kind);
            !is_same || measured["state"] != exactly["state"] || at.elapsed() >= pause
        });
        if is_new {
            let tick = json!({
                "epoch": state.epoch,
                "state": state.kind.name(),
                "age_ms": u64::try_from(state.age.as_millis()).unwrap_or(u64::MAX),
                "duration_ns": state.duration,
                "sentence": state.sentence,
                "exactly": exactly,
            });
            let text = format!("event: tick\ndata: {tick}\n\n");
            if stream.write_all(text.as_bytes()).is_err() {
                return;
            }
            shared.source.heard();
            last = Some((state.epoch, state.kind, exactly, Instant::now()));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
