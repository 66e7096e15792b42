use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::value::RawValue;

use super::*;

/// A string that is longer than what is looked at first.
const LONG: &str = r#""0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 [ \u0061 \" é""#;

/// What JSON consists of, whole and cut.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\\"",
    "\\u0061",
    "\\ud800",
    "\\u00",
    "\\x",
    "\"a\"",
    "\"a\":",
    "\"eight by\"",
    LONG,
    "\"\u{e9}\u{1f600}\"",
    "\"[{\"",
    "0",
    "-0",
    "01",
    "-",
    "+",
    ".",
    "1.5",
    "1.",
    "1e5",
    "1E+400",
    "1e",
    "true",
    "tru",
    "false",
    "null",
    "nullx",
    " ",
    "\n",
    "\t",
    "\r",
    "\u{b}",
    "\u{1}",
    "\u{7f}",
    "\u{2028}",
    "\u{feff}",
];

/// How deep values may be nested here.
const DEPTH: usize = 4;

/// Checks that both say the same of a text.
fn agree(text: &str) {
    let theirs = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
    let due = theirs.filter(|_| !nests_deeper(text, DEPTH));
    let read = value(text, DEPTH, &mut ()).map(|place| &text[place]);
    assert_eq!(read, due, "{text:?}");
    if let Some(read) = read {
        let mut scanner = Scanner::new(text);
        scanner.white_space();
        assert_eq!(scanner.skip_value().map(|place| &text[place]), Some(read), "{text:?}");
        assert_eq!(scanner.at, text.len(), "{text:?}");
    }
}

pub(in crate::json) fn json() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        "1.5e-3",
        "-0",
        "true",
        "null",
        "\"\"",
        "\"a\\n\\u00e9\"",
        "\"a longer text, of \u{e9}\"",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(6, 40, 4, |inner| {
        let list = vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(" , ")));
        let named = |(at, value)| format!("\"m{at}\" :\t{value}");
        let object = vec(inner, 0..4).prop_map(move |values| {
            format!("{{{}}}", values.into_iter().enumerate().map(named).collect::<Vec<_>>().join(","))
        });
        prop_oneof![list, object]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_any_row_of_tokens_serde_json_says_the_same(tokens in vec(select(TOKENS), 0..12)) {
        agree(&tokens.concat());
    }

    #[test]
    fn of_damaged_json_serde_json_says_the_same(
        json in json(), edits in vec((any::<Index>(), any::<bool>(), select(TOKENS)), 0..3),
    ) {
        let mut text: Vec<char> = json.chars().collect();
        for (place, removes, token) in edits {
            let at = place.index(text.len() + 1);
            let end = (at + usize::from(removes)).min(text.len());
            text.splice(at..end, token.chars());
        }
        agree(&text.into_iter().collect::<String>());
    }

    #[test]
    fn a_text_is_plain_up_to_its_first_special_byte(bytes in vec(any::<u8>(), 0..40)) {
        let due = bytes.iter().position(|byte| *byte < b' ' || *byte == b'"' || *byte == b'\\');
        assert_eq!(plain(&bytes), due.unwrap_or(bytes.len()));
    }
}

#[test]
fn depth_is_limited_exactly_however_deep_it_is() {
    for levels in [1, 127, 128, 129, 256, 257, 1000] {
        let text = format!("{}1{}", "[{\"a\":".repeat(levels), "}]".repeat(levels));
        assert!(value(&text, 2 * levels, &mut ()).is_some(), "{levels}");
        assert!(value(&text, 2 * levels - 1, &mut ()).is_none(), "{levels}");
        let crossed = format!("{}1{}", "[{\"a\":".repeat(levels), "]}".repeat(levels));
        assert!(value(&crossed, 2 * levels, &mut ()).is_none(), "{levels}");
    }
}
