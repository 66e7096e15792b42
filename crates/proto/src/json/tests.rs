use super::names::{COMPARED, FEW};
use super::*;

fn raw(text: &str) -> Raw {
    Raw::parse(Bytes::copy_from_slice(text.as_bytes()), 16).unwrap()
}

#[test]
fn what_is_not_opened_stays_as_it_was_sent() {
    let text = r#"{"z":1.0,"a":[1e400, 9007199254740993 ],"\u0062":{"x" : "\u00e9"}}"#;
    let mut object = raw(text).object().unwrap();
    object.set("new", "n");
    assert_eq!(
        Raw::from(object).as_str(),
        r#"{"z":1.0,"a":[1e400, 9007199254740993 ],"b":{"x" : "\u00e9"},"new":"n"}"#
    );
}

#[test]
fn strings_are_escaped_as_serde_json_escapes_them() {
    let every: String = (0..0x100).filter_map(char::from_u32).collect();
    for text in ["", "plain", "\"", "a line\nand more\t\\", "\u{e9}\u{2028}\u{1f600}\"", &every] {
        assert_eq!(Raw::from(text).as_str(), serde_json::to_string(text).unwrap());
    }
}

#[test]
fn a_name_that_stands_twice_is_refused() {
    assert!(raw(r#"{"a":1,"\u0061":2}"#).object().is_err());
}

#[test]
fn a_name_that_stands_twice_is_found_among_few_and_among_many() {
    for members in [2, FEW, FEW + 1, 1000] {
        for second in [1, members / 2, members - 1] {
            let name = |at: usize| if at == second { 0 } else { at };
            let text: Vec<_> = (0..members).map(|at| format!("\"m{}\":{at}", name(at))).collect();
            let error = raw(&format!("{{{}}}", text.join(","))).object().unwrap_err().to_string();
            assert!(error.contains("\"m0\" stands twice"), "{members} {second}: {error}");
        }
    }
}

#[test]
fn an_object_costs_as_much_as_it_has_members_and_not_their_square() {
    let compared = |members: usize| {
        let text: Vec<_> = (0..members).map(|at| format!("\"m{at}\":{at}")).collect();
        let raw = raw(&format!("{{{}}}", text.join(",")));
        COMPARED.set(0);
        assert_eq!(raw.object().unwrap().iter().count(), members);
        COMPARED.get()
    };
    assert!(compared(FEW) <= FEW * FEW / 2);
    for members in [1 << 10, 1 << 14] {
        // A sort compares each about as often as the number has binary digits.
        assert!(compared(members) < members * 30, "{} for {members}", compared(members));
    }
}

#[test]
fn depth_counts_brackets_outside_strings() {
    assert_eq!(Raw::parse(Bytes::from_static(b"[[[1]]]"), 2), Err(ParseError::TooDeep(2)));
    assert!(Raw::parse(Bytes::from_static(br#"["[[[[\"[["]"#), 1).is_ok());
}

#[test]
fn rubbish_is_an_error() {
    for text in ["", "{", "nul", "1 2", "{'a':1}", "\"\u{1}\""] {
        assert!(Raw::parse(Bytes::from(text), 8).is_err(), "{text:?}");
    }
    assert_eq!(Raw::parse(Bytes::from_static(b"\"\xff\""), 8), Err(ParseError::NotUtf8));
}
