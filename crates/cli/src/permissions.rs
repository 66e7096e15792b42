//! Warnings of files with secrets that other users can read or write.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jsonc_parser::ast::{Object, ObjectPropName, Value};
use jsonc_parser::{CollectOptions, ParseOptions};

/// The permission bits by which other users can read or write a file.
const OTHERS: u32 = 0o066;
/// A name that contains one of these words is taken for the name of a secret.
const SECRET: [&str; 9] =
    ["auth", "cookie", "credential", "key", "passphrase", "passw", "private", "secret", "token"];

/// A warning when other users can read or write a file.
pub(crate) fn warning(path: &Path) -> Option<String> {
    let open = |file: std::fs::Metadata| file.permissions().mode() & OTHERS != 0;
    let shown = path.display();
    std::fs::metadata(path)
        .is_ok_and(open)
        .then(|| format!("other users can read or write {shown}; to prevent that: chmod 600 {shown}"))
}

/// A warning when other users can read or write a configuration that contains a secret, and not only a variable for it.
pub(crate) fn config_warning(path: &Path) -> Option<String> {
    let warning = warning(path)?;
    let text = std::fs::read_to_string(path).ok()?;
    let (collect, parse) = (CollectOptions::default(), ParseOptions::default());
    let parsed = jsonc_parser::parse_to_ast(&text, &collect, &parse).ok()?;
    let place = secret_in(parsed.value.as_ref()?)?;
    Some(format!("{place} looks like a secret, and {warning}"))
}

/// The place of the first secret in a configuration: the keys that lead to it, with dots between them.
fn secret_in(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Object(object) => object.properties.iter().find_map(|property| {
            let name = name(&property.name);
            let found = match (name, &property.value) {
                ("env" | "headers" | "http_headers", Value::Object(of)) => secret_of(of),
                ("url" | "serverUrl" | "httpUrl", Value::StringLit(url)) => secret_in_url(&url.value),
                ("args", Value::Array(args)) => secret_in_args(args.elements.iter()),
                (_, inner) => secret_in(inner),
            };
            found.map(|found| if found.is_empty() { name.to_owned() } else { format!("{name}.{found}") })
        }),
        Value::Array(array) => array.elements.iter().find_map(secret_in),
        _ => None,
    }
}

fn name<'a>(name: &'a ObjectPropName<'_>) -> &'a str {
    match name {
        ObjectPropName::String(text) => &text.value,
        ObjectPropName::Word(word) => word.value,
    }
}

/// The first variable or header whose name is that of a secret.
fn secret_of(object: &Object<'_>) -> Option<String> {
    let secret = object.properties.iter().find(|property| match &property.value {
        Value::StringLit(text) => is_secret(name(&property.name)) && is_literal(&text.value),
        _ => false,
    });
    secret.map(|property| name(&property.name).to_owned())
}

/// A password, or a query parameter whose name is that of a secret. The place is empty, since it is the URL itself.
fn secret_in_url(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    let password = url.password().is_some_and(is_literal);
    let parameter = url.query_pairs().any(|(name, value)| is_secret(&name) && is_literal(&value));
    (password || parameter).then(String::new)
}

/// `--api-key=VALUE`, or `--api-key VALUE`.
fn secret_in_args<'a>(args: impl Iterator<Item = &'a Value<'a>>) -> Option<String> {
    let mut named = false;
    for argument in args {
        let Value::StringLit(argument) = argument else { return None };
        let (flag, value) = match argument.value.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (&*argument.value, None),
        };
        let is_flag = flag.starts_with('-');
        if is_flag && is_secret(flag) && value.is_some_and(is_literal) {
            return Some(flag.to_owned());
        }
        if named && !is_flag && is_literal(&argument.value) {
            return Some(String::new());
        }
        named = is_flag && is_secret(flag) && value.is_none();
    }
    None
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|word| name.contains(word))
}

/// Whether a value is a secret itself: neither empty nor a variable.
fn is_literal(value: &str) -> bool {
    !value.is_empty() && !value.contains("${") && !value.starts_with('$')
}
