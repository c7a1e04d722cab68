//! Values on the command line: sizes, numbers and times, each in one grammar for all commands.

use std::path::PathBuf;
use std::time::Duration;
use tare_protocol::SampleTrigger;
use tare_session::command_socket::Interval;

/// A file to write; `-` and `-.html` are standard output. Another word with a dash is a flag whose
/// value was forgotten.
pub fn output(text: &str) -> Result<PathBuf, String> {
    if text.starts_with('-') && text != "-" && !text.starts_with("-.") {
        return Err(format!("a file's name is missing before {text}; ./{text} names such a file"));
    }
    Ok(PathBuf::from(text))
}

/// `256M`, `2G`, `800K`; a bare number is bytes.
pub fn size(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        Some(bytes) if (8 << 20..1 << 32).contains(&bytes) => Ok(bytes),
        _ => Err("the memory must be between 8M and 4G".to_owned()),
    }
}

/// `1/100`: one in so many.
pub fn one_in(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("1/").and_then(|number| number.trim().parse().ok());
    let number = number.filter(|number| (1..=1_000_000).contains(number));
    number.ok_or_else(|| "write 1/100 to follow one call in a hundred; up to 1/1000000".to_owned())
}

/// What probes may take: a share of the program's own time, or as much as they need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget(pub Option<f64>);

/// `5%`, or `none`.
pub fn budget(text: &str) -> Result<Budget, String> {
    match text {
        "none" => Ok(Budget(None)),
        _ => match super::profiles::share(text)? {
            share if share > 0.0 => Ok(Budget(Some(share))),
            _ => Err("write a share above 0, such as 5%; none sets no bound".to_owned()),
        },
    }
}

/// What an analysis may take: any amount that is worth trying.
pub fn memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        Some(bytes) if bytes >= 1 << 20 => Ok(bytes),
        _ => Err("the memory must be at least 1M, as 800M or 4G".to_owned()),
    }
}

/// What a link may carry in a second.
pub fn rate(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        Some(bytes) if (1 << 10..=1 << 40).contains(&bytes) => Ok(bytes),
        _ => Err("the rate must be at least 1K, as 200K or 1M".to_owned()),
    }
}

/// `512K`, `64K`: from 1K, below which the JVM does little else, to 1G.
pub fn interval_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        Some(bytes) if (1 << 10..=1 << 30).contains(&bytes) => Ok(bytes),
        _ => Err("the interval must be between 1K and 1G; to count every allocation, use \
                  --alloc-exact"
            .to_owned()),
    }
}

/// An interval of either kind: a time for samples of threads, bytes for those of allocation.
pub fn any_interval(text: &str) -> Result<Interval, String> {
    let time = interval(text).map(|time| Interval::Time(time.as_nanos() as u64));
    let bytes = || interval_bytes(text).map(Interval::Bytes);
    time.or_else(|_| bytes()).map_err(|_| {
        "write a time between 10us and 10s, as 1ms, or bytes between 1K and 1G, as 64K".to_owned()
    })
}

/// `None` if it is no number, or too large a one.
fn bytes(text: &str) -> Result<Option<u64>, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(format!("{unit:?} is no unit of memory; write 64K, 256M or 2G")),
    };
    Ok(number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)))
}

/// A power of two, so that a position in a ring is found by a mask.
pub fn ring(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "K" => 10,
        "M" => 20,
        _ => return Err("write 64K, 4M or 64M".to_owned()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    match bytes {
        Some(bytes) if (64 << 10..=256 << 20).contains(&bytes) && bytes.is_power_of_two() => {
            Ok(bytes)
        }
        _ => Err("a ring has 64K, 128K, 256K, … or 256M".to_owned()),
    }
}

/// `500k`, `20M`, or digits alone.
pub fn number(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err("write 500k or 20M".to_owned()),
    };
    let number = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    number.filter(|n| *n > 0).ok_or_else(|| "write 500k or 20M".to_owned())
}

/// `10ms`, `1ms`, `100us`: from 10 µs, below which nothing can be measured, to 10 s.
pub fn interval(text: &str) -> Result<Duration, String> {
    let remedy = || "write 10ms, 1ms or 100us, between 10us and 10s".to_owned();
    // A bare number would be seconds, which nobody means here.
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(remedy());
    }
    let time = time(text).ok_or_else(remedy)?;
    let range = Duration::from_micros(10)..=Duration::from_secs(10);
    if range.contains(&time) { Ok(time) } else { Err(remedy()) }
}

/// `10us`, `1ms`, `0`: up to a minute.
pub fn threshold(text: &str) -> Result<Duration, String> {
    let remedy = || "write 10us, 500us or 20ms, up to 60s; 0 is every wait".to_owned();
    // A bare number would be seconds, which nobody means here.
    if text != "0" && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(remedy());
    }
    let time = time(text).ok_or_else(remedy)?;
    if time <= Duration::from_secs(60) { Ok(time) } else { Err(remedy()) }
}

pub fn engine(text: &str) -> Result<SampleTrigger, String> {
    text.parse().map_err(|()| {
        let known = SampleTrigger::ALL.map(SampleTrigger::name).join(", ");
        format!("it is none of {known}")
    })
}

/// `10s`, `500ms`, `2m`, `1m30s`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let time = time(text).ok_or("write 500ms, 10s, 1m30s or 1h; a number alone is seconds")?;
    let year = Duration::from_secs(86_400 * 365);
    if (Duration::from_millis(1)..=year).contains(&time) {
        Ok(time)
    } else {
        Err("the time must be between 1 ms and a year".to_owned())
    }
}

/// Numbers with units, added up; a number alone is seconds.
fn time(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        let letters = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let factor = match unit {
            "" if number == text => 1.0,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * factor;
        rest = behind;
    }
    let nanos = (sum * 1e9).round();
    (!text.is_empty() && nanos < u64::MAX as f64).then(|| Duration::from_nanos(nanos as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_analysis_may_take_any_memory_from_a_megabyte_on() {
        assert_eq!(memory("1M"), Ok(1 << 20));
        assert_eq!(memory("300G"), Ok(300 << 30));
        assert!(memory("100K").is_err() && memory("G").is_err() && memory("1T").is_err());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("256M"), Ok(256 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        assert_eq!(size("16777216"), Ok(16 << 20));
        for bad in ["", "M", "1M", "4G", "99999999999999999999G", "16X", "-1"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn intervals_have_units() {
        let check = |text, nanos| assert_eq!(interval(text), Ok(Duration::from_nanos(nanos)));
        check("10ms", 10_000_000);
        check("1ms", 1_000_000);
        check("100us", 100_000);
        check("0.5ms", 500_000);
        check("100µs", 100_000);
        check("1s", 1_000_000_000);
        for bad in ["", "10", "ms", "1us", "11s", "-1ms", "1ns", "1e3ms", "0.01"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn engines_have_names() {
        assert_eq!(engine("timer"), Ok(SampleTrigger::Timer));
        assert!(engine("steam").unwrap_err().contains("perf-clock"));
    }

    #[test]
    fn durations_have_units() {
        let check = |text, millis| assert_eq!(duration(text), Ok(Duration::from_millis(millis)));
        check("10", 10_000);
        check("1.5s", 1_500);
        check("500ms", 500);
        check("2m", 120_000);
        check("1h", 3_600_000);
        check("1m30s", 90_000);
        check("1h0.5m", 3_630_000);
        for bad in
            ["", "s", "10x", "0", "-1", "1.2.3", "1e9h", "99999999h", "1m30", "10 s", "1.5.5s"]
        {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
