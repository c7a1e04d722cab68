//! A real Chromium for tests and pictures, spoken to over a pipe: no port, no driver whose version
//! must fit, and a browser that hangs is a child that is killed. For developers only.
//!
//! [`Browser::start`] starts one with a page; [`Browser::eval`] asks it. Waiting is done by the page
//! (a promise that it keeps) or by [`Browser::wait`], and never by sleeping. What the page said,
//! asked the network for and did wrong is kept and can be looked at.

#![forbid(unsafe_code)]

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// The one wait of all tests: generous, since machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What may be installed, the quicker one first.
const PROGRAMS: [&str; 4] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// How to get one.
pub const REMEDY: &str = "no Chromium was found: `cargo xtask setup` installs Debian's \
                          chromium-headless-shell as root";

pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
    session: String,
    /// What the page asked the network for.
    pub requests: Vec<String>,
    /// Errors on the console, exceptions nobody caught, and violations of the page's own rules.
    pub complaints: Vec<String>,
    folder: PathBuf,
}

/// A key on the keyboard.
pub enum Key<'a> {
    /// A character, as it is typed.
    Char(char),
    /// By its name: `Escape`, `Enter`, `ArrowDown`, `Tab`.
    Named(&'a str),
}

/// How the page is shown.
pub enum Media {
    Light,
    Dark,
    Forced,
    Print,
}

/// The browser's program, if there is one on this machine.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = || std::env::split_paths(&path);
    PROGRAMS.iter().find_map(|name| places().map(|at| at.join(name)).find(|file| file.is_file()))
}

