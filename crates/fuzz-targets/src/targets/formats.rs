//! Any bytes as a JFR file, as pprof or as collapsed stacks: no panic, no hang, no unbounded
//! memory; what is read is a sound profile that every exporter can write, and our readers read
//! again what the exporters wrote.

use tare_formats::{Format, Options, open_bytes, write};

pub fn run(data: &[u8]) {
    let Ok(profile) = open_bytes(data) else { return };
    profile.check().expect("a sound profile");
    // One series per input, by chance: all of them would make the fuzzer slow.
    let filled: Vec<_> = profile.all_series().filter(|(_, series)| !series.is_empty()).collect();
    let Some(&(series, _)) = filled.get(data.len() % filled.len().max(1)) else { return };
    for format in Format::ALL {
        let options = Options {
            series: Some(series),
            threads: data.len().is_multiple_of(2),
            title: "</script>",
            baseline: data.len().is_multiple_of(4).then_some(&profile),
            source: Some(data.len() as u64),
            ..Options::default()
        };
        let mut out = Vec::new();
        let written = write(&profile, format, options, &mut out);
        if written.is_ok() && matches!(format, Format::Jfr | Format::Pprof) {
            let again = open_bytes(&out).expect("what we wrote can be read");
            again.check().expect("a sound profile");
        }
    }
}
