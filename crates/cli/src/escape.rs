//! Escapes text from servers, so that it cannot control the terminal or look like dateline's own output.
//!
//! Characters that are invisible, or change how other text looks, are written as escapes. [`line`] is for text in a table,
//! a log or an error; [`text`] for text of several lines; [`json`] for JSON, whose value stays the same.

use std::fmt::Write as _;

use serde::Serialize;
use unicode_general_category::{GeneralCategory, get_general_category};

/// Escapes a text for one line.
pub(crate) fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Escapes a text of several lines. Line ends and tabs stay.
pub(crate) fn text(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), |c| matches!(c, '\n' | '\t'))
}

/// Writes a value as indented JSON with escapes, and a line end.
pub(crate) fn json(value: &impl Serialize) -> String {
    json_text(&serde_json::to_string_pretty(value).unwrap_or_default()) + "\n"
}

/// Escapes JSON text. Only its strings can contain characters that need it.
pub(crate) fn json_text(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) && !matches!(c, '\n' | '\r' | '\t') {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = ' ';
    for c in text.chars() {
        if !is_hidden(c) || stays(c) || is_colour(last, c) {
            out.push(c);
        } else {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c => {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
            }
        }
        last = c;
    }
    out
}

/// Whether a character is invisible: it controls, reorders or joins text, ends lines, or is drawn as nothing.
fn is_hidden(c: char) -> bool {
    if matches!(c, ' '..='~') {
        return false;
    }
    let by_kind = matches!(
        get_general_category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::Unassigned
    );
    // Letters and marks that are drawn as nothing: fillers, selectors of variants, the empty Braille pattern.
    let by_itself = matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0100}'..='\u{e01ef}'
    );
    by_kind || by_itself
}

/// Whether a character only selects the coloured form of the symbol before it.
fn is_colour(last: char, c: char) -> bool {
    c == '\u{fe0f}' && get_general_category(last) == GeneralCategory::OtherSymbol
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_is_not_seen_is_shown_as_an_escape() {
        for (said, shown) in [
            ("plain, grüß 取得 ⚠\u{fe0f}", "plain, grüß 取得 ⚠\u{fe0f}"),
            ("a\x1b[2J", "a\\u{1b}[2J"),
            ("row\nup 1\r\n\tx", "row\\nup 1\\r\\n\\tx"),
            ("\u{7f}\u{9b}2J\u{85}", "\\u{7f}\\u{9b}2J\\u{85}"),
            ("\u{202e}gpj.exe\u{2066}", "\\u{202e}gpj.exe\\u{2066}"),
            ("ec\u{200b}ho\u{ad}\u{feff}\u{2060}", "ec\\u{200b}ho\\u{ad}\\u{feff}\\u{2060}"),
            ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
            ("x\u{e0041}\u{fe0f}\u{e0100}\u{3164}", "x\\u{e0041}\\u{fe0f}\\u{e0100}\\u{3164}"),
        ] {
            assert_eq!(line(said), shown, "{said:?}");
        }
        assert_eq!(text("a\r\nb\tc\rd\u{9b}"), "a\nb\tc\\rd\\u{9b}");
    }

    #[test]
    fn json_says_the_same_without_showing_it() {
        let said = "\u{7f}\u{9b}\u{202e}\u{e0041}\n\"é";
        let shown = json(&Value::from(said));
        assert_eq!(shown, "\"\\u007f\\u009b\\u202e\\udb40\\udc41\\n\\\"é\"\n");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), said);
    }
}
