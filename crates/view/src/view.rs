//! What part of a recording a question is about, as the page writes it: options of `tare report`
//! by their names. What they mean is up to whoever reads recordings.

/// Options with a value.
const KEYS: [&str; 8] = ["metric", "by", "time", "thread", "package", "root", "hide", "compensate"];
/// Options without.
const FLAGS: [&str; 6] = ["stable", "fold-recursion", "hide-jdk", "java-only", "native", "idle"];

/// Some options, in an order that depends on nothing but them: equal views are equal values.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct View {
    options: Vec<(&'static str, String)>,
}

impl View {
    /// The options among the parameters of a request.
    pub fn of(parameters: &[(String, String)]) -> Self {
        let known = |key: &str| KEYS.iter().chain(&FLAGS).copied().find(|known| *known == key);
        let wanted = |key: &str, value: &str| {
            if FLAGS.contains(&key) { !matches!(value, "0" | "false") } else { !value.is_empty() }
        };
        let mut options: Vec<(&'static str, String)> = parameters
            .iter()
            .filter(|(key, value)| wanted(key, value))
            .filter_map(|(key, value)| {
                let key = known(key)?;
                Some((key, if FLAGS.contains(&key) { String::new() } else { value.clone() }))
            })
            .collect();
        options.sort();
        options.dedup();
        View { options }
    }

    /// The same of the whole run.
    #[must_use]
    pub fn without_time(&self) -> View {
        self.without("time")
    }

    #[must_use]
    pub fn without(&self, key: &str) -> View {
        let options = self.options.iter().filter(|(known, _)| *known != key).cloned().collect();
        View { options }
    }

    #[must_use]
    pub fn with_time(&self, time: &str) -> View {
        self.with("time", time)
    }

    /// With one value of an option, and no other.
    #[must_use]
    pub fn with(&self, key: &'static str, value: &str) -> View {
        let mut view = self.without(key);
        view.options.push((key, value.to_owned()));
        view.options.sort();
        view
    }

    /// As options of a command. A value stands in the same word, so that it is none, whatever it
    /// begins with.
    pub fn options(&self) -> Vec<String> {
        let option = |(key, value): &(&str, String)| match value.as_str() {
            "" => format!("--{key}"),
            value => format!("--{key}={value}"),
        };
        self.options.iter().map(option).collect()
    }

    pub fn has(&self, key: &str) -> bool {
        self.options.iter().any(|(known, _)| *known == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_views_are_equal_however_they_are_written() {
        let view = |query: &str| View::of(&crate::http::pairs(query).unwrap());
        let one = view("time=1s..2s&native&thread=b&thread=a&q=x&metric=");
        assert_eq!(one, view("thread=a&native=1&idle=0&thread=b&time=1s..2s&thread=a"));
        assert_eq!(one.options(), ["--native", "--thread=a", "--thread=b", "--time=1s..2s"]);
        assert_eq!(one.without_time(), view("thread=a&thread=b&native"));
        assert_eq!(one.with_time("..3s"), view("thread=a&thread=b&native&time=..3s"));
        assert_eq!(view("root=--metric=x").options(), ["--root=--metric=x"]);
    }
}
