//! Colours: text can be read on all of them, and who sees fewer hues can tell them apart.

use super::page::{idle, page};
use super::support::{Directory, Served, shop};
use serde_json::Value;
use tare_browser::{Browser, Media};

type Rgb = [f64; 3];

/// From 0 to 1 each, by how much light there is.
fn linear(colour: [u8; 3]) -> Rgb {
    colour.map(|byte| {
        let value = f64::from(byte) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

/// As WCAG has it.
fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let light = |colour| {
        let [r, g, b] = linear(colour);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// `#abc` or `#aabbcc`.
fn hex(text: &str) -> [u8; 3] {
    let digits = text.trim().trim_start_matches('#');
    let wide = digits.len() > 3;
    [0, 1, 2].map(|at| {
        let part = if wide { &digits[at * 2..at * 2 + 2] } else { &digits[at..=at] };
        let value = u8::from_str_radix(part, 16).unwrap_or_else(|_| panic!("{text} is no colour"));
        if wide { value } else { value * 17 }
    })
}

/// A number of the palette, 0xAABBGGRR.
fn painted(value: &Value) -> [u8; 3] {
    let [red, green, blue, _] = (value.as_u64().unwrap() as u32).to_le_bytes();
    [red, green, blue]
}

/// How far apart two colours are in OKLab; a difference of 0.02 can just be seen.
fn distance(a: Rgb, b: Rgb) -> f64 {
    let lab = |[r, g, b]: Rgb| {
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
        ]
    };
    let (a, b) = (lab(a.map(|v| v.max(0.0))), lab(b.map(|v| v.max(0.0))));
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// What somebody without one kind of cones sees (Machado, Oliveira and Fernandes, 2009).
const SIGHTS: [(&str, [Rgb; 3]); 3] = [
    ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0519]],
    ),
    (
        "deuteranopia",
        [[0.3673, 0.8606, -0.2279], [0.2801, 0.6726, 0.0473], [-0.0118, 0.0429, 0.9689]],
    ),
];

fn seen(by: &[Rgb; 3], colour: [u8; 3]) -> Rgb {
    let light = linear(colour);
    by.map(|row| row.iter().zip(light).map(|(a, b)| a * b).sum())
}

fn palette(browser: &mut Browser, script: &str) -> Value {
    browser.eval(&format!("import('/assets/palette.js').then(p => {script})")).unwrap()
}

#[test]
fn text_can_be_read_on_every_colour() {
    let directory = Directory::new("colours");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let Some(mut browser) = page(&served) else { return };
    for (dark, ink, media) in [(false, "#14171a", Media::Light), (true, "#f4f6f8", Media::Dark)] {
        browser.media(&media).unwrap();
        idle(&mut browser);
        let frames = palette(
            &mut browser,
            &format!(
                "[...'arjidnkcsgf'].flatMap(kind => [...Array(200).keys()].map(n => \
                 p.frameColour(kind, `com.a${{n}}.b.C${{n}}.m${{n}}`, {dark}))).concat([...Array(41).keys()].map(n => \
                 p.changeColour(n / 20 - 1, {dark})))"
            ),
        );
        for colour in frames.as_array().unwrap() {
            let colour = painted(colour);
            let contrast = contrast(colour, hex(ink));
            assert!(contrast >= 4.5, "dark {dark}: {ink} on {colour:?}: {contrast:.2}");
        }
        // Words of the page on what is behind them.
        let mut variable = |name: &str| {
            let script =
                format!("getComputedStyle(document.documentElement).getPropertyValue('--{name}')");
            hex(browser.eval(&script).unwrap().as_str().unwrap())
        };
        let behind = ["back", "panel", "raised", "chosen", "hover"];
        for word in ["ink", "dim", "accent"] {
            for back in behind {
                let contrast = contrast(variable(word), variable(back));
                assert!(contrast >= 4.5, "dark {dark}: {word} on {back}: {contrast:.2}");
            }
        }
        for (word, back) in
            [("bad", "back"), ("bad", "panel"), ("on-accent", "accent"), ("back", "ink")]
        {
            let contrast = contrast(variable(word), variable(back));
            assert!(contrast >= 4.5, "dark {dark}: {word} on {back}: {contrast:.2}");
        }
    }
}

#[test]
fn kinds_and_changes_are_told_apart_without_all_cones() {
    let directory = Directory::new("cones");
    let file = directory.record("shop.tare", &shop());
    let served = Served::start(&file);
    let Some(mut browser) = page(&served) else { return };
    for dark in [false, true] {
        let kinds = palette(
            &mut browser,
            &format!("[...'jdnkc'].map(kind => p.frameColour(kind, null, {dark}))"),
        );
        let change =
            palette(&mut browser, &format!("[1, -1, 0].map(by => p.changeColour(by, {dark}))"));
        for (what, colours) in [("kinds", kinds), ("changes", change)] {
            let colours: Vec<[u8; 3]> = colours.as_array().unwrap().iter().map(painted).collect();
            for (sight, by) in &SIGHTS {
                for (at, a) in colours.iter().enumerate() {
                    for (other, b) in colours.iter().enumerate().skip(at + 1) {
                        let apart = distance(seen(by, *a), seen(by, *b));
                        assert!(
                            apart >= 0.06,
                            "{what} {at} and {other}, dark {dark}, {sight}: {apart:.3}"
                        );
                    }
                }
            }
        }
    }
}
