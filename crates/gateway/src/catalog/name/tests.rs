use std::collections::BTreeMap;

use super::*;

/// Names of servers, out of their own; `given` before.
struct Case<'a> {
    servers: &'a [&'a str],
    given: GivenNames,
    prefix: Prefix,
    names: Names,
}

impl Default for Case<'_> {
    fn default() -> Self {
        let servers = &["a", "b", "bad", "good"];
        Case { servers, given: GivenNames::default(), prefix: Prefix::Collision, names: Names::Protocol }
    }
}

impl Case<'_> {
    fn of(&self, pairs: &[(&str, &str)]) -> Vec<Option<String>> {
        let candidates: Vec<_> =
            pairs.iter().map(|(server, own)| Candidate { server, own, wanted: None }).collect();
        let rules = NamingRules { prefix: self.prefix, names: self.names, servers: self.servers };
        exposed(&candidates, &self.given, rules)
    }

    /// What was given is remembered.
    fn then(&mut self, pairs: &[(&str, &str)]) -> Vec<Option<String>> {
        let names = self.of(pairs);
        for ((server, own), name) in pairs.iter().zip(&names) {
            self.given.entry((*server).to_owned()).or_default().insert((*own).to_owned(), name.clone());
        }
        names
    }
}

fn known(pairs: &[(&str, &str)]) -> GivenNames {
    let mut given = GivenNames::default();
    for (server, own) in pairs {
        let names: &mut BTreeMap<_, _> = given.entry((*server).to_owned()).or_default();
        names.insert((*own).to_owned(), None);
    }
    given
}

fn shown(names: &[&str]) -> Vec<Option<String>> {
    names.iter().map(|name| Some((*name).to_owned())).collect()
}

#[test]
fn a_name_is_changed_only_where_it_collides_or_is_not_legal() {
    let case = Case::default();
    assert_eq!(case.of(&[("a", "echo"), ("b", "add")]), shown(&["echo", "add"]));
    assert_eq!(case.of(&[("a", "echo"), ("b", "echo"), ("b", "add")]), shown(&["a_echo", "b_echo", "add"]));
    assert_eq!(case.of(&[("a", "x/y z")]), shown(&["x_y_z"]));
}

#[test]
fn a_server_that_is_not_there_keeps_its_names_apart() {
    let case = Case { given: known(&[("b", "echo")]), ..Case::default() };
    assert_eq!(case.of(&[("a", "echo")]), shown(&["a_echo"]));
}

#[test]
fn prefixes_can_be_had_always_or_never() {
    let pairs = [("a", "echo"), ("b", "echo"), ("b", "add")];
    let always = Case { prefix: Prefix::Always, ..Case::default() };
    assert_eq!(always.of(&pairs), shown(&["a_echo", "b_echo", "b_add"]));
    let never = Case { prefix: Prefix::None, ..Case::default() };
    assert_eq!(never.of(&pairs), [Some("echo".to_owned()), None, Some("add".to_owned())]);
}

#[test]
fn a_name_that_was_given_stays_with_its_owner() {
    let mut case = Case::default();
    assert_eq!(case.then(&[("bad", "echo"), ("good", "echo")]), shown(&["bad_echo", "good_echo"]));
    // Whoever comes first in the list, and whether the owner is there or not.
    let stolen = case.of(&[("bad", "good_echo"), ("bad", "echo"), ("good", "echo")]);
    assert_eq!(stolen, shown(&["bad_good_echo", "bad_echo", "good_echo"]));
    assert_eq!(case.of(&[("bad", "good_echo"), ("bad", "echo")]), shown(&["bad_good_echo", "bad_echo"]));
    // One that was given without a prefix, too, and also while its owner lists it no more.
    let mut case = Case::default();
    assert_eq!(case.then(&[("good", "add")]), shown(&["add"]));
    assert_eq!(case.of(&[("bad", "add"), ("good", "add")]), shown(&["bad_add", "add"]));
    assert_eq!(case.of(&[("bad", "add"), ("good", "other")]), shown(&["bad_add", "other"]));
}

#[test]
fn what_begins_with_the_name_of_another_server_is_not_given() {
    let case = Case { servers: &["git", "github", "git_hub"], ..Case::default() };
    let names =
        case.of(&[("github", "git_status"), ("git", "git_log"), ("git", "hub_x"), ("git_hub", "git_hub_x")]);
    assert_eq!(names, shown(&["github_git_status", "git_log", "hub_x", "git_hub_x"]));
    // With its own in front it can still begin as those of a server with a longer name.
    let always = Case { prefix: Prefix::Always, servers: &["git", "git_hub"], ..Case::default() };
    let names: Vec<String> = always.of(&[("git", "hub_x"), ("git_hub", "x")]).into_iter().flatten().collect();
    assert!(names[0].starts_with("git_hub_x_") && names[1] == "git_hub_x", "{names:?}");
}

