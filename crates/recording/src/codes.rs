//! The numbers that stand for the model's enums in a file. They are for ever; new ones are added at
//! the end. A reader takes a number that it does not know for the first of its enum, but for types
//! of fields: how such a field is stored it cannot know, so it skips it.

use tare_profile::{Estimate, Execution, FieldType, MethodKind, ThreadKind, TimeAxis, Unit};

pub fn of_method_kind(kind: MethodKind) -> u64 {
    match kind {
        MethodKind::Java => 0,
        MethodKind::Native => 1,
        MethodKind::Kernel => 2,
        MethodKind::Class => 3,
        MethodKind::Special => 4,
    }
}

pub fn method_kind(code: u64) -> MethodKind {
    match code {
        1 => MethodKind::Native,
        2 => MethodKind::Kernel,
        3 => MethodKind::Class,
        4 => MethodKind::Special,
        _ => MethodKind::Java,
    }
}

pub fn of_execution(execution: Execution) -> u64 {
    match execution {
        Execution::Unknown => 0,
        Execution::Interpreted => 1,
        Execution::Inlined => 2,
        Execution::Native => 3,
        Execution::Kernel => 4,
        Execution::Compiled { tier } => 16 + u64::from(tier),
    }
}

pub fn execution(code: u64) -> Execution {
    match code {
        1 => Execution::Interpreted,
        2 => Execution::Inlined,
        3 => Execution::Native,
        4 => Execution::Kernel,
        16..=271 => Execution::Compiled { tier: (code - 16) as u8 },
        _ => Execution::Unknown,
    }
}

pub fn of_thread_kind(kind: ThreadKind) -> u64 {
    match kind {
        ThreadKind::Java => 0,
        ThreadKind::Virtual => 1,
        ThreadKind::Vm => 2,
        ThreadKind::Native => 3,
    }
}

pub fn thread_kind(code: u64) -> ThreadKind {
    match code {
        1 => ThreadKind::Virtual,
        2 => ThreadKind::Vm,
        3 => ThreadKind::Native,
        _ => ThreadKind::Java,
    }
}

pub fn of_unit(unit: Unit) -> u64 {
    match unit {
        Unit::Count => 0,
        Unit::Nanoseconds => 1,
        Unit::Bytes => 2,
    }
}

pub fn unit(code: u64) -> Unit {
    match code {
        1 => Unit::Nanoseconds,
        2 => Unit::Bytes,
        _ => Unit::Count,
    }
}

pub fn of_estimate(estimate: Estimate) -> u64 {
    match estimate {
        Estimate::Measured => 0,
        Estimate::Compensated => 1,
        Estimate::Lower => 2,
        Estimate::Upper => 3,
    }
}

pub fn estimate(code: u64) -> Estimate {
    match code {
        1 => Estimate::Compensated,
        2 => Estimate::Lower,
        3 => Estimate::Upper,
        _ => Estimate::Measured,
    }
}

/// The width of a bucket; 1 means exact times, and 0 none at all.
pub fn of_time_axis(axis: TimeAxis) -> u64 {
    match axis {
        TimeAxis::None => 0,
        TimeAxis::Exact => 1,
        TimeAxis::Buckets { width } => width.max(2),
    }
}

pub fn time_axis(code: u64) -> TimeAxis {
    match code {
        0 => TimeAxis::None,
        1 => TimeAxis::Exact,
        width => TimeAxis::Buckets { width },
    }
}

pub fn of_field_type(kind: FieldType) -> u64 {
    match kind {
        FieldType::Integer(unit) => of_unit(unit),
        FieldType::Real => 16,
        FieldType::Text => 17,
        FieldType::Thread => 18,
        FieldType::Context => 19,
    }
}

/// `None` for a type of a later version, whose column cannot be read.
pub fn field_type(code: u64) -> Option<FieldType> {
    Some(match code {
        0..=2 => FieldType::Integer(unit(code)),
        16 => FieldType::Real,
        17 => FieldType::Text,
        18 => FieldType::Thread,
        19 => FieldType::Context,
        _ => return None,
    })
}

/// What may be absent: zero, or one more than the value.
pub fn of_option(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}

pub fn option(code: u64) -> Option<u64> {
    code.checked_sub(1)
}

pub fn option_u32(code: u64) -> Option<u32> {
    option(code).and_then(|value| u32::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_back() {
        for code in 0..5 {
            assert_eq!(of_method_kind(method_kind(code)), code);
            assert_eq!(of_execution(execution(code)), code);
        }
        for code in 0..4 {
            assert_eq!(of_thread_kind(thread_kind(code)), code);
            assert_eq!(of_estimate(estimate(code)), code);
            assert_eq!(of_time_axis(time_axis(code)), code);
            assert_eq!(of_option(option(code)), code);
        }
        for code in 0..64 {
            let known = [0, 1, 2, 16, 17, 18, 19].contains(&code);
            assert_eq!(field_type(code).map(of_field_type), known.then_some(code));
        }
        for code in [16, 20, 271] {
            assert_eq!(of_execution(execution(code)), code);
        }
    }
}
