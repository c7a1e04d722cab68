//! Where a JVM may be, as a user writes it, and the program and words that run a command there.
//! What the user's ssh, docker and kubectl know (keys, jump hosts, contexts, rights) stays theirs.

use std::fmt;
use std::str::FromStr;

/// A machine, a container or a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// `user@box`, a name of the user's ssh configuration, or `ssh://user@box:port`.
    Ssh(String),
    /// `docker:NAME`
    Docker(String),
    /// `pod/NAME` or `pod/NAME/CONTAINER`
    Pod { name: String, container: Option<String> },
}

/// Where a pod is looked for; without them where kubectl looks by itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Kubernetes {
    pub namespace: Option<String>,
    pub context: Option<String>,
}

/// Why text names no place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceError {
    Empty,
    /// A program would take it for an option of its own.
    Dash,
    /// Something that stands in no name.
    Character(char),
    /// More than a pod and a container.
    Slashes,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Empty => write!(
                f,
                "a name is missing; write user@box, docker:NAME, pod/NAME or pod/NAME/CONTAINER"
            ),
            PlaceError::Dash => write!(f, "a name cannot begin with a dash"),
            PlaceError::Character(c) => write!(f, "{c:?} cannot stand in a name"),
            PlaceError::Slashes => {
                write!(f, "a pod is written pod/NAME or pod/NAME/CONTAINER; -n names a namespace")
            }
        }
    }
}

impl std::error::Error for PlaceError {}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        if let Some(name) = text.strip_prefix("docker:") {
            return Ok(Place::Docker(name_of(name)?));
        }
        if let Some(names) = text.strip_prefix("pod/") {
            let mut names = names.split('/');
            let name = name_of(names.next().unwrap_or_default())?;
            let container = names.next().map(name_of).transpose()?;
            return match names.next() {
                Some(_) => Err(PlaceError::Slashes),
                None => Ok(Place::Pod { name, container }),
            };
        }
        Ok(Place::Ssh(name_of(text)?))
    }
}

fn name_of(text: &str) -> Result<String, PlaceError> {
    match text.chars().find(|c| c.is_whitespace() || c.is_control()) {
        Some(c) => Err(PlaceError::Character(c)),
        None if text.is_empty() => Err(PlaceError::Empty),
        None if text.starts_with('-') => Err(PlaceError::Dash),
        None => Ok(text.to_owned()),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Ssh(name) => write!(f, "{name}"),
            Place::Docker(name) => write!(f, "docker:{name}"),
            Place::Pod { name, container: None } => write!(f, "pod/{name}"),
            Place::Pod { name, container: Some(container) } => {
                write!(f, "pod/{name}/{container}")
            }
        }
    }
}

/// Nobody can be asked for a password here; a port that the user's configuration forwards belongs
/// to another ssh of theirs, and a command of that configuration would run in place of ours.
const SSH: [&str; 9] = [
    "-T",
    "-x",
    "-o",
    "BatchMode=yes",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "RemoteCommand=none",
    "--",
];

impl Place {
    /// The program of the user's and its words, for a script of a POSIX shell on the far side. The
    /// script has neither single quotes nor backslashes nor line feeds ([`crate::Arrival`]).
    pub fn command(&self, kubernetes: &Kubernetes, script: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        match self {
            Place::Ssh(host) => {
                add(&["ssh"]);
                add(&SSH);
                // Whatever shell the user has there reads this: quotes are the same for all.
                add(&[host, &format!("exec sh -c '{script}'")]);
            }
            Place::Docker(name) => add(&["docker", "exec", "-i", name, "sh", "-c", script]),
            Place::Pod { name, container } => {
                add(&["kubectl"]);
                if let Some(context) = &kubernetes.context {
                    add(&["--context", context]);
                }
                if let Some(namespace) = &kubernetes.namespace {
                    add(&["--namespace", namespace]);
                }
                add(&["exec", "-i", name]);
                if let Some(container) = container {
                    add(&["-c", container]);
                }
                add(&["--", "sh", "-c", script]);
            }
        }
        words
    }

    /// What the user can try by hand when it does not work.
    pub fn by_hand(&self) -> String {
        match self {
            Place::Ssh(host) => format!("ssh {host} true"),
            Place::Docker(name) => format!("docker exec {name} true"),
            Place::Pod { name, .. } => format!("kubectl exec {name} -- true"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_read_and_written() {
        for text in [
            "box",
            "ann@box.acme.com",
            "ssh://ann@box:2222",
            "ann@[2001:db8::1]",
            "docker:shop_app-1",
            "pod/orders-6f7c",
            "pod/orders-6f7c/app",
        ] {
            assert_eq!(place(text).to_string(), text);
        }
    }

    #[test]
    fn what_a_program_would_take_for_an_option_is_refused() {
        let error = |text: &str| text.parse::<Place>().unwrap_err();
        assert_eq!(error("-oProxyCommand=x"), PlaceError::Dash);
        assert_eq!(error("docker:--privileged"), PlaceError::Dash);
        assert_eq!(error("pod/x/-c"), PlaceError::Dash);
        assert_eq!(error(""), PlaceError::Empty);
        assert_eq!(error("docker:"), PlaceError::Empty);
        assert_eq!(error("pod/"), PlaceError::Empty);
        assert_eq!(error("pod/a/"), PlaceError::Empty);
        assert_eq!(error("pod/a/b/c"), PlaceError::Slashes);
        assert_eq!(error("box rm"), PlaceError::Character(' '));
        assert_eq!(error("box\n"), PlaceError::Character('\n'));
    }

    #[test]
    fn the_words_are_those_of_each_program() {
        let words = |text: &str| place(text).command(&Kubernetes::default(), "a; b").join(" ");
        assert_eq!(
            words("ann@box"),
            "ssh -T -x -o BatchMode=yes -o ClearAllForwardings=yes -o RemoteCommand=none -- ann@box \
             exec sh -c 'a; b'"
        );
        assert_eq!(words("docker:shop"), "docker exec -i shop sh -c a; b");
        assert_eq!(words("pod/shop"), "kubectl exec -i shop -- sh -c a; b");
        let kubernetes =
            Kubernetes { namespace: Some("prod".into()), context: Some("west".into()) };
        assert_eq!(
            place("pod/shop/app").command(&kubernetes, "x").join(" "),
            "kubectl --context west --namespace prod exec -i shop -c app -- sh -c x"
        );
    }
}
