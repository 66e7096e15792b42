//! `uniqueItems`, for values that a peer chose: elements that are equal are found in an order of all of them, so that
//! the work does not depend on how many of them a hash takes for the same.

use std::cmp::Ordering;

use jsonschema::{Keyword, ValidationError};
use serde_json::{Number, Value};

pub(crate) const KEYWORD: &str = "uniqueItems";

struct Unique(bool);

/// The keyword with its value in a schema.
pub(crate) fn keyword(value: &Value) -> Box<dyn for<'i> Keyword<'i>> {
    Box::new(Unique(*value == Value::Bool(true)))
}

impl<'i> Keyword<'i> for Unique {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            Err(ValidationError::custom("its elements must differ, and two are equal"))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        match instance {
            Value::Array(elements) if self.0 => differ(elements),
            _ => true,
        }
    }
}

fn differ(elements: &[Value]) -> bool {
    let mut sorted: Vec<Part<'_>> = elements.iter().map(Part::of).collect();
    sorted.sort_unstable_by(compare);
    sorted.windows(2).all(|pair| compare(&pair[0], &pair[1]) == Ordering::Less)
}

/// A value whose objects have their members in order.
enum Part<'a> {
    Plain(&'a Value),
    Array(Vec<Part<'a>>),
    Object(Vec<(&'a str, Part<'a>)>),
}

impl<'a> Part<'a> {
    fn of(value: &'a Value) -> Part<'a> {
        match value {
            Value::Array(values) => Part::Array(values.iter().map(Part::of).collect()),
            Value::Object(members) => {
                let mut members: Vec<_> =
                    members.iter().map(|(name, value)| (name.as_str(), Part::of(value))).collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                Part::Object(members)
            }
            plain => Part::Plain(plain),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Part::Plain(Value::Null) => 0,
            Part::Plain(Value::Bool(_)) => 1,
            Part::Plain(Value::Number(_)) => 2,
            Part::Plain(_) => 3,
            Part::Array(_) => 4,
            Part::Object(_) => 5,
        }
    }
}

fn compare(a: &Part<'_>, b: &Part<'_>) -> Ordering {
    match (a, b) {
        (Part::Plain(Value::Bool(a)), Part::Plain(Value::Bool(b))) => a.cmp(b),
        (Part::Plain(Value::Number(a)), Part::Plain(Value::Number(b))) => numbers(a, b),
        (Part::Plain(Value::String(a)), Part::Plain(Value::String(b))) => a.cmp(b),
        (Part::Array(a), Part::Array(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Part::Object(a), Part::Object(b)) => {
            let member = |(a, b): (&(&str, Part<'_>), &(&str, Part<'_>))| {
                a.0.cmp(b.0).then_with(|| compare(&a.1, &b.1))
            };
            let first = a.iter().zip(b).map(member).find(|order| order.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => a.rank().cmp(&b.rank()),
    }
}

/// Numbers by their value: 1 and 1.0 are equal, and integers of 64 bits are told apart.
fn numbers(a: &Number, b: &Number) -> Ordering {
    let whole = |n: &Number| {
        let whole = || n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 2e19);
        #[allow(clippy::cast_possible_truncation)]
        n.as_i64().map(i128::from).or(n.as_u64().map(i128::from)).or_else(|| whole().map(|f| f as i128))
    };
    let near = |n: &Number| n.as_f64().unwrap_or_default();
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        // A fraction lies below 2^53, where integers are exact.
        _ => near(a).total_cmp(&near(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_elements_are_found_however_they_are_written() {
        let unique = |value: Value| differ(value.as_array().unwrap());
        for (elements, differ) in [
            (json!([]), true),
            (json!([1, 1.0]), false),
            (json!([0, -0.0]), false),
            (json!([1, "1", true, null, [1], {"a": 1}]), true),
            (json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]), false),
            (json!([[1, 2], [2, 1], [1], [1, 2, 3], []]), true),
            (json!([u64::MAX, u64::MAX - 1, i64::MIN, i64::MIN + 1, 1e300, 0.5]), true),
            (json!([9_007_199_254_740_993_u64, 9_007_199_254_740_992_u64]), true),
            (json!([{"a": 1}, {"a": 1, "b": 1}, {"b": 1}]), true),
        ] {
            assert_eq!(unique(elements.clone()), differ, "{elements}");
        }
    }

    #[test]
    fn many_elements_that_a_hash_takes_for_one_are_told_apart() {
        // As numbers with a fraction they are all the same.
        let large = |n: usize| (1_u64 << 63) + n as u64;
        let elements: Vec<Value> = (0..40_000).map(|n| json!([large(n % 1000), large(n / 1000)])).collect();
        assert!(differ(&elements));
    }
}
