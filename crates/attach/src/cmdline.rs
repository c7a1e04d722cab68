//! Understands a Java command line: the main class or jar, and the few JVM flags that decide
//! whether an attach can work.
//!
//! Pure: files are read through a closure. Which sources of options a JVM has, and in which order
//! they win, is known here.

/// Argument files may name each other; nobody nests them deeper than this on purpose.
const MAX_ARGUMENTS: usize = 20_000;

/// What a command line says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Main class, `module/class` or jar, as written.
    pub main: Option<String>,
    /// The arguments meant for the JVM, with argument files opened.
    pub vm_args: Vec<String>,
}

/// Reads a text file as the JVM would see it.
pub(crate) type ReadFile<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Options of the `java` launcher that take their value from the next argument.
fn takes_value(option: &str) -> bool {
    matches!(
        option,
        "-cp"
            | "-classpath"
            | "--class-path"
            | "-p"
            | "--module-path"
            | "--upgrade-module-path"
            | "--add-modules"
            | "--limit-modules"
            | "--add-reads"
            | "--add-exports"
            | "--add-opens"
            | "--patch-module"
            | "--enable-native-access"
            | "--illegal-native-access"
            | "--source"
            | "-d"
            | "--describe-module"
    )
}

/// Takes a command line apart. `java` says whether the program is the `java` launcher; another
/// program that holds a JVM (javac, jsvc, an own launcher) has a grammar of its own, of which
/// only the flags are taken.
pub(crate) fn understand(argv: &[String], java: bool, read: ReadFile<'_>) -> Launch {
    let mut launch = Launch::default();
    let rest = argv.get(1..).unwrap_or_default();
    if !java {
        let flags = rest.iter().map(|arg| arg.strip_prefix("-J").unwrap_or(arg).to_owned());
        launch.vm_args = flags.filter(|arg| arg.starts_with("-X") || arg == "-Xrs").collect();
        return launch;
    }
    let mut pending: Vec<String> = rest.iter().rev().cloned().collect();
    let mut files = true;
    let mut seen = 0;
    while let Some(arg) = pending.pop() {
        seen += 1;
        if seen > MAX_ARGUMENTS {
            break;
        }
        if let Some(name) = arg.strip_prefix('@').filter(|_| files) {
            if let Some(literal) = name.strip_prefix('@') {
                launch.main = Some(format!("@{literal}"));
                break;
            }
            // The launcher does not open argument files named inside argument files, but what
            // they would hold can only be flags, so that opening them is harmless.
            if let Some(text) = read(name) {
                pending.extend(tokens(&text, true).into_iter().rev());
            }
        } else if arg == "--disable-@files" {
            files = false;
        } else if arg == "-jar" || arg == "-m" || arg == "--module" {
            launch.main = pending.pop();
            break;
        } else if let Some(module) = arg.strip_prefix("--module=") {
            launch.main = Some(module.to_owned());
            break;
        } else if takes_value(&arg) {
            launch.vm_args.push(arg);
            launch.vm_args.extend(pending.pop());
        } else if arg.starts_with('-') {
            launch.vm_args.push(arg);
        } else {
            launch.main = Some(arg);
            break;
        }
    }
    launch
}

/// Splits text as argument files and option variables are split: at white space, with quotes;
/// in files also with comments and with escapes inside quotes.
pub(crate) fn tokens(text: &str, file: bool) -> Vec<String> {
    let mut out = Vec::new();
    let mut token: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), '\\') if file => match chars.next() {
                Some('n') => token.get_or_insert_default().push('\n'),
                Some('t') => token.get_or_insert_default().push('\t'),
                // A backslash at the end of a line joins it with the next, without its indent.
                Some('\n') => while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {},
                Some(other) => token.get_or_insert_default().push(other),
                None => {}
            },
            (Some(_), c) => token.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                token.get_or_insert_default();
            }
            (None, '#') if file && token.is_none() => {
                while chars.next_if(|&c| c != '\n').is_some() {}
            }
            (None, c) if c.is_ascii_whitespace() => out.extend(token.take()),
            (None, c) => token.get_or_insert_default().push(c),
        }
    }
    out.extend(token);
    out
}

/// The JVM settings that matter to us. `None` is "not mentioned".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub disable_attach: Option<bool>,
    pub dynamic_agents: Option<bool>,
    pub reduce_signals: Option<bool>,
    pub tmp_dir: Option<String>,
    /// The home directory of its environment.
    pub home: Option<String>,
}

impl Settings {
    /// Takes over what `args` say; the last mention wins, as in the JVM.
    pub(crate) fn apply(&mut self, args: &[String], read: ReadFile<'_>) {
        self.apply_nested(args, read, 0);
    }

    fn apply_nested(&mut self, args: &[String], read: ReadFile<'_>, depth: u32) {
        for arg in args {
            if arg == "-Xrs" {
                self.reduce_signals = Some(true);
            } else if let Some(dir) = arg.strip_prefix("-Djava.io.tmpdir=") {
                self.tmp_dir = Some(dir.to_owned());
            } else if let Some(flag) = arg.strip_prefix("-XX:") {
                let file = flag.strip_prefix("Flags=").or(flag.strip_prefix("VMOptionsFile="));
                if let Some(text) = file.filter(|_| depth == 0).and_then(read) {
                    self.apply_nested(&flag_file(&text), read, depth + 1);
                }
                self.flag(flag);
            }
        }
    }