#[test]
fn what_the_configuration_says_counts() {
    let rules = NamingRules { prefix: Prefix::Always, names: Names::Protocol, servers: &["a", "b"] };
    let candidates = [
        Candidate { server: "a", own: "read", wanted: None },
        Candidate { server: "b", own: "read", wanted: Some("a_read") },
        Candidate { server: "b", own: "write", wanted: Some("a_read") },
    ];
    let names: Vec<String> =
        exposed(&candidates, &GivenNames::default(), rules).into_iter().flatten().collect();
    assert_eq!(names[1], "a_read", "it is what its user called it");
    assert_eq!(names[2], "b_a_read");
    assert!(names[0].starts_with("a_read_"), "{names:?}");
}

#[test]
fn strict_names_have_no_dots() {
    let strict = Case { names: Names::Strict, ..Case::default() };
    assert_eq!(strict.of(&[("a", "x.y"), ("b", "x_y")])[1], Some("x_y".to_owned()));
    assert!(strict.of(&[("a", "x.y"), ("b", "x_y")]).iter().flatten().all(|n| is_legal(n, Names::Strict)));
    assert_eq!(strict.of(&[("a", "x.y")]), shown(&["x_y"]));
    assert_eq!(Case::default().of(&[("a", "x.y")]), shown(&["x.y"]));
}

#[test]
fn what_cannot_be_written_is_told_apart_and_stays() {
    let case = Case::default();
    let names: Vec<String> =
        case.of(&[("a", "取得"), ("a", "設定"), ("a", "größe")]).into_iter().flatten().collect();
    assert!(
        names[0].starts_with("named_") && names[1].starts_with("named_") && names[0] != names[1],
        "{names:?}"
    );
    assert!(names[2].starts_with("gr__e_"), "{names:?}");
    // Alone or among others, in any order.
    assert_eq!(case.of(&[("a", "設定")])[0].as_ref(), Some(&names[1]));
}

#[test]
fn a_long_name_of_a_server_leaves_room_for_the_tool_s() {
    let (server, tool) = ("s".repeat(80), "t".repeat(40));
    let servers = [server.as_str()];
    let always = Case { prefix: Prefix::Always, servers: &servers, ..Case::default() };
    let name = always.of(&[(&server, &tool)])[0].clone().unwrap();
    assert!(name.contains(&tool) && name.starts_with("ssss") && name.len() == MAX_NAME_LENGTH, "{name}");
}

#[test]
fn no_two_are_ever_the_same_and_none_is_too_long() {
    let long = "n".repeat(100);
    let longer = format!("{long}x");
    let pairs = [
        ("a", "b_c"),
        ("a_b", "c"),
        ("z", "b_c"),
        ("z", "c"),
        ("s", "a_b_c"),
        ("l", long.as_str()),
        ("m", longer.as_str()),
        ("p", "x y"),
        ("q", "x/y"),
    ];
    for prefix in [Prefix::Always, Prefix::Collision] {
        for names in [Names::Protocol, Names::Strict] {
            let servers = ["a", "a_b", "z", "s", "l", "m", "p", "q"];
            let case = Case { servers: &servers, prefix, names, ..Case::default() };
            let given: Vec<String> = case.of(&pairs).into_iter().flatten().collect();
            let distinct: HashSet<_> = given.iter().collect();
            assert_eq!((distinct.len(), given.len()), (pairs.len(), pairs.len()), "{given:?}");
            assert!(given.iter().all(|name| is_legal(name, names)), "{given:?}");
        }
    }
}

/// Each name that would be the same as another is tried a few times, however many there are.
#[test]
fn names_that_would_all_be_the_same_are_told_apart_in_one_go() {
    // They differ in nothing that may stand in a name.
    let own: Vec<String> =
        (0..4000u32).map(|n| format!("x{}", char::from_u32(0x4e00 + n).unwrap())).collect();
    let pairs: Vec<(&str, &str)> = own.iter().map(|own| ("a", own.as_str())).collect();
    let case = Case::default();
    let names: HashSet<String> = case.of(&pairs).into_iter().flatten().collect();
    assert_eq!(names.len(), pairs.len());
    // The first round already gives nearly all of them: none is looked for along a chain of others.
    let first = own.iter().filter(|own| names.contains(&format!("x__{}", digits("a", own, 0)))).count();
    assert!(first > 3980, "{first}");
}
