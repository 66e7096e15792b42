//! The written forms of what serde cannot write by itself: names of the protocol, messages, numbers.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The format in which a session is written. It changes with every change that an older program would misread.
const FORMAT: u32 = 1;

/// The largest counter that is read. Nothing counts so far, and JSON carries whole numbers exactly up to here.
const MOST: u64 = 1 << 53;

/// Marks what is written with its format. A format that this program does not know is an error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Format;

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(FORMAT)
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Format, D::Error> {
        match u32::deserialize(deserializer)? {
            FORMAT => Ok(Format),
            other => {
                Err(D::Error::custom(format_args!("it has format {other}; this program reads {FORMAT}")))
            }
        }
    }
}

/// Implements the module that writes a type of the tables as its name.
macro_rules! by_name {
    ($(#[$doc:meta])* $module:ident, $type:ty, $name:expr, $parse:expr) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use bytestring::ByteString;
            use serde::de::Error as _;
            use serde::{Deserialize as _, Deserializer, Serializer};

            pub(crate) fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($name(*value))
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let name = ByteString::deserialize(deserializer)?;
                $parse(&name).ok_or_else(|| D::Error::custom(concat!("an unknown ", stringify!($module))))
            }
        }
    };
}

by_name!(
    /// Writes a revision as its date.
    revision, spec::Revision, spec::Revision::as_str, spec::Revision::parse
);
by_name!(
    /// Writes a kind of question as the name of its method.
    question, spec::Question, spec::Question::wire, spec::Question::parse
);

/// Writes the id of a request as the JSON value that it is.
pub(crate) mod id {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::json::Raw;
    use crate::rpc::wire::Id;

    pub(crate) fn serialize<S: Serializer>(id: &Id, serializer: S) -> Result<S::Ok, S::Error> {
        id.raw().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        Id::read(&Raw::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("it is no id of a request"))
    }
}

/// Writes messages as text, as which they are sent.
pub(crate) mod messages {
    use bytes::Bytes;
    use bytestring::ByteString;
    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<'a, S: Serializer>(
        messages: impl IntoIterator<Item = &'a Bytes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let texts = messages.into_iter().map(|message| std::str::from_utf8(message));
        let texts: Result<Vec<&str>, _> = texts.collect();
        serializer.collect_seq(texts.map_err(S::Error::custom)?)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: FromIterator<Bytes>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let texts = Vec::<ByteString>::deserialize(deserializer)?;
        Ok(texts.into_iter().map(ByteString::into_bytes).collect())
    }
}

/// Writes a message as text, as which it is sent.
pub(crate) mod message {
    use bytes::Bytes;
    use bytestring::ByteString;
    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(message: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(message).map_err(S::Error::custom)?)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        ByteString::deserialize(deserializer).map(ByteString::into_bytes)
    }
}

/// Writes a number as text: JSON has no infinity, and a reader of JSON may round.
pub(crate) mod number {
    use bytestring::ByteString;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        ByteString::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Writes a level by its name, where there is one.
pub(crate) mod level {
    use bytestring::ByteString;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use spec::Level;

    pub(crate) fn serialize<S: Serializer>(level: &Option<Level>, serializer: S) -> Result<S::Ok, S::Error> {
        level.map(Level::as_str).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Level>, D::Error> {
        let Some(name) = Option::<ByteString>::deserialize(deserializer)? else { return Ok(None) };
        let level = Level::parse(&name).ok_or_else(|| D::Error::custom("an unknown level"))?;
        Ok(Some(level))
    }
}

/// Writes a method as its name. A name that the tables do not list is a method of an extension.
pub(crate) mod method {
    use bytestring::ByteString;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use spec::Method;

    pub(crate) fn serialize<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(method.wire())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
        let name = ByteString::deserialize(deserializer)?;
        Ok(Method::parse(&name).unwrap_or_else(|| Method::Extension((&*name).into())))
    }
}

/// Reads a number that is counted up, and so must not be near its end.
pub(crate) fn counter<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = u64::deserialize(deserializer)?;
    if number > MOST {
        return Err(D::Error::custom(format_args!("{number} is larger than anything is counted")));
    }
    T::try_from(number).map_err(|_| D::Error::custom(format_args!("{number} is too large here")))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use spec::Method;

    use crate::json::{Object, Raw};
    use crate::model::request::Principal;

    #[derive(Serialize, Deserialize)]
    struct Of(#[serde(with = "super::method")] Method);

    #[test]
    fn methods_of_extensions_and_claims_are_read_back() {
        for method in [Method::ToolsCall, Method::Extension("weather/now".into())] {
            let written = serde_json::to_string(&Of(method.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Of>(&written).unwrap().0, method);
        }
        let claims = Object::new().with("n", Raw::literal("1.0"));
        for principal in [Principal::local(), Principal::named("ann").with_claims(claims)] {
            let written = serde_json::to_string(&principal).unwrap();
            let read: Principal = serde_json::from_str(&written).unwrap();
            assert_eq!((&read, read.claims()), (&principal, principal.claims()));
        }
    }
}
