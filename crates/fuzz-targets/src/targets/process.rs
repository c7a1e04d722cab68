//! What a process on this machine shows of itself. Whoever owns it chose the bytes.

use tare_attach::untrusted;

pub fn perfdata(data: &[u8]) {
    untrusted::perfdata(data);
}

/// Words that end with a zero; behind an empty one, the text of all files that they name.
pub fn command_line(data: &[u8]) {
    let at = data.windows(2).position(|pair| pair == [0, 0]).unwrap_or(data.len());
    let (words, file) = data.split_at(at);
    untrusted::command_line(words, &String::from_utf8_lossy(file.get(2..).unwrap_or_default()));
}

pub fn files(data: &[u8]) {
    untrusted::process_files(data);
}
