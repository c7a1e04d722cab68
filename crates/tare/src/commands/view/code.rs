//! The code that a page shows figures beside: source where it can be found, else bytecode.

use tare_classfile::ClassFile;
use tare_classfile::print::listing;
use tare_session::sources::Sources;
use tare_view::{Code, CodeOf, Problem};

pub fn of(sources: &Sources, asked: &CodeOf) -> Result<Code, Problem> {
    if let Some((origin, text)) = sources.text(&asked.class, &asked.file) {
        let lines = (1..).zip(text.lines()).map(|(n, line)| (Some(n), line.to_owned())).collect();
        return Ok(Code { origin, is_source: true, lines, begins: None });
    }
    bytecode(sources, asked).ok_or_else(|| {
        let text = format!(
            "neither the source of {} was found ({}) nor its class file on the class path",
            asked.class,
            if asked.file.is_empty() { "its file is not known" } else { &asked.file },
        );
        let remedy = "say where sources are: `tare view … --source DIR`, or a jar of them";
        Problem { remedy: Some(remedy.to_owned()), ..Problem::new(404, text) }
    })
}

fn bytecode(sources: &Sources, asked: &CodeOf) -> Option<Code> {
    let bytes = sources.class_file(&asked.class)?;
    let rows = listing(&ClassFile::parse(&bytes).ok()?);
    let is_head = |exact: bool| {
        rows.iter().position(|row| {
            row.begins.as_ref().is_some_and(|(name, descriptor)| {
                *name == asked.name && (!exact || *descriptor == asked.descriptor)
            })
        })
    };
    let begins = is_head(true).or_else(|| is_head(false));
    let origin = format!("bytecode of {}, since its source was not found", asked.class);
    let lines = rows.into_iter().map(|row| (row.line, row.text)).collect();
    Some(Code { origin, is_source: false, lines, begins })
}
