//! Every lock of the server's door, tried with bytes on a socket.

use super::support::{Directory, Served, shop};
use std::io::{Read, Write};

#[test]
fn the_door_opens_for_its_own_page_alone() {
    let directory = Directory::new("door");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let (port, token) = (served.port, served.login());
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let run = |headers: &str| served.ask("GET /api/run", headers);
    let (status, text) = run(&bearer);
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("com.acme.Shop"), "{text}");

    // Who has no token, or another.
    assert_eq!(run("").0, 401);
    assert_eq!(run(&format!("Authorization: Bearer {}\r\n", "0".repeat(64))).0, 401);
    assert_eq!(run(&format!("Authorization: {token}\r\n")).0, 401);
    assert_eq!(run(&format!("Cookie: token={token}\r\n")).0, 401);
    assert_eq!(served.ask(&format!("GET /api/run?token={token}"), "").0, 401);
    assert_eq!(served.ask("GET /api/ticks", "").0, 401);

    // Pages of others, with the token or without; even files are not theirs.
    for foreign in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        &format!("Origin: http://127.0.0.1:{}\r\n", port.wrapping_add(1)),
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        assert_eq!(run(&format!("{bearer}{foreign}")).0, 403, "{foreign}");
        assert_eq!(served.ask("GET /", foreign).0, 403, "{foreign}");
        assert_eq!(served.ask("POST /api/login", foreign).0, 403, "{foreign}");
    }
    let own = format!("Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(run(&format!("{bearer}{own}")).0, 200);

    // Names that lead here and are not ours: DNS rebinding.
    let hosts = ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "localhost:1", ""];
    for host in hosts {
        let request =
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{bearer}\r\n");
        assert_eq!(served.raw(&request).0, 403, "{host:?}");
    }
    assert_eq!(served.raw(&format!("GET / HTTP/1.1\r\nConnection: close\r\n{bearer}\r\n")).0, 403);
    let twice =
        format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: localhost:{port}\r\n\r\n");
    assert_eq!(served.raw(&twice).0, 400);
}

#[test]
fn a_link_opens_one_page_and_secrets_stay() {
    let directory = Directory::new("link");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let token = served.login();
    let body = format!("{{\"code\":\"{}\"}}", served.code());
    let (status, text) = served.raw(&format!(
        "POST /api/login HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: \
         {}\r\n\r\n{body}",
        served.port,
        body.len()
    ));
    assert_eq!(status, 410, "{text}");
    assert!(text.contains("used before") && text.contains("Enter"), "{text}");
    let (_, run) = served.ask("GET /api/run", &format!("Authorization: Bearer {token}\r\n"));
    assert!(!run.contains("hunter2") && run.contains("-Dpassword="), "{run}");
}

#[test]
fn what_is_too_much_is_refused() {
    let directory = Directory::new("much");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let ask = |line: &str, headers: &str| served.ask(line, headers).0;
    assert_eq!(ask("GET /", &format!("X: {}\r\n", "x".repeat(1 << 20))), 431);
    assert_eq!(ask("GET /", &"X: y\r\n".repeat(100)), 431);
    assert_eq!(ask("POST /api/login", "Content-Length: 1048577\r\n"), 413);
    assert_eq!(ask("POST /api/login", "Transfer-Encoding: chunked\r\n"), 501);
    assert_eq!(ask("PUT /", ""), 405);
    for path in ["/../Cargo.toml", "/assets/../../etc/passwd", "/assets/%2e%2e/x", "/assets/", "/x"]
    {
        assert_eq!(ask(&format!("GET {path}"), ""), 404, "{path}");
    }
    let (_, page) = served.ask("GET /", "");
    for header in [
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self';",
        "require-trusted-types-for 'script'",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cross-Origin-Opener-Policy: same-origin",
        "Cross-Origin-Resource-Policy: same-origin",
        "Cache-Control: no-store",
    ] {
        assert!(page.contains(header), "{header} is not in\n{page}");
    }
    assert!(!page.contains("Access-Control"), "{page}");
}

#[test]
fn a_crowd_and_whoever_never_ends_a_request_are_sent_away() {
    let directory = Directory::new("crowd");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    // Half a request each, of those who may come; whoever comes then is one too many.
    let crowd: Vec<_> = (0..32)
        .map(|_| {
            let mut one = served.connect();
            one.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
            one
        })
        .collect();
    let mut statuses = Vec::new();
    for _ in 0..8 {
        let mut text = String::new();
        let mut one = served.connect();
        let _ = one.write_all(b"GET / HTTP/1.1\r\n\r\n");
        let _ = one.read_to_string(&mut text);
        statuses.push(text.split(' ').nth(1).unwrap_or_default().to_owned());
    }
    assert!(statuses.iter().any(|status| status == "503"), "{statuses:?}");
    // Each of the crowd is told after ten seconds, and then there is room again.
    for mut one in crowd {
        let mut text = String::new();
        let _ = one.read_to_string(&mut text);
        assert!(text.starts_with("HTTP/1.1 408"), "{text:?}");
    }
    assert_eq!(served.ask("GET /", "").0, 200);
}
