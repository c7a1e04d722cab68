//! `tare view JVM`: its figures grow, a JVM that is killed gives a clear sentence and leaves what was
//! recorded, and a server that ends takes the agent along. From the page engines are switched on and
//! off, and methods measured exactly; nothing stays woven when nobody looks any more.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use tare_browser::Browser;
use tare_jvm_tests::{
    Control, Demo, PATIENCE, Tare, Target, demo_classes, on_each_jdk, wait_until,
};

/// A method that each request calls once.
const HANDLE: &str = "shop.orders.OrderDesk.handle";

/// A front end that asks how things are in the JVM.
fn witness(pid: u32) -> Control {
    let mut control = Control::connect(pid);
    control.greet();
    control
}

/// Has the program serve an order.
fn order(target: &mut Target, number: u32) {
    target.tell(&format!("order {number}"));
    target.wait_for(&format!(" {number} "));
}

/// A page's server, asked as the page asks.
struct Served {
    child: Child,
    host: String,
    token: String,
}

impl Served {
    /// Its link was not opened.
    fn unopened(jvm: &str) -> (Served, String) {
        let mut command = Tare::this().command(&["view", jvm, "--no-open", "--interval", "1ms"]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut link = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut link).expect("a link");
        let link = link.trim().to_owned();
        let address = link.split("/#").next().expect("a link with a code");
        let host = address.strip_prefix("http://").expect("a link").to_owned();
        (Served { child, host, token: String::new() }, link)
    }

    fn start(jvm: &str) -> Served {
        let (mut served, link) = Served::unopened(jvm);
        let (_, code) = link.split_once("/#c=").expect("a link with a code");
        let login = format!("{{\"code\":\"{code}\"}}");
        let length = format!("Content-Length: {}\r\n\r\n{login}", login.len());
        let token = served.body(&format!(
            "POST /api/login HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{length}",
            served.host
        ));
        served.token = token["token"].as_str().expect("a token").to_owned();
        served
    }

