//! Garbage collections of a run, summed up.

use tare_profile::{EventKind, Profile};

/// How often and how long collections stopped the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collections {
    pub count: u64,
    /// Nanoseconds.
    pub total: u64,
    pub longest: u64,
}

impl Collections {
    /// `None` if the profile has none.
    #[must_use]
    pub fn of(profile: &Profile) -> Option<Self> {
        let name = EventKind::gc().name;
        let tables = profile.all_events().filter(|(_, table)| table.kind().name == name);
        let mut sum = Collections::default();
        for event in tables.flat_map(|(_, table)| table.events()) {
            sum.count += 1;
            sum.total = sum.total.saturating_add(event.duration);
            sum.longest = sum.longest.max(event.duration);
        }
        (sum.count > 0).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Event, FieldType, FieldValue, StringId};

    #[test]
    fn collections_of_all_tables_are_summed_up() {
        let mut profile = Profile::new();
        assert_eq!(Collections::of(&profile), None);
        let text = FieldValue::Text(StringId::EMPTY);
        let ours = profile.events_of(&EventKind::new("gc", &[("collector", FieldType::Text)]));
        for duration in [3, 9] {
            profile.events_mut(ours).push(Event { duration, ..Event::default() }, &[text]);
        }
        let foreign = profile.events_of(&EventKind::gc());
        let number = FieldValue::Integer(1);
        let event = Event { duration: 5, ..Event::default() };
        profile.events_mut(foreign).push(event, &[text, text, number, number]);
        let other = profile.events_of(&EventKind::marker());
        profile.events_mut(other).push(event, &[text]);
        let sum = Collections { count: 3, total: 17, longest: 9 };
        assert_eq!(Collections::of(&profile), Some(sum));
    }
}
