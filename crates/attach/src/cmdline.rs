//! Understands a Java command line: the main class or jar, and the few JVM flags that decide
//! whether an attach can work.
//!
//! Pure: files are read through a closure. Which sources of options a JVM has, and in which order
//! they win, is known here.

/// More arguments than this nobody gives on purpose; what follows is not looked at.
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
    let mut words = opened(rest, read).into_iter();
    while let Some(arg) = words.next() {
        if arg == "-jar" || arg == "-m" || arg == "--module" {
            launch.main = words.next();
            break;
        } else if let Some(module) = arg.strip_prefix("--module=") {
            launch.main = Some(module.to_owned());
            break;
        } else if takes_value(&arg) {
            launch.vm_args.push(arg);
            launch.vm_args.extend(words.next());
        } else if arg.starts_with('-') {
            launch.vm_args.push(arg);
        } else {
            launch.main = Some(arg);
            break;
        }
    }
    launch
}

/// Arguments with the files among them opened, as the launcher does it: up to the main class, and
/// not those that are named inside such a file.
pub(crate) fn opened(arguments: &[String], read: ReadFile<'_>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let (mut files, mut value, mut program) = (true, false, false);
    for arg in arguments {
        if out.len() >= MAX_ARGUMENTS {
            break;
        }
        let before = out.len();
        match arg.strip_prefix('@').filter(|_| files && !program) {
            Some(name) if name.starts_with('@') => out.push(name.to_owned()),
            Some(name) => {
                let words = read(name).map(|text| tokens(&text, true)).unwrap_or_default();
                out.extend(words.into_iter().take(MAX_ARGUMENTS - before));
            }
            None if arg == "--disable-@files" => files = false,
            None => out.push(arg.clone()),
        }
        for word in &out[before..] {
            program |= !value && (!word.starts_with('-') || is_main(word));
            value = !value && takes_value(word);
        }
    }
    out
}

/// Options after which the program's own arguments begin.
fn is_main(option: &str) -> bool {
    matches!(option, "-jar" | "-m" | "--module") || option.starts_with("--module=")
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

/// All options of a `java` command that is about to be started, in the order in which they are
/// taken: from its variables, from its words and the files among them, and from files of options
/// that these name. `read` reads a file, `variable` a variable.
#[must_use]
pub fn vm_options(
    arguments: &[String],
    read: &dyn Fn(&str) -> Option<String>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let words = |name: &str| tokens(&variable(name).unwrap_or_default(), false);
    let mut argv = vec!["java".to_owned()];
    argv.extend(opened(&words("JDK_JAVA_OPTIONS"), read));
    argv.extend(arguments.iter().cloned());
    let given =
        [words("JAVA_TOOL_OPTIONS"), understand(&argv, true, read).vm_args, words("_JAVA_OPTIONS")];
    let mut options = Vec::new();
    for option in given.into_iter().flatten() {
        let flag = option.strip_prefix("-XX:").unwrap_or_default();
        let file = flag.strip_prefix("Flags=").or(flag.strip_prefix("VMOptionsFile="));
        options.extend(file.and_then(read).iter().flat_map(|text| flag_file(text)));
        options.push(option);
    }
    options
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
        Some(b'+' | b'A'..=b'Z') => format!("-XX:{word}"),
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
            "flags" => Some("-Xmx1g -cp".to_owned()),
            "jar" => Some("-jar x.jar".to_owned()),
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
            ("java @loop", Some("@loop")),
            ("java @flags a:b @args", Some("com.Filed")),
            ("java @flags @args", Some("a b")),
            ("java @jar @loop", Some("x.jar")),
            ("java Main @loop", Some("Main")),
            ("java -cp @args", Some("a b")),
            ("java -version", None),
            ("java", None),
            ("", None),
        ] {
            assert_eq!(main_of(line).as_deref(), main, "{line}");
        }
    }

    #[test]
    fn files_of_arguments_do_not_multiply() {
        let reads = std::cell::Cell::new(0);
        let read = |_: &str| {
            reads.set(reads.get() + 1);
            Some("@bomb ".repeat(100_000))
        };
        let launch = understand(&args("java @bomb @bomb"), true, &read);
        assert_eq!((launch.main.as_deref(), launch.vm_args.len()), (Some("@bomb"), 0));
        assert!(reads.get() <= 2, "{}", reads.get());
        let many: Vec<String> = (0..100_000).map(|n| format!("-Dn={n}")).collect();
        assert!(opened(&many, &read).len() <= MAX_ARGUMENTS);
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
    fn options_come_from_everywhere() {
        let read = |name: &str| match name {
            "args" => Some("-Xa -XX:Flags=flags".to_owned()),
            "flags" => Some("+B\nC=1 -D".to_owned()),
            _ => None,
        };
        let variable = |name: &str| match name {
            "JAVA_TOOL_OPTIONS" => Some("-Xfirst".to_owned()),
            "JDK_JAVA_OPTIONS" => Some("@args".to_owned()),
            "_JAVA_OPTIONS" => Some("-Xlast".to_owned()),
            _ => None,
        };
        let options = vm_options(&args("-Xmx1g Main -Xno"), &read, &variable);
        let expected = "-Xfirst -Xa -XX:+B -XX:C=1 -D -XX:Flags=flags -Xmx1g -Xlast";
        assert_eq!(options.join(" "), expected);
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
