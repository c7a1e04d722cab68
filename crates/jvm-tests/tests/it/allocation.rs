//! Recordings of allocation: one under way, and what it holds by site and type.

use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::Path;
use tare_jvm_tests::{Control, Outcome, Running, Tare, Target, control_socket, wait_until};
use tare_profile::{ContextId, MethodKind, Profile, ValueKind};
use tare_protocol::AllocStatus;

#[derive(Clone, Copy, Debug, Default)]
pub struct Amount {
    pub objects: f64,
    pub bytes: f64,
}

/// By site, with the type of its objects: `tiny AllocTruth$Tiny`.
pub type Sites = BTreeMap<String, Amount>;

/// `METHOD TYPE` of a context whose innermost method is one of that class.
pub fn site(profile: &Profile, context: ContextId, program: &str) -> Option<String> {
    let mut frames = profile.contexts.frames(context);
    let class = profile.method_of(frames.next()?);
    let method = profile.method_of(frames.next()?);
    let text = |id| profile.strings.get(id);
    (class.kind == MethodKind::Class && text(method.class) == program)
        .then(|| format!("{} {}", text(method.name), text(class.class)))
}

/// The sum of two series by site: bytes and objects.
fn sums(profile: &Profile, program: &str, name: &str, kinds: [ValueKind; 2]) -> Sites {
    let mut sums = Sites::new();
    for (which, kind) in kinds.into_iter().enumerate() {
        let series = profile.all_series().map(|(_, series)| series);
        let series = series.into_iter().find(|s| s.info().name == name && s.info().kind == kind);
        for row in series.unwrap_or_else(|| panic!("no series {name} of {kind:?}")).rows() {
            if let Some(site) = site(profile, row.context, program) {
                let amount: &mut Amount = sums.entry(site).or_default();
                let value = if which == 0 { &mut amount.bytes } else { &mut amount.objects };
                *value += row.value as f64;
            }
        }
    }
    sums
}

/// All that was allocated.
pub fn allocated(profile: &Profile, program: &str) -> Sites {
    sums(profile, program, "alloc", [ValueKind::AllocatedBytes, ValueKind::AllocatedObjects])
}

/// What lives at the end.
pub fn live(profile: &Profile, program: &str) -> Sites {
    sums(profile, program, "live", [ValueKind::LiveBytes, ValueKind::LiveObjects])
}

/// A recording of allocation under way.
pub struct Session {
    recording: Running,
    control: Control,
}

impl Session {
    pub fn start(target: &Target, interval: &str, file: &Path) -> Session {
        let words = ["--alloc", "--interval-bytes", interval];
        Session::begin(target, &words, &["alloc"], file)
    }

    /// Every object of these classes is watched.
    pub fn watch(target: &Target, classes: &[&str], file: &Path) -> Session {
        let live = classes.iter().flat_map(|class| ["--live", class]);
        let words: Vec<&str> = ["--alloc-exact"].into_iter().chain(live).collect();
        Session::begin(target, &words, &["exact", "alloc", "pauses"], file)
    }

    fn begin(target: &Target, words: &[&str], engines: &[&str], file: &Path) -> Session {
        let (file, name) = (file.display().to_string(), target.name());
        let words = [&["record"], words, &["-o", &file, &name]].concat();
        let recording = Tare::this().start(&words);
        control_socket(target.pid());
        wait_until("allocation is recorded", || {
            Tare::this().status(&name)["engines"] == serde_json::json!(engines)
        });
        let mut control = Control::connect(target.pid());
        control.greet();
        Session { recording, control }
    }

    pub fn status(&mut self) -> AllocStatus {
        self.control.status().alloc().cloned().expect("the engine is on")
    }

    /// As Ctrl-C does it; what the recording says at its end.
    pub fn stop(self) -> Outcome {
        // The agent stays for whoever is connected.
        let Session { recording, control } = self;
        drop(control);
        recording.signal(Signal::INT);
        let outcome = recording.wait();
        outcome.ok();
        outcome
    }
}
