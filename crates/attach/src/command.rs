//! Asks a JVM one of HotSpot's own questions: its properties, or a diagnostic command.

use std::time::Duration;

use crate::attach_socket::Attachment;
use crate::error::Error;
use crate::hotspot;
use crate::jvm::Jvm;

/// Sends an attach command such as `properties` or `jcmd`, with the one argument that these take
/// (for `jcmd` a diagnostic command like `VM.flags -all`), and gives the JVM's text.
pub fn jcmd(jvm: &Jvm, command: &str, argument: &str, timeout: Duration) -> Result<String, Error> {
    let mut silent = |_| {};
    let mut attachment = Attachment::new(jvm, timeout, &mut silent)?;
    let answer = attachment.command(command, [argument, "", ""])?;
    if answer.code == 0 {
        return Ok(answer.text);
    }
    let command = format!("{command} {argument}").trim_end().to_owned();
    Err(Error::CommandFailed { pid: jvm.pid, command, text: hotspot::one_line(&answer.text) })
}
