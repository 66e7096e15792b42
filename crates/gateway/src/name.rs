//! Names that never collide: an upstream's own name where it is the only one, with the upstream's in front where
//! it is not.

use std::collections::{HashMap, HashSet};

/// Models refuse longer names.
const LONGEST: usize = 64;

/// The names under which `(upstream, own name)` pairs are offered, in the same order. A name is changed only
/// where it collides or is not legal.
pub(crate) fn exposed<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for (_, name) in pairs {
        *count.entry(name).or_default() += 1;
    }
    let mut taken: HashSet<String> = pairs
        .iter()
        .filter(|(_, name)| count.get(name) == Some(&1) && is_legal(name))
        .map(|(_, n)| (*n).to_owned())
        .collect();
    let offered = |(upstream, name): &(&str, &str)| {
        if count.get(name) == Some(&1) && is_legal(name) {
            return (*name).to_owned();
        }
        let wanted = match count.get(name) {
            Some(1) => legal(name),
            _ => legal(&format!("{upstream}_{name}")),
        };
        let mut candidate = clip(&wanted, LONGEST);
        let mut next = 2;
        while !taken.insert(candidate.clone()) {
            let suffix = format!("_{next}");
            candidate = clip(&wanted, LONGEST - suffix.len()) + &suffix;
            next += 1;
        }
        candidate
    };
    pairs.iter().map(offered).collect()
}

fn is_legal(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && legal(name) == name
}

fn legal(name: &str) -> String {
    let legal: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' }).collect();
    if legal.is_empty() { "_".to_owned() } else { legal }
}

fn clip(name: &str, length: usize) -> String {
    name.chars().take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_changed_only_where_it_collides_or_is_not_legal() {
        assert_eq!(exposed(&[("a", "echo"), ("b", "add")]), ["echo", "add"]);
        assert_eq!(exposed(&[("a", "echo"), ("b", "echo"), ("b", "add")]), ["a_echo", "b_echo", "add"]);
        assert_eq!(exposed(&[("a", "x/y z")]), ["x_y_z"]);
    }

    #[test]
    fn no_two_are_ever_the_same_and_none_is_too_long() {
        let long = "n".repeat(100);
        let longer = format!("{long}x");
        let names = exposed(&[
            ("a", "b_c"),
            ("a_b", "c"),
            ("a", "b_c"),
            ("z", "c"),
            ("s", "a_b_c"),
            ("l", &long),
            ("m", &longer),
            ("p", "x y"),
            ("q", "x/y"),
        ]);
        let distinct: HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        assert!(names.iter().all(|name| is_legal(name)), "{names:?}");
    }
}
