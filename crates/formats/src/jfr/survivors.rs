//! Objects that live at the end of a run, as the JDK's leak profiler tells them. How many others
//! each stands for is in values of our own; here it is one object of its size.

use super::schema::OLD_OBJECT_SAMPLE;
use super::write::Writer;
use crate::error::WriteError;
use tare_profile::{EventTable, FieldValue};

/// Of what is no array, or of whose length nothing is known.
const NO_ELEMENTS: i32 = i32::MIN;

impl Writer<'_, '_> {
    pub(super) fn write_survivors(&mut self, table: &EventTable) -> Result<(), WriteError> {
        let size = table.field_named("size");
        let nanos = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        // They were all found at the end.
        let end = self.profile.run.duration.min(self.duration);
        for (row, event) in table.events().enumerate() {
            let size = match size.and_then(|field| table.field(row, field)) {
                Some(FieldValue::Integer(size)) => size,
                _ => 0,
            };
            let found = end.max(event.time);
            self.begin(OLD_OBJECT_SAMPLE, found);
            let thread = self.constants.thread(event.thread);
            let (class, context) = self.constants.split_class(event.context);
            let (stack, object) = (self.constants.stack(context), self.constants.object(class));
            let (born, age) = (nanos(event.time), nanos(found - event.time));
            for number in [thread, stack, born, size, age, object] {
                self.event.long(number);
            }
            self.event.int(NO_ELEMENTS);
            self.end()?;
        }
        Ok(())
    }
}
