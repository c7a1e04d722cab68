//! Asks a JVM one of HotSpot's own questions: its properties, or a diagnostic command.

use std::time::Duration;

use crate::attach_socket::Attachment;
use crate::error::Error;
use crate::hotspot;
use crate::jvm::Jvm;

/// Sends an attach command such as `properties` or `jcmd`, with the one argument that these take
/// (for `jcmd` a diagnostic command like `VM.flags -all`), and gives the JVM's text.
pub fn jcmd(jvm: &Jvm, command: &str, argument: &str, timeout: Duration) -> Result<String, Error> {
    ask(jvm, command, [argument, "", ""], timeout)
}

/// Has the JVM write a heap dump of what is alive, after a collection, to a path as it sees it. It
/// stands still meanwhile. Gives what the JVM says of it.
pub fn dump_heap(jvm: &Jvm, path: &str, timeout: Duration) -> Result<String, Error> {
    ask(jvm, "dumpheap", [path, "-live", ""], timeout)
}

fn ask(jvm: &Jvm, command: &str, arguments: [&str; 3], timeout: Duration) -> Result<String, Error> {
    let mut silent = |_| {};
    let mut attachment = Attachment::new(jvm, timeout, &mut silent)?;
    let answer = attachment.command(command, arguments)?;
    if answer.code == 0 {
        return Ok(answer.text);
    }
    let command = format!("{command} {}", arguments[0]).trim_end().to_owned();
    Err(Error::CommandFailed { pid: jvm.pid, command, text: hotspot::one_line(&answer.text) })
}
