//! A jar: its classes are found, and all of it is woven into another one.

use super::file;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::str::FromStr;
use tare_offline::{Batch, Modes, Settings, classes_of, weave_path};

pub fn run(data: &[u8]) {
    let jar = file(data, 0);
    let input = PathBuf::from(format!("/proc/self/fd/{}", jar.as_raw_fd()));
    let _ = classes_of(&input, &|_| true, &mut |_, _| {});
    let mut batch = Batch::new(Settings::new(Modes::from_str("entry,count").expect("modes")))
        .expect("probes that fit");
    let number = std::process::id();
    let output = std::env::temp_dir().join(format!("tare-fuzz-{number}.jar"));
    let woven = weave_path(&mut batch, &input, &output, &[]);
    let again = woven.as_ref().map(|()| classes_of(&output, &|_| true, &mut |_, _| {}));
    let left = fs::remove_file(&output).is_ok();
    assert_eq!(woven.is_ok(), left, "a jar is there if it was woven, and only then");
    if let Ok(again) = again {
        assert!(again.is_ok(), "what was woven cannot be read: {again:?}");
    }
}