    fn body(&self, request: &str) -> Value {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (_, body) = text.split_once("\r\n\r\n").expect("an answer");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn ask(&self, question: &str) -> Value {
        self.body(&format!(
            "GET /api/{question} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: \
             Bearer {}\r\n\r\n",
            self.host, self.token
        ))
    }

    /// Ctrl-C.
    fn end(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("a pid"), Signal::INT).expect("our own child");
        let mut status = None;
        wait_until("Ctrl-C ends it", || {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        assert_eq!(status.and_then(|status| status.code()), Some(0));
    }

    /// Posts a wish, with these headers besides.
    fn wish(&self, wish: &Value, headers: &str) -> Value {
        let body = wish.to_string();
        self.body(&format!(
            "POST /api/live HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: \
             {}\r\n\r\n{body}",
            self.host,
            body.len()
        ))
    }

    fn do_it(&self, wish: &Value) -> Value {
        self.wish(wish, &format!("Authorization: Bearer {}\r\n", self.token))
    }

    /// Until it counts, or says why not.
    fn measure(&self, method: &str, below: bool) -> Value {
        let done = self.do_it(&json!({ "do": "measure", "method": method, "below": below }));
        assert_eq!(done["exactly"]["method"], method, "{done}");
        wait_until("it is woven", || self.ask("live")["exactly"]["state"] != "weaves");
        self.ask("live")["exactly"].clone()
    }

    fn total(&self) -> i64 {
        self.ask("methods?native&idle")["total"].as_i64().unwrap_or(0)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

on_each_jdk! {
    fn a_page_of_a_jvm(jdk) {
        let demo = Demo::start(jdk);
        let mut served = Served::start(&demo.target.name());
        let run = served.ask("run");
        assert_eq!((&run["source"], &run["name"]), (&"live".into(), &"shop.Main".into()), "{run}");
        wait_until("the page has figures", || served.total() > 0);
        let first = served.total();
        wait_until("they grow", || served.total() > first);
        demo.check_answers();
        // Its classes have no source beside them: bytecode, with the figures of its lines.
        let sampled = || {
            let methods = served.ask("methods?q=shop.&limit=200");
            let rows = methods["rows"].as_array().cloned().unwrap_or_default();
            let own = |row: &&Value| row["self"].as_i64() > Some(0) && row["kind"] == "j";
            rows.iter().find(own).map(|row| row["name"].as_str().unwrap().to_owned())
        };
        wait_until("a method of the program was sampled", || sampled().is_some());
        let code = served.ask(&format!("source?method={}", sampled().expect("it was there")));
        assert_eq!(code["is_source"], false, "{code}");
        let lines = code["lines"].as_array().expect("lines");
        let has = |what: &dyn Fn(&Value) -> bool| lines.iter().any(what);
        assert!(has(&|line| line["text"].as_str().is_some_and(|t| t.contains("return"))), "{code}");
        assert!(has(&|line| line["self"].as_i64() > Some(0)), "{code}");
        // Ctrl-C: the program is as it was, and runs on.
        served.end();
        demo.check_answers();
        let listed = Tare::this().listed(demo.target.pid()).expect("it is a JVM");
        assert_eq!(listed["agent"], "detached", "{listed}");

        // And once more, until somebody kills it.
        let served = Served::start(&demo.target.name());
        wait_until("the page has figures", || served.total() > 0);
        demo.target.signal(Signal::KILL);
        wait_until("the page says that the JVM has ended", || served.ask("run")["source"] == "ended");
        let run = served.ask("run");
        let sentence = run["sentence"].as_str().unwrap_or_default();
        assert!(sentence.contains("has ended; what was recorded until then is here"), "{run}");
        assert!(served.total() > 0, "{run}");
    }

    /// The recording hears of it first, and the page must not miss it for that.
    fn ctrl_c_is_heard_every_time(jdk) {
        let demo = Demo::start(jdk);
        for _ in 0..4 {
            Served::start(&demo.target.name()).end();
        }
        demo.check_answers();
    }

    fn a_method_is_measured_exactly_and_taken_back(jdk) {
        let mut target = Target::java(jdk)
            .class_path(demo_classes())
            .main("shop.Main")
            .arg("--serve")
            .arg("--threads=0")
            .arg("--quiet")
            .start();
        order(&mut target, 1);
        let served = Served::start(&target.name());
        // The same locks as for every question, and a wish that is none.
        let wish = json!({ "do": "measure", "method": HANDLE });
        assert!(served.wish(&wish, "")["error"].as_str().unwrap().contains("link"));
        let token = format!("Authorization: Bearer {}\r\n", served.token);
        let foreign = format!("{token}Origin: http://evil.example\r\n");
        assert!(served.wish(&wish, &foreign)["error"].as_str().unwrap().contains("own page"));
        assert!(served.do_it(&json!({ "do": "exec" }))["error"].is_string());
        assert_eq!(served.ask("live")["exactly"], Value::Null);

        let state = served.measure(HANDLE, false);
        assert_eq!(state["state"], "counts", "{state}");
        (1..=100).for_each(|number| order(&mut target, number));
        let count = || served.ask("exactly")["figures"]["count"].clone();
        wait_until("all calls are there", || count() == 100);
        let back = served.do_it(&json!({ "do": "take-back" }));
        assert_eq!(back["exactly"]["state"], "over", "{back}");
        let mut control = witness(target.pid());
        assert!(control.status().exact().is_none(), "something is still woven");
        let figures = served.ask("exactly")["figures"].clone();
        assert_eq!(figures["count"], 100, "{figures}");
        assert!(figures["mean_ns"].as_i64() > Some(0), "{figures}");

        // What is below it: as often, and what it calls besides.
        let state = served.measure(HANDLE, true);
        assert_eq!(state["state"], "counts", "{state}");
        (1..=50).for_each(|number| order(&mut target, number));
        let row = || {
            let exactly = served.ask("exactly");
            let rows = exactly["rows"].as_array().cloned().unwrap_or_default();
            let found = rows.iter().find(|row| row["name"] == HANDLE).cloned();
            (found.unwrap_or_default()["count"].clone(), rows.len())
        };
        wait_until("all calls are there", || row().0 == 50);
        assert!(row().1 > 10, "{:?}", row());
        // Nobody keeps a page open: the program's code is put back by itself.
        wait_until("it is put back", || served.ask("live")["exactly"]["state"] == "over");
        let notes = served.ask("live")["exactly"]["notes"].to_string();
        assert!(notes.contains("nobody looked at the page"), "{notes}");
        assert!(control.status().exact().is_none(), "something is still woven");

        // A refusal has its reason.
        let state = served.measure("shop.orders.OrderDesk.juggle", false);
        wait_until("it is refused", || served.ask("live")["exactly"]["state"] == "refused");
        let notes = served.ask("live")["exactly"]["notes"].to_string();
        assert!(notes.contains("declares no such method"), "{state} {notes}");

        // The tool is killed: the agent puts everything back.
        assert_eq!(served.measure(HANDLE, false)["state"], "counts");
        let on = |control: &mut Control| {
            let status = control.status();
            (status.exact().is_some(), status.sampling().is_some())
        };
        assert_eq!(on(&mut control), (true, true));
        drop(served);
        wait_until("all is off", || on(&mut control) == (false, false));
        order(&mut target, 7);
    }

    fn a_page_measures_and_records_more(jdk) {
        if tare_browser::program().is_none() {
            eprintln!("NOT COVERED: the live page: {}", tare_browser::REMEDY);
            return;
        }
        let demo = Demo::start(jdk);
        let (served, link) = Served::unopened(&demo.target.name());
        let mut browser = Browser::start(1280, 900).expect("it starts");
        browser.open(&link).expect("it answers");
        browser.wait("window.tare && document.body.dataset.page === 'overview'").expect("a page");
        let click = |browser: &mut Browser, what: &str| {
            browser.wait(&format!("!!({what})")).expect("it is there");
            browser.eval(&format!("({what}).click()")).expect("it can be clicked");
        };
        let named = |place: &str, text: &str| {
            format!("[...document.querySelectorAll('{place} button')].find(b => b.textContent === '{text}')")
        };
        // A method that was sampled, whichever it is.
        browser.eval("location.hash = '#/methods?q=shop.orders.OrderDesk.handle'").expect("it goes");
        browser.wait("document.querySelectorAll('#main [data-name]').length > 0").expect("a row");
        browser.eval(&format!("location.hash = '#/sandwich?method={HANDLE}'")).expect("it goes");
        click(&mut browser, &named(".exactly", "Measure exactly"));
        browser.wait("+document.querySelector('[data-exact=calls]')?.dataset.value > 0").expect("calls");
        let woven = "!document.querySelector('[data-woven]').hidden";
        browser.wait(woven).expect("every page says what is woven");
        let mut control = witness(demo.target.pid());
        assert!(control.status().exact().is_some());
        click(&mut browser, &named(".exactly", "Take it back"));
        browser.wait(&format!("!({woven})")).expect("it is taken back");
        assert!(control.status().exact().is_none());

        // Allocation joins the recording, and its page has figures.
        assert!(control.status().alloc().is_none());
        click(&mut browser, &named("#bar", "Record"));
        click(&mut browser, "document.querySelector('[data-part=alloc] input')");
        wait_until("allocation is sampled", || control.status().alloc().is_some());
        browser.wait("!document.querySelector('#rail [data-page=memory]').classList.contains('lacks')").expect("a page");
        browser.eval("location.hash = '#/memory'").expect("it goes");
        browser.wait("document.querySelectorAll('#main tr[data-name]').length > 0").expect("sites");
        let input = "document.querySelector('[data-part=alloc] input')";
        browser.wait(&format!("{input}.checked && !{input}.disabled")).expect("it says so");
        click(&mut browser, input);
        wait_until("it rests", || control.status().alloc().is_some_and(|alloc| alloc.paused));

        // A page that goes takes along what it had woven.
        browser.eval(&format!("location.hash = '#/sandwich?method={HANDLE}'")).expect("it goes");
        click(&mut browser, &named(".exactly", "And all below"));
        wait_until("it is woven", || control.status().exact().is_some());
        browser.wait("document.querySelectorAll('[data-below]').length > 3").expect("what is below it");
        assert_eq!(browser.complaints, Vec::<String>::new());
        drop(browser);
        wait_until("it is put back", || control.status().exact().is_none());
        assert!(control.status().sampling().is_some(), "the recording itself goes on");
        drop(served);
        demo.check_answers();

        // A JVM that is killed under the page: it says so, and what was there can still be read.
        let (_served, link) = Served::unopened(&demo.target.name());
        let mut browser = Browser::start(1280, 900).expect("it starts");
        browser.open(&format!("{link}&/methods")).expect("it answers");
        let rows = "document.querySelectorAll('#main [data-name]').length > 0";
        browser.wait(rows).expect("a row");
        demo.target.signal(Signal::KILL);
        let said = "document.getElementById('say').textContent.includes('has ended; what was recorded')";
        browser.wait(said).expect("a sentence");
        browser.wait(&format!("document.querySelector('[data-age].ended') && {rows}")).expect("rows");
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}
