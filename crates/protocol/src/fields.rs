//! The fields of a type and their keys in messages, written down once for both directions.

use crate::{Message, WireError};
use std::fmt::Display;
use std::str::FromStr;

/// A value that a field of a message holds, or several fields, or none.
pub trait Field: Sized {
    fn put(&self, message: Message, key: &'static str) -> Message;
    fn take(message: &Message, key: &'static str) -> Result<Self, WireError>;
}

macro_rules! single {
    ($($type:ty),+) => {$(
        impl Field for $type {
            fn put(&self, message: Message, key: &'static str) -> Message {
                message.with(key, self)
            }

            fn take(message: &Message, key: &'static str) -> Result<Self, WireError> {
                message.parse(key)
            }
        }
    )+};
}

single!(bool, u32, u64);

/// A field that is there or is not.
impl<T: Display + FromStr> Field for Option<T> {
    fn put(&self, message: Message, key: &'static str) -> Message {
        message.with_some(key, self.as_ref())
    }

    fn take(message: &Message, key: &'static str) -> Result<Self, WireError> {
        message.get(key).map(|_| message.parse(key)).transpose()
    }
}

/// A field for each.
impl<T: Display + FromStr> Field for Vec<T> {
    fn put(&self, message: Message, key: &'static str) -> Message {
        message.with_all(key, self)
    }

    fn take(message: &Message, key: &'static str) -> Result<Self, WireError> {
        message.parse_all(key)
    }
}

/// Gives a type the functions that put it into messages and take it out again. Every field is named,
/// or it does not compile.
macro_rules! fields {
    ($type:ident { $($field:ident: $key:literal),+ $(,)? }) => {
        impl $type {
            pub(crate) fn add_to(&self, message: $crate::Message) -> $crate::Message {
                let $type { $($field),+ } = self;
                $(let message = $crate::fields::Field::put($field, message, $key);)+
                message
            }

            pub(crate) fn from_message(
                message: &$crate::Message,
            ) -> Result<Self, $crate::WireError> {
                Ok($type { $($field: $crate::fields::Field::take(message, $key)?),+ })
            }
        }
    };
}
pub(crate) use fields;
