//! What an event is called on a timeline: its kind, but a call of a trace by its method, and a wait
//! by what it is for.

use std::borrow::Cow;
use tare_profile::{Event, EventKind, EventTable, FieldValue, MethodId, Profile};

pub struct EventNames<'p> {
    profile: &'p Profile,
    table: &'p EventTable,
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
        EventNames { profile, table, kind: &table.kind().name, methods }
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
    /// `monitor enter: com.acme.Pool`.
    pub fn of_row(&self, row: usize, event: &Event) -> Cow<'_, str> {
        if self.kind != EventKind::lock().name {
            return Cow::Borrowed(self.of(event));
        }
        let text = |name| {
            let field = self.table.field_named(name)?;
            match self.table.field(row, field)? {
                FieldValue::Text(text) => Some(self.profile.strings.get(text)),
                _ => None,
            }
        };
        match (text("operation").unwrap_or_default(), text("class").unwrap_or_default()) {
            ("", "") => Cow::Borrowed(self.kind),
            (operation, "") => Cow::Borrowed(operation),
            ("", class) => Cow::Owned(format!("lock: {class}")),
            (operation, class) => Cow::Owned(format!("{operation}: {class}")),
        }
    }
}
