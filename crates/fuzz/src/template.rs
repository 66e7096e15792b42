//! URI templates.

use proto::Template;

/// A template keeps its text, names each variable once, and finds values only for those.
pub(crate) fn read(input: &[u8]) {
    let (source, uri) = crate::input::halves(input);
    let (Ok(source), Ok(uri)) = (std::str::from_utf8(source), std::str::from_utf8(uri)) else { return };
    let Ok(template) = Template::new(source) else { return };
    assert_eq!(template.as_str(), source);
    let names: Vec<&str> = template.variables().collect();
    assert!(names.iter().enumerate().all(|(at, name)| !names[..at].contains(name)), "{names:?}");
    let found = template.matches(uri);
    if names.is_empty() && !source.contains('%') && !uri.contains('%') {
        assert_eq!(found.is_some(), source == uri, "without variables a template is one URI");
    }
    for (name, _) in found.iter().flatten() {
        assert!(names.contains(&name.as_str()), "{name} is no variable");
    }
}