impl Browser {
    /// Starts a browser with an empty page of so many pixels.
    pub fn start(width: u32, height: u32) -> Result<Browser> {
        let program = program().context(REMEDY)?;
        let name = format!("tare-browser-{}-{:?}", std::process::id(), std::thread::current().id());
        let folder = std::env::temp_dir().join(name.replace(['(', ')'], "-"));
        // The pipe is at 3 and 4, where only a shell puts it without unsafe code.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--force-color-profile=srgb",
                "--font-render-hinting=none",
                "--disable-lcd-text",
                "--force-device-scale-factor=1",
                "--hide-scrollbars",
            ])
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--user-data-dir={}", folder.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting Chromium")?;
        let to = child.stdin.take().context("the browser has no input")?;
        let output = child.stdout.take().context("the browser has no output")?;
        let (sender, from) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|count| count > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                message.clear();
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let (requests, complaints, session) = Default::default();
        let mut browser =
            Browser { child, to, from, last: 0, session, requests, complaints, folder };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let target = target["targetId"].clone();
        let session = browser
            .call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }))?;
        browser.session = session["sessionId"].as_str().unwrap_or_default().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        browser.size(width, height)?;
        Ok(browser)
    }

    pub fn size(&mut self, width: u32, height: u32) -> Result<()> {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics).map(drop)
    }

    /// Asks the browser for something; its answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.last += 1;
        let id = self.last;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).context("the browser has gone")?;
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = self
                .from
                .recv_timeout(left)
                .with_context(|| format!("the browser did not answer to {method}"))?;
            if answer["id"] == id {
                if let Some(error) = answer.get("error") {
                    bail!("{method}: {error}");
                }
                return Ok(answer["result"].clone());
            }
            self.note(&answer);
        }
    }

    /// Keeps what happened.
    fn note(&mut self, event: &Value) {
        let of = &event["params"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => self.requests.push(text(&of["request"]["url"])),
            "Runtime.exceptionThrown" => {
                let thrown = &of["exceptionDetails"];
                self.complaints.push(format!("{} {}", thrown["text"], thrown["exception"]));
            }
            "Runtime.consoleAPICalled" if of["type"] == "error" => {
                self.complaints.push(format!("console: {}", of["args"]));
            }
            "Log.entryAdded" if of["entry"]["level"] == "error" => {
                let entry = &of["entry"];
                self.complaints.push(format!("{} {}", text(&entry["text"]), text(&entry["url"])));
            }
            _ => {}
        }
    }

    pub fn open(&mut self, url: &str) -> Result<()> {
        self.call("Page.navigate", json!({ "url": url })).map(drop)
    }

    /// The value of an expression, or of the promise that it is.
    pub fn eval(&mut self, expression: &str) -> Result<Value> {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", asked)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            bail!("{expression}: {} {}", thrown["text"], thrown["exception"]["description"]);
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true: the page is asked for each frame that it paints.
    pub fn wait(&mut self, expression: &str) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let tried = self.eval(&format!(
                "new Promise(done => requestAnimationFrame(() => {{ let is = false; try {{ is = \
                 !!({expression}); }} catch {{}} done(is); }}))"
            ));
            // While a page is being loaded there is nobody to ask.
            if tried.is_ok_and(|value| value == true) {
                return Ok(());
            }
        }
        let body = self.eval("document.body.innerText").unwrap_or_default();
        bail!("never became true: {expression}\ncomplaints: {:?}\npage: {body}", self.complaints)
    }

    pub fn click(&mut self, x: f64, y: f64) -> Result<()> {
        self.mouse("mouseMoved", x, y)?;
        self.mouse("mousePressed", x, y)?;
        self.mouse("mouseReleased", x, y)
    }

    /// Presses at one place, moves, and lets go at another.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) -> Result<()> {
        self.mouse("mouseMoved", from.0, from.1)?;
        self.mouse("mousePressed", from.0, from.1)?;
        self.mouse("mouseMoved", (from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0)?;
        self.mouse("mouseMoved", to.0, to.1)?;
        self.mouse("mouseReleased", to.0, to.1)
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64) -> Result<()> {
        let pressed = kind != "mouseMoved";
        let event = json!({
            "type": kind, "x": x, "y": y, "clickCount": i32::from(pressed),
            "button": if pressed { "left" } else { "none" },
            "buttons": i32::from(kind != "mouseReleased"),
        });
        self.call("Input.dispatchMouseEvent", event).map(drop)
    }

    pub fn key(&mut self, key: &Key<'_>) -> Result<()> {
        let (name, text) = match key {
            Key::Char(character) => (character.to_string(), character.to_string()),
            Key::Named(name @ "Enter") => ((*name).to_owned(), "\r".to_owned()),
            Key::Named(name) => ((*name).to_owned(), String::new()),
        };
        // Some programs look at the old number of a key.
        let code = match name.as_str() {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => name.to_uppercase().bytes().next().map_or(0, i32::from),
        };
        let event = |kind: &str, text: &str| {
            json!({ "type": kind, "key": name, "code": name, "text": text,
                    "windowsVirtualKeyCode": code })
        };
        self.call("Input.dispatchKeyEvent", event("keyDown", &text))?;
        self.call("Input.dispatchKeyEvent", event("keyUp", "")).map(drop)
    }

    pub fn media(&mut self, media: &Media) -> Result<()> {
        let (kind, scheme, forced) = match media {
            Media::Light => ("screen", "light", "none"),
            Media::Dark => ("screen", "dark", "none"),
            Media::Forced => ("screen", "light", "active"),
            Media::Print => ("print", "light", "none"),
        };
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "forced-colors", "value": forced },
        ]);
        let asked = json!({ "media": kind, "features": features });
        self.call("Emulation.setEmulatedMedia", asked).map(drop)
    }

    /// A picture of the page as it is, for a person to look at.
    pub fn shot(&mut self, path: &Path) -> Result<()> {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }))?;
        let bytes = base64(answer["data"].as_str().unwrap_or_default());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
    }

    /// What a screen reader is told: role and name of each thing on the page.
    pub fn accessible(&mut self) -> Result<Vec<(String, String)>> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}))?;
        let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        let seen = nodes.iter().filter(|node| node["ignored"] != true);
        Ok(seen.map(|node| (text(&node["role"]), text(&node["name"]))).collect())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Decodes what the browser encodes: without line breaks, padded.
fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut out, mut bits, mut count) = (Vec::with_capacity(text.len() * 3 / 4), 0_u32, 0);
    for digit in text.bytes().filter_map(digit) {
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_decoded() {
        for (text, bytes) in [("", &b""[..]), ("YQ==", b"a"), ("YWI=", b"ab"), ("YWJj", b"abc")] {
            assert_eq!(base64(text), bytes, "{text}");
        }
    }
}
