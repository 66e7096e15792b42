//! URI templates (RFC 6570), read backwards: which values make a template this URI?

/// A URI template. Simple expansion `{name}` matches within a path segment, reserved expansion `{+name}`
/// across segments.
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    Variable { name: String, reserved: bool },
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn new(source: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = source;
        while let Some(open) = rest.find('{') {
            if open > 0 {
                parts.push(Part::Literal(rest[..open].to_owned()));
            }
            let close =
                rest[open..].find('}').ok_or_else(|| format!("{source:?}: a brace is not closed"))? + open;
            let expression = &rest[open + 1..close];
            let (reserved, name) = match expression.strip_prefix('+') {
                Some(name) => (true, name),
                None => (false, expression),
            };
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if name.is_empty() || !name.chars().all(plain) {
                return Err(format!("{source:?}: {{{expression}}} is none of {{name}} and {{+name}}"));
            }
            parts.push(Part::Variable { name: name.to_owned(), reserved });
            rest = &rest[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Template { source: source.to_owned(), parts })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The names of its variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// The values that make the template this URI, percent-decoded.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let mut values = Vec::new();
        matching(&self.parts, uri, &mut values).then_some(values)
    }
}

fn matching(parts: &[Part], uri: &str, values: &mut Vec<(String, String)>) -> bool {
    match parts {
        [] => uri.is_empty(),
        [Part::Literal(text), rest @ ..] => {
            uri.strip_prefix(text.as_str()).is_some_and(|uri| matching(rest, uri, values))
        }
        [Part::Variable { name, reserved }, rest @ ..] => {
            let end = if *reserved { uri.len() } else { uri.find(['/', '?', '#']).unwrap_or(uri.len()) };
            // A literal that follows says where to stop; without one the variable takes all it can.
            let stops: Vec<usize> = match rest.first() {
                Some(Part::Literal(text)) => uri[..end.saturating_add(text.len()).min(uri.len())]
                    .match_indices(text.as_str())
                    .map(|(at, _)| at)
                    .filter(|at| *at <= end)
                    .collect(),
                _ => vec![end],
            };
            stops.into_iter().filter(|at| *at > 0).any(|at| {
                let Some(value) = decoded(&uri[..at]) else { return false };
                values.push((name.clone(), value));
                let matched = matching(rest, &uri[at..], values);
                if !matched {
                    values.pop();
                }
                matched
            })
        }
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, uri: &str) -> Option<Vec<String>> {
        let values = Template::new(template).unwrap().matches(uri)?;
        Some(values.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    #[test]
    fn a_template_gives_the_values_that_make_the_uri() {
        assert_eq!(values("test://t/{id}/data", "test://t/123/data").unwrap(), ["id=123"]);
        assert_eq!(values("test://t/{id}/data", "test://t/1%2F2/data").unwrap(), ["id=1/2"]);
        assert_eq!(values("f:///{+path}", "f:///a/b.txt").unwrap(), ["path=a/b.txt"]);
        assert_eq!(values("x:{a}-{b}", "x:1-2-3").unwrap(), ["a=1", "b=2-3"]);
        for (template, uri) in [
            ("test://t/{id}/data", "test://t//data"),
            ("test://t/{id}/data", "test://t/1/2/data"),
            ("x:{a}", "y:1"),
        ] {
            assert_eq!(values(template, uri), None, "{template} {uri}");
        }
        assert!(Template::new("x:{").is_err() && Template::new("x:{a,b}").is_err());
        assert_eq!(values("x:{a}é", "x:éé"), Some(vec!["a=é".into()]));
    }
}
