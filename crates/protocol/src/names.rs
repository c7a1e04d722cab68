//! Names that both ends derive in the same way: library file, control directory, build id.

/// The version of the messages after the handshake. Both ends must have the same one; the frozen
/// core (greeting, `hello`, `detach`) is understood across all versions.
pub const PROTOCOL: u32 = 3;

/// The release, as users know it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// 16 hexadecimal digits that name this build of the agent (see `build.rs`).
pub const BUILD_ID: &str = env!("TARE_BUILD_ID");

/// A string that stands in every agent library, so that the tool can see which build a file is
/// before it asks a JVM to load it.
pub const BUILD_MARKER: &str = concat!("tare-build-id:", env!("TARE_BUILD_ID"), ";");

/// The socket's file name inside its directory.
pub const CONTROL_SOCKET: &str = "control";

/// The file names of the sockets where launched JVMs report, and where a recording takes commands.
pub const MEETING_SOCKET: &str = "meet";
pub const COMMAND_SOCKET: &str = "command";

const DIR_PREFIX: &str = ".tare-";
const MEETING_PREFIX: &str = ".tare-run-";
const COMMAND_PREFIX: &str = ".tare-command-";

/// The file name under which a JVM loads the agent of build `id`. A JVM keeps one copy of a
/// library per path, so a new build needs a new name.
#[must_use]
pub fn library_name(id: &str) -> String {
    format!("libtare_agent-{id}.so")
}

/// The directory (mode 0700, in the JVM's temporary directory) that holds the control socket of
/// the agent in process `pid`, as the JVM itself numbers it. `salt` keeps others from guessing
/// and occupying the name.
#[must_use]
pub fn control_dir_name(pid: u32, salt: u32) -> String {
    format!("{DIR_PREFIX}{pid}-{salt:08x}")
}

/// The pid in a name made by [`control_dir_name`], or `None` for any other name.
#[must_use]
pub fn parse_control_dir(name: &str) -> Option<u32> {
    parse(name, DIR_PREFIX)
}

/// The directory of the socket at which the `tare` with this pid waits for JVMs that it starts.
#[must_use]
pub fn meeting_dir_name(pid: u32, salt: u32) -> String {
    format!("{MEETING_PREFIX}{pid}-{salt:08x}")
}

/// The directory of the socket at which a recording of the JVM with this pid takes orders.
#[must_use]
pub fn command_dir_name(pid: u32, salt: u32) -> String {
    format!("{COMMAND_PREFIX}{pid}-{salt:08x}")
}

/// The pid of the JVM in a name made by [`command_dir_name`], or `None` for any other name.
#[must_use]
pub fn parse_command_dir(name: &str) -> Option<u32> {
    parse(name, COMMAND_PREFIX)
}

/// What the directory of a `tare check` is called, before its pid. Its owner has locked it.
pub const CHECK_PREFIX: &str = ".tare-check-";

/// The file name of the socket in a directory that one of these functions has named.
#[must_use]
pub fn socket_in(dir_name: &str) -> Option<&'static str> {
    [
        (DIR_PREFIX, CONTROL_SOCKET),
        (MEETING_PREFIX, MEETING_SOCKET),
        (COMMAND_PREFIX, COMMAND_SOCKET),
    ]
    .into_iter()
    .find_map(|(prefix, socket)| parse(dir_name, prefix).map(|_| socket))
}

fn parse(name: &str, prefix: &str) -> Option<u32> {
    let (pid, salt) = name.strip_prefix(prefix)?.split_once('-')?;
    let hex = salt.len() == 8 && salt.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let plain = !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
    if hex && plain { pid.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_directories_are_recognised_and_nothing_else() {
        assert_eq!(parse_control_dir(&control_dir_name(42, 0xbeef)), Some(42));
        for bad in [".tare-42", ".tare-+2-0000beef", ".tare-42-beef", ".tare-x-0000beef", "tare"] {
            assert_eq!(parse_control_dir(bad), None, "{bad}");
            assert_eq!(socket_in(bad), None, "{bad}");
        }
        assert_eq!(parse_command_dir(&command_dir_name(42, 7)), Some(42));
        assert_eq!(parse_control_dir(&command_dir_name(42, 7)), None);
        for (name, socket) in [
            (control_dir_name(1, 2), CONTROL_SOCKET),
            (meeting_dir_name(1, 2), MEETING_SOCKET),
            (command_dir_name(1, 2), COMMAND_SOCKET),
        ] {
            assert_eq!(socket_in(&name), Some(socket), "{name}");
        }
    }

    #[test]
    fn the_build_id_is_sixteen_hexadecimal_digits() {
        assert_eq!(BUILD_ID.len(), 16);
        assert!(BUILD_ID.bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(BUILD_MARKER.contains(BUILD_ID));
    }
}
