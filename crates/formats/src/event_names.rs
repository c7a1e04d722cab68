//! What an event is called on a timeline: its kind, but a call of a trace by its method.

use tare_profile::{Event, EventKind, EventTable, MethodId, Profile};

pub struct EventNames<'p> {
    profile: &'p Profile,
    kind: &'p str,
    /// By method, for calls.
    methods: Option<Vec<String>>,
}

impl<'p> EventNames<'p> {
    pub fn new(profile: &'p Profile, table: &'p EventTable) -> Self {
        let methods = (table.kind().name == EventKind::call().name).then(|| {
            let ids = (0..profile.methods.len()).map(|row| MethodId::new(row as u32));
            ids.map(|id| profile.method_name(id)).collect()
        });
        EventNames { profile, kind: &table.kind().name, methods }
    }

    pub fn are_of_calls(&self) -> bool {
        self.methods.is_some()
    }

    pub fn of(&self, event: &Event) -> &str {
        let method = self.methods.as_ref().and_then(|methods| {
            let frame = self.profile.contexts.frame(event.context)?;
            methods.get(self.profile.frames.get(frame).method.index())
        });
        method.map_or(self.kind, String::as_str)
    }
}
