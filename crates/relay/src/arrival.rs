//! How a copy of this program comes to run on the far side: a script for any POSIX shell there,
//! and the lines that it answers with before frames begin.

/// Begins every line of the script, so that what a log-in shell prints is told from it.
pub const MARK: &str = "tare-relay";

/// What the script is made of.
pub struct Arrival<'a> {
    /// Both ends must be of this build; words without quotes.
    pub id: &'a str,
    /// Leave the program there for the next time.
    pub keep: bool,
}

/// A line of the script's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A copy of this build is started now; frames follow.
    Runs,
    /// The program is to be sent: first a line with the number of bytes, then these.
    Send {
        /// As `uname -sm` tells it: `Linux x86_64`.
        machine: String,
        /// Whether it may come packed.
        gzip: bool,
    },
    /// It cannot be; why, in the words of whoever refused.
    Failed(String),
}

impl Answer {
    /// Nothing if the line is somebody else's.
    pub fn of_line(line: &str) -> Option<Self> {
        let said = line.trim_end().strip_prefix(MARK)?.strip_prefix(' ')?;
        let (verb, rest) = said.split_once(' ').unwrap_or((said, ""));
        match verb {
            "runs" => Some(Answer::Runs),
            "failed" => Some(Answer::Failed(rest.to_owned())),
            "send" => {
                let (machine, how) = rest.rsplit_once(' ')?;
                Some(Answer::Send { machine: machine.to_owned(), gzip: how == "gzip" })
            }
            _ => None,
        }
    }
}

/// Where a program may be written and run, in this order. `$c` is the user's cache directory.
const PLACES: &str = r#""$c" "$TMPDIR" /tmp /dev/shm /var/tmp"#;

impl Arrival<'_> {
    /// The script. It stands in single quotes for whatever shell a user has, so it has no single
    /// quote, no backslash, no exclamation mark and no line feed; a test sees to it.
    ///
    /// A directory is made with `mkdir`, which fails if somebody was there before, for nobody else
    /// to read. An empty file that is run tells whether the place allows that. What was made goes
    /// again with the shell (`trap`), or with the program, which removes itself once it runs.
    pub fn script(&self) -> String {
        let Arrival { id, keep } = self;
        let name = id.replace(' ', "-");
        let kept = format!(
            r#"if [ "$d" = "$c" ] && mv -f "$x/tare" "$c/tare-{name}"; then rm -rf "$x"; echo "{MARK} runs"; exec "$c/tare-{name}" relay; fi;"#
        );
        let (kept, parents) = if *keep { (kept.as_str(), "-p") } else { ("", "") };
        [
            r#"c="$XDG_CACHE_HOME"; [ -z "$c" ] && [ -n "$HOME" ] && c="$HOME/.cache";"#,
            r#"[ -n "$c" ] && c="$c/tare";"#,
            // A copy that is there.
            &format!(r#"for t in tare "$HOME/.local/bin/tare" "$c/tare-{name}"; do"#),
            &format!(r#"if [ "$("$t" relay --id 2>/dev/null </dev/null)" = "{id}" ]; then"#),
            &format!(r#"echo; echo "{MARK} runs"; exec "$t" relay; fi; done;"#),
            // A place for one.
            r#"umask 077; x=; r() { [ -n "$x" ] && rm -rf "$x"; }; trap r 0; trap "exit 1" 1 2 13 15;"#,
            &format!("for d in {PLACES}; do"),
            r#"case "$d" in /*) ;; *) continue;; esac;"#,
            // No more is made of it than is taken away again.
            &format!(r#"[ "$d" = "$c" ] && mkdir {parents} "$d" 2>/dev/null;"#),
            r#"x="$d/tare-relay-$$"; mkdir "$x" 2>/dev/null || { x=; continue; };"#,
            r#"echo : >"$x/try" && chmod 700 "$x/try" && "$x/try" 2>/dev/null && break;"#,
            r#"r; x=; done; echo;"#,
            &format!(
                r#"[ -n "$x" ] || {{ echo "{MARK} failed none of $c $TMPDIR /tmp /dev/shm /var/tmp can be written and lets programs run"; exit 1; }};"#
            ),
            // Its bytes.
            r#"g=plain; command -v gzip >/dev/null 2>&1 && g=gzip;"#,
            &format!(r#"echo "{MARK} send $(uname -sm) $g"; read -r n || exit 1;"#),
            r#"if [ $g = gzip ]; then head -c "$n" | gzip -dc >"$x/tare"; else head -c "$n" >"$x/tare"; fi;"#,
            r#"chmod 700 "$x/tare"; v=$("$x/tare" relay --id 2>&1 </dev/null);"#,
            &format!(r#"[ "$v" = "{id}" ] || {{ echo "{MARK} failed" $v; exit 1; }};"#),
            kept,
            &format!(r#"echo "{MARK} runs"; exec "$x/tare" relay --remove "$x""#),
        ]
        .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_stand_in_the_quotes_of_any_shell() {
        for keep in [false, true] {
            let script = Arrival { id: "0.1.0 0123456789abcdef", keep }.script();
            assert!(!script.contains(['\'', '\\', '\n', '!']), "{script}");
            assert_eq!(script.contains("mv -f"), keep);
        }
    }

    #[test]
    fn answers_are_told_from_what_shells_print() {
        let answer = |line: &str| Answer::of_line(line);
        assert_eq!(answer("Welcome to box!"), None);
        assert_eq!(answer("tare-relay"), None);
        assert_eq!(answer("tare-relayx runs"), None);
        assert_eq!(answer("tare-relay runs\r\n"), Some(Answer::Runs));
        assert_eq!(
            answer("tare-relay send Linux x86_64 gzip"),
            Some(Answer::Send { machine: "Linux x86_64".into(), gzip: true })
        );
        assert_eq!(
            answer("tare-relay send Linux aarch64 plain"),
            Some(Answer::Send { machine: "Linux aarch64".into(), gzip: false })
        );
        let why = "no such thing".to_owned();
        assert_eq!(answer("tare-relay failed no such thing"), Some(Answer::Failed(why)));
    }
}
