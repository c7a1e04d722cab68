//! Takes the page's files into the binary: a table of names and contents, without comments that
//! stand on lines of their own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut files: Vec<PathBuf> =
        fs::read_dir("assets")?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.sort();
    let mut table = String::from("pub const FILES: &[(&str, &[u8])] = &[\n");
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !["js", "css", "html"].iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        fs::write(out.join(&name), stripped(&name, &text))?;
        let path = Path::new("/").join(&name);
        let _ = writeln!(
            table,
            "    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), {path:?}))),"
        );
    }
    table.push_str("];\n");
    fs::write(out.join("assets.rs"), table)
}

/// Without lines that are comments alone. What is beside code stays: a string may look like one.
fn stripped(name: &str, text: &str) -> String {
    if name.ends_with(".html") {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for line in text.lines() {
        let bare = line.trim();
        let opens = bare.starts_with("/*") && (bare.ends_with("*/") || !bare.contains("*/"));
        if inside || opens {
            inside = !bare.ends_with("*/");
        } else if !(bare.is_empty() || name.ends_with(".js") && bare.starts_with("//")) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}
