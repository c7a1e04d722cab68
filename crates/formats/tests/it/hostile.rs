//! Files that are cut, bent or made to hurt: an error or what is left of them, never a panic, and
//! no more memory than the file's size warrants.

use crate::real_files::recordings;
use crate::support::{Dice, export, profile};
use std::io::Write;
use std::time::{Duration, Instant};
use tare_formats::{Format, Options, ReadError, open_bytes};

/// Bytes of profile per byte of file that an honest reader may need: a context of one byte takes
/// thirteen, and tables grow by doubling.
const FACTOR: usize = 100;

fn survive(bytes: &[u8]) -> Option<usize> {
    let profile = open_bytes(bytes).ok()?;
    profile.check().unwrap();
    assert!(profile.memory() <= (1 << 20) + FACTOR * bytes.len(), "{} bytes", profile.memory());
    // Whatever was read can be written again.
    if let Ok(series) = tare_formats::default_series(&profile) {
        let options = Options { series: Some(series), ..Options::default() };
        let _ = tare_formats::write(&profile, Format::Collapsed, options, std::io::sink());
        let _ = tare_formats::write(&profile, Format::Html, options, std::io::sink());
    }
    Some(profile.run.losses.len())
}

fn mutate(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = |dice: &mut Dice, bytes: &[u8]| dice.below(bytes.len().max(1));
    for _ in 0..dice.below(6) + 1 {
        if bytes.is_empty() {
            break;
        }
        let place = at(dice, &bytes);
        match dice.below(7) {
            0 => bytes.truncate(place),
            1 | 2 => bytes[place] ^= 1 << dice.below(8),
            3 => {
                let end = (place + 9).min(bytes.len());
                bytes[place..end].fill(0xff);
            }
            4 => bytes[place] = dice.pick(&[0, 1, 2, 0x7f, 0x80, 0xff]),
            5 => {
                let end = (place + dice.below(200)).min(bytes.len());
                let piece = bytes[place..end].to_vec();
                let to = at(dice, &bytes);
                bytes.splice(to..to, piece);
            }
            _ => {
                let end = (place + dice.below(50)).min(bytes.len());
                bytes.drain(place..end);
            }
        }
    }
    bytes
}

fn torture(bytes: &[u8], rounds: u64) {
    let mut dice = Dice::new(7);
    let mut readable = 0;
    for _ in 0..rounds {
        readable += u32::from(survive(&mutate(&mut dice, bytes)).is_some());
    }
    for cut in (0..bytes.len()).step_by(bytes.len() / 30 + 1) {
        survive(&bytes[..cut]);
    }
    assert!(readable > 0, "not one damaged file gave anything");
}

#[test]
fn bent_pprof() {
    torture(&export(&profile(3), Format::Pprof, Options::default()), 1500);
}

#[test]
fn bent_packed_pprof() {
    let options = Options { gzip: true, ..Options::default() };
    torture(&export(&profile(3), Format::Pprof, options), 500);
}

#[test]
fn bent_collapsed() {
    torture(&export(&profile(3), Format::Collapsed, Options::default()), 1000);
}

#[test]
fn bent_jfr_of_ours() {
    torture(&export(&profile(3), Format::Jfr, Options::default()), 1500);
}

#[test]
fn bent_jfr_of_the_jdk() {
    for recording in recordings() {
        torture(&std::fs::read(&recording.path).unwrap(), 60);
    }
}

#[test]
fn a_cut_recording_gives_its_beginning_and_a_warning() {
    let whole = export(&profile(5), Format::Pprof, Options { gzip: true, ..Options::default() });
    let part = open_bytes(&whole[..whole.len() - 6]).unwrap();
    assert!(part.run.losses.iter().any(|loss| loss.reason.contains("damaged")), "{:?}", part.run);

    // Two recordings in a row are one file; without its end, the first is still whole.
    let chunk = export(&profile(5), Format::Jfr, Options::default());
    let both = [&chunk[..], &chunk[..chunk.len() / 2]].concat();
    let (whole, part) = (open_bytes(&chunk).unwrap(), open_bytes(&both).unwrap());
    let total = |profile: &tare_profile::Profile| profile.all_series().next().unwrap().1.total();
    assert_eq!(total(&whole), total(&part));
    let losses: Vec<_> = part.run.losses.iter().map(|loss| loss.name.as_str()).collect();
    assert!(losses.contains(&"chunks"), "{losses:?}");
}

#[test]
fn chunks_add_up() {
    let chunk = export(&profile(5), Format::Jfr, Options::default());
    let once = open_bytes(&chunk).unwrap();
    let twice = open_bytes(&[&chunk[..], &chunk[..]].concat()).unwrap();
    for ((_, once), (_, twice)) in once.all_series().zip(twice.all_series()) {
        assert_eq!(2 * once.total(), twice.total());
    }
    assert_eq!(once.threads.len(), twice.threads.len());
}

#[test]
fn other_versions_and_other_files_are_named() {
    let mut chunk = export(&profile(5), Format::Jfr, Options::default());
    chunk[5] = 1;
    let error = open_bytes(&chunk).unwrap_err();
    assert!(matches!(&error, ReadError::Version { found, .. } if found == "1.1"), "{error}");
    for bytes in [&b""[..], b"\x7fELF\x02\x01\x01", b"PK\x03\x04", b"hello world\n", b"{\"a\":1}"] {
        let error = open_bytes(bytes).unwrap_err();
        assert!(matches!(error, ReadError::Unknown), "{error}");
    }
    assert!(open_bytes(b"FLR\0").is_err());
}

/// A protobuf field of bytes.
fn nested(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

/// One place of very many inlined methods, named over and over: small on disk, endless to walk.
#[test]
fn a_place_of_endless_inlining_is_cut() {
    let line = nested(4, &[0x08, 1]);
    let location = [vec![0x08, 1], line.repeat(100_000)].concat();
    let sample = nested(2, &[nested(1, &[1; 10]), nested(2, &[1])].concat());
    let file = [
        nested(1, &[0x08, 1, 0x10, 1]),
        nested(4, &location),
        nested(5, &[0x08, 1, 0x10, 1]),
        sample.repeat(2_000),
        nested(6, b""),
        nested(6, b"x"),
    ]
    .concat();
    let start = Instant::now();
    let profile = open_bytes(&file).unwrap();
    assert_eq!(profile.all_series().next().unwrap().1.total(), 2_000);
    assert!(profile.contexts.len() <= 2561, "{}", profile.contexts.len());
    // Unbounded, it would be half an hour and more.
    assert!(start.elapsed() < Duration::from_secs(120));
}

#[test]
fn a_bomb_is_refused() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..80 {
        packed.write_all(&b"a;b 1\n".repeat((1 << 20) / 6)).unwrap();
    }
    let error = open_bytes(&packed.finish().unwrap()).unwrap_err();
    assert!(matches!(error, ReadError::Bomb { .. }), "{error}");
    assert!(error.to_string().contains("gunzip"));
}
