//! Requests to the page of `tare view`, which anything on the machine can send.

pub fn run(data: &[u8]) {
    let is_in = tare_view::untrusted_request(data);
    assert!(!is_in, "a request is let in without the token");
}
