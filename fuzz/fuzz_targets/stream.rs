//! `stream` of crates/fuzz-targets.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let target = tare_fuzz_targets::Target::find("stream").expect("a target");
    (target.run)(data);
});