    fn flag(&mut self, flag: &str) {
        let (value, name) = match flag.split_at_checked(1) {
            Some(("+", name)) => (true, name),
            Some(("-", name)) => (false, name),
            // A switch may also be written `Name=true`.
            _ => match flag.split_once('=') {
                Some((name, "true")) => (true, name),
                Some((name, "false")) => (false, name),
                _ => return,
            },
        };
        match name {
            "DisableAttachMechanism" => self.disable_attach = Some(value),
            "EnableDynamicAgentLoading" => self.dynamic_agents = Some(value),
            "ReduceSignalUsage" => self.reduce_signals = Some(value),
            _ => {}
        }
    }
}

/// The words of an options file; `-XX:Flags` files write flags without `-XX:`.
fn flag_file(text: &str) -> Vec<String> {
    let word = |word: String| match word.as_bytes().first() {
        Some(b'+') => format!("-XX:{word}"),
        Some(b'-') if !word.starts_with("-X") && !word.starts_with("-D") => format!("-XX:{word}"),
        _ => word,
    };
    tokens(text, true).into_iter().map(word).collect()
}

/// A main class or jar as people say it: the jar's file name, or the class without its module.
pub(crate) fn short(main: &str) -> String {
    let path_like = [".jar", ".war", ".java", ".jmod"].iter().any(|end| main.ends_with(end));
    if path_like || main.starts_with('/') {
        return main.rsplit('/').next().unwrap_or(main).to_owned();
    }
    match main.split_once('/') {
        Some((_, class)) if !class.is_empty() && !class.contains('/') => class.to_owned(),
        _ => main.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn main_of(line: &str) -> Option<String> {
        let read = |name: &str| match name {
            "args" => Some("-cp \"a b\" # comment\n 'com.Filed'\n".to_owned()),
            "loop" => Some("@loop @loop".to_owned()),
            _ => None,
        };
        understand(&args(line), true, &read).main
    }

    #[test]
    fn the_main_class_is_found_in_every_form() {
        for (line, main) in [
            ("java Main -jar x.jar", Some("Main")),
            ("java -cp a:b -Dx=y com.example.Main arg", Some("com.example.Main")),
            ("java --class-path=a com.Main", Some("com.Main")),
            ("java -Xmx1g -jar /opt/app/x.jar --port", Some("/opt/app/x.jar")),
            ("java -p mods -m mod/com.Main", Some("mod/com.Main")),
            ("java --module=mod/com.Main", Some("mod/com.Main")),
            ("java --add-opens java.base/java.lang=ALL-UNNAMED Main", Some("Main")),
            ("java @args", Some("com.Filed")),
            ("java --disable-@files @args", Some("@args")),
            ("java @@x", Some("@x")),
            ("java @loop", None),
            ("java -version", None),
            ("java", None),
            ("", None),
        ] {
            assert_eq!(main_of(line).as_deref(), main, "{line}");
        }
    }

    #[test]
    fn settings_take_the_last_mention() {
        let read = |name: &str| (name == "rc").then(|| "+DisableAttachMechanism\n".to_owned());
        let check = |line: &str| {
            let mut settings = Settings::default();
            settings.apply(&args(line), &read);
            settings
        };
        assert_eq!(check("-Xrs").reduce_signals, Some(true));
        assert_eq!(check("-XX:+ReduceSignalUsage").reduce_signals, Some(true));
        let both = check("-XX:+DisableAttachMechanism -XX:-DisableAttachMechanism");
        assert_eq!(both.disable_attach, Some(false));
        assert_eq!(check("-XX:Flags=rc").disable_attach, Some(true));
        assert_eq!(check("-XX:-EnableDynamicAgentLoading").dynamic_agents, Some(false));
        assert_eq!(check("-XX:EnableDynamicAgentLoading=false").dynamic_agents, Some(false));
        assert_eq!(check("-Djava.io.tmpdir=/x").tmp_dir.as_deref(), Some("/x"));
        assert_eq!(check("-XX: -XX:+ -XX:é"), Settings::default());
    }

    #[test]
    fn tokens_know_quotes_comments_and_escapes() {
        assert_eq!(tokens("a 'b c' \"d\\\"e\" # no\n\"\"", true), ["a", "b c", "d\"e", ""]);
        assert_eq!(tokens("'a\\\n   b'", true), ["ab"]);
        assert_eq!(tokens("-Da='x y' #no", false), ["-Da=x y", "#no"]);
        assert!(tokens(" \n\t", true).is_empty());
        assert_eq!(tokens("'open", true), ["open"]);
    }

    #[test]
    fn names_are_shortened() {
        assert_eq!(short("/opt/app/x.jar"), "x.jar");
        assert_eq!(short("jdk.compiler/com.sun.tools.javac.Main"), "com.sun.tools.javac.Main");
        assert_eq!(short("com.example.Main"), "com.example.Main");
        assert_eq!(short("a/b/c"), "a/b/c");
    }

    #[test]
    fn other_programs_give_only_flags() {
        let argv = args("/usr/bin/jsvc -J-Xrs -cp x -XX:+DisableAttachMechanism Daemon");
        let launch = understand(&argv, false, &|_| None);
        assert_eq!(launch.main, None);
        assert_eq!(launch.vm_args, ["-Xrs", "-XX:+DisableAttachMechanism"]);
    }
}
