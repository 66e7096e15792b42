//! The referee: it judges single messages by the official schema of a revision.
//!
//! The published schemas accept members that they do not list, so nearly every message is valid. The referee closes them:
//! an object may have only the listed properties, except for the maps that the specification leaves open. It judges only
//! the form of a message; a test has to check whether it is the right message.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::{Map, Value, json};
use spec::{Direction, Era, Revision, meta};

/// The maps whose keys the sender chooses, such as JSON Schemas and the arguments and results of tools.
const OPEN: &[&str] = &[
    "arguments",
    "structuredContent",
    "inputSchema",
    "outputSchema",
    "requestedSchema",
    "experimental",
    "extensions",
    "data",
    "metadata",
    "input",
];

/// The beginnings of methods that extensions add to the newest revision. They have schemas of their own.
const OF_EXTENSIONS: &[&str] = &["tasks/", "notifications/tasks", "skills/", "resources/directory/"];

/// The keys of `_meta` that the protocol defines.
const RESERVED: &[&str] = &[
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
    meta::SERVER_INFO,
    meta::SUBSCRIPTION_ID,
    meta::RELATED_TASK,
];

/// The definitions that list all messages.
const UNIONS: &[&str] = &["ClientRequest", "ServerRequest", "ClientNotification", "ServerNotification"];

/// Judges one message that was sent in this direction.
///
/// A request or notification is judged by its method, an error by its code, and a result by the method that it `answers`.
/// Where no revision has the method, or the method of a result is not known, only the envelope is judged.
///
/// # Errors
/// Where the message is not valid; the error says what is wrong.
pub fn judge(
    revision: Revision,
    direction: Direction,
    message: &Value,
    answers: Option<&str>,
) -> Result<(), String> {
    let schema = Schema::of(revision);
    let Some(members) = message.as_object() else {
        return Err("a message is an object".to_owned());
    };
    if let Some(method) = members.get("method") {
        let Some(method) = method.as_str() else { return Err("a method is a string".to_owned()) };
        return schema.judge_method(direction, method, members.contains_key("id"), message);
    }
    match members.get("error") {
        Some(error) => schema.judge_error(message, &error["code"]),
        None => schema.judge_result(message, answers),
    }
}

/// Judges a value within a message by the definition of its type.
///
/// # Errors
/// Where the value is not valid, or the revision has no such type.
pub fn judge_type(revision: Revision, definition: &str, value: &Value) -> Result<(), String> {
    let schema = Schema::of(revision);
    if !schema.closed.contains_key(definition) {
        return Err(format!("{revision} has no {definition}"));
    }
    schema.check(definition, value, || json!({"allOf": [schema.reference(definition)]}))
}

/// Returns the definitions of a revision as they were published.
pub fn published(revision: Revision) -> &'static Map<String, Value> {
    &Schema::of(revision).published
}

/// The schema of one revision.
struct Schema {
    revision: Revision,
    dialect: Value,
    /// The name of the member that holds the definitions.
    place: &'static str,
    published: Map<String, Value>,
    closed: Map<String, Value>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Schema {
    fn of(revision: Revision) -> &'static Schema {
        static SCHEMAS: LazyLock<Vec<Schema>> =
            LazyLock::new(|| Revision::ALL.into_iter().map(Schema::load).collect());
        let at = Revision::ALL.iter().position(|r| *r == revision).expect("it is one of all");
        &SCHEMAS[at]
    }

    fn load(revision: Revision) -> Schema {
        let path = folder().join(revision.as_str()).join("schema.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut root: Value = serde_json::from_str(&text).expect("a schema is JSON");
        let place = if root.get("$defs").is_some() { "$defs" } else { "definitions" };
        let Value::Object(published) = root[place].take() else {
            panic!("{}: no definitions", path.display())
        };
        let mut schema = Schema {
            revision,
            dialect: root["$schema"].take(),
            place,
            published,
            closed: Map::new(),
            validators: Mutex::default(),
        };
        let close = |(name, definition): (&String, &Value)| {
            (name.clone(), schema.closed_definition(name, definition))
        };
        schema.closed = schema.published.iter().map(close).collect();
        schema
    }

    fn reference(&self, definition: &str) -> Value {
        json!({"$ref": format!("#/{}/{definition}", self.place)})
    }

    /// Follows a reference to the definition that it names.
    fn follow<'a>(&'a self, mut schema: &'a Value) -> &'a Value {
        while let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            schema = &self.published[reference.rsplit('/').next().unwrap_or_default()];
        }
        schema
    }

    // Closing.

    fn closed_definition(&self, name: &str, definition: &Value) -> Value {
        match name {
            // The published definition has `integer` instead of `number`, and lacks null.
            "JSONValue" => json!(true),
            "JSONObject" => json!({"type": "object"}),
            _ if name.ends_with("MetaObject") => self.closed(definition, meta::META),
            // These are the parts of a requested schema, and JSON Schemas may have any members.
            _ if name.ends_with("Schema") || name.ends_with("SchemaDefinition") => definition.clone(),
            _ => self.closed(definition, ""),
        }
    }

    /// Returns the schema with every object type in it closed. `name` is the property that it describes.
    fn closed(&self, schema: &Value, name: &str) -> Value {
        let Some(members) = schema.as_object() else { return schema.clone() };
        if members.contains_key("allOf") {
            return self.closed(&self.merged(schema), name);
        }
        let is_object = members.get("type").is_some_and(|t| t == "object");
        if is_object && OPEN.contains(&name) {
            return schema.clone();
        }
        let mut closed = Map::new();
        for (keyword, value) in members {
            let value = match keyword.as_str() {
                "properties" => {
                    let properties = value.as_object().into_iter().flatten();
                    properties.map(|(name, property)| (name.clone(), self.closed(property, name))).collect()
                }
                "anyOf" | "oneOf" => {
                    value.as_array().into_iter().flatten().map(|member| self.closed(member, name)).collect()
                }
                "items" | "additionalProperties" => self.closed(value, name),
                // The published schemas have `integer` instead of `number` where several types are allowed.
                "type" if value.is_array() => {
                    let number = |t: &Value| if t == "integer" { json!("number") } else { t.clone() };
                    value.as_array().into_iter().flatten().map(number).collect()
                }
                _ => value.clone(),
            };
            closed.insert(keyword.clone(), value);
        }
        if is_object && name == meta::META {
            closed.insert("propertyNames".to_owned(), self.meta_names(members.get("properties")));
        } else if is_object && members.get("additionalProperties").is_none_or(is_anything) {
            closed.insert("additionalProperties".to_owned(), json!(false));
        }
        Value::Object(closed)
    }

    /// Returns a schema for the keys of a `_meta`: all but those that are reserved for other messages or revisions.
    fn meta_names(&self, listed: Option<&Value>) -> Value {
        let may = |key: &str| {
            let anywhere = key == meta::RELATED_TASK && self.published.contains_key("RelatedTaskMetadata");
            anywhere || listed.is_some_and(|listed| listed.get(key).is_some())
        };
        let banned: Vec<&str> = RESERVED.iter().copied().filter(|key| !may(key)).collect();
        json!({"not": {"enum": banned}})
    }

    /// Merges the parts of an intersection into one object type: closed parts would not accept the members of each other.
    fn merged(&self, schema: &Value) -> Value {
        let schema = self.follow(schema);
        let mut merged = schema.as_object().cloned().unwrap_or_default();
        let parts = merged.remove("allOf").and_then(|parts| parts.as_array().cloned()).unwrap_or_default();
        let mut merged = Value::Object(merged);
        for part in parts {
            let part = self.merged(&part);
            merged["type"] = json!("object");
            for (name, property) in part["properties"].as_object().into_iter().flatten() {
                merged["properties"][name] = property.clone();
            }
            merged["required"] = either_requires(&merged, &part);
        }
        merged
    }

    // Judging.

    fn check(&self, key: &str, value: &Value, root: impl FnOnce() -> Value) -> Result<(), String> {
        let known = self.validators.lock().expect("no test panics in here").get(key).cloned();
        let validator = known.unwrap_or_else(|| {
            let mut root = root();
            root["$schema"] = self.dialect.clone();
            root[self.place] = Value::Object(self.closed.clone());
            let built =
                jsonschema::validator_for(&root).unwrap_or_else(|e| panic!("{} {key}: {e}", self.revision));
            let built = Arc::new(built);
            let mut validators = self.validators.lock().expect("no test panics in here");
            Arc::clone(validators.entry(key.to_owned()).or_insert(built))
        });
        let wrong: Vec<String> = validator.iter_errors(value).flat_map(|error| told(&error)).collect();
        if wrong.is_empty() { Ok(()) } else { Err(format!("{key}: {}", wrong.join("; "))) }
    }

    /// Finds the definition of a message with this method in a union.
    fn definition(&self, union: &str, method: &str) -> Option<&str> {
        let union = self.published.get(union)?;
        let named = |schema: &'_ Value| {
            let found = self.published.iter().find(|(name, definition)| {
                std::ptr::eq(*definition, self.follow(schema)) && !UNIONS.contains(&name.as_str())
            });
            found.map(|(name, _)| name.as_str())
        };
        let is = |definition: &Value| self.follow(definition)["properties"]["method"]["const"] == method;
        match union.get("anyOf").and_then(Value::as_array) {
            Some(members) => members.iter().find(|member| is(member)).and_then(named),
            // A union of one message is that message itself.
            None => {
                let of_method = |(name, definition): &(&String, &Value)| {
                    !UNIONS.contains(&name.as_str()) && definition["properties"]["method"]["const"] == method
                };
                is(union)
                    .then(|| self.published.iter().find(of_method).map(|(name, _)| name.as_str()))
                    .flatten()
            }
        }
    }

    fn judge_method(
        &self,
        direction: Direction,
        method: &str,
        is_request: bool,
        message: &Value,
    ) -> Result<(), String> {
        let what = if is_request { "Request" } else { "Notification" };
        let envelope = format!("JSONRPC{what}");
        let senders: &[&str] = match direction {
            Direction::ToServer => &["Client"],
            Direction::ToClient => &["Server"],
            Direction::Both => &["Client", "Server"],
        };
        let definition =
            senders.iter().find_map(|sender| self.definition(&format!("{sender}{what}"), method));
        if let Some(definition) = definition {
            return self.check(definition, message, || self.message(definition, &envelope));
        }
        let of_extension =
            self.revision.era() == Era::Modern && OF_EXTENSIONS.iter().any(|e| method.starts_with(e));
        let known =
            |revision| UNIONS.iter().any(|union| Schema::of(revision).definition(union, method).is_some());
        if !of_extension && Revision::ALL.into_iter().any(known) {
            return Err(format!("it has no {} {method:?} in this direction", what.to_lowercase()));
        }
        // The extension that defines the method also defines its params.
        self.check(&envelope, message, || {
            let mut root = self.closed(&self.published[&envelope], "");
            root["properties"]["params"] = json!({"type": "object"});
            root
        })
    }

    /// Merges a message with its envelope: in older revisions each lists members that the other lacks.
    fn message(&self, definition: &str, envelope: &str) -> Value {
        let mut message = self.merged(&self.published[definition]);
        let envelope = self.merged(&self.published[envelope]);
        for (name, property) in envelope["properties"].as_object().into_iter().flatten() {
            let listed = property["properties"].as_object();
            match (message["properties"].get_mut(name), listed) {
                (None, _) => message["properties"][name] = property.clone(),
                (Some(own), Some(listed)) if own.get("$ref").is_none() => {
                    for (name, property) in listed {
                        let own = own["properties"].as_object_mut().expect("params list properties");
                        own.entry(name).or_insert_with(|| property.clone());
                    }
                }
                _ => {}
            }
        }
        message["required"] = either_requires(&message, &envelope);
        self.closed(&message, "")
    }

    fn judge_error(&self, message: &Value, code: &Value) -> Result<(), String> {
        let envelope =
            ["JSONRPCErrorResponse", "JSONRPCError"].into_iter().find(|e| self.published.contains_key(*e));
        let envelope = envelope.expect("errors are defined");
        let of_code = |definition: &Value| {
            definition
                .get("properties")
                .is_some_and(|p| p.get("jsonrpc").is_some() && p.get("error").is_some())
                && self.merged(&definition["properties"]["error"])["properties"]["code"]["const"] == *code
        };
        let own =
            self.published.iter().find(|(_, definition)| of_code(definition)).map(|(name, _)| name.as_str());
        let mut message = message.clone();
        // JSON-RPC answers what it cannot read with a null id, and HTTP says why it refuses without one: older
        // revisions have both in prose, and their schemas have a form for neither.
        if self.revision.rules().null_id_when_unreadable && message.get("id").is_none_or(Value::is_null) {
            message["id"] = json!(0);
        }
        let definition = own.unwrap_or(envelope);
        self.check(definition, &message, || {
            let mut root = self.message(definition, envelope);
            let error = self.merged(&self.published[definition]["properties"]["error"]);
            root["properties"]["error"] = self.closed(&error, "");
            root
        })
    }

    fn judge_result(&self, message: &Value, answers: Option<&str>) -> Result<(), String> {
        let envelope = ["JSONRPCResultResponse", "JSONRPCResponse"]
            .into_iter()
            .find(|e| self.published.contains_key(*e));
        let envelope = envelope.expect("results are defined");
        self.check(envelope, message, || {
            let mut root = self.closed(&self.published[envelope], "");
            root["properties"]["result"] = json!({"type": "object"});
            root
        })?;
        let kind = message["result"]["resultType"].as_str();
        let complete = matches!(kind, None | Some("complete" | "input_required"));
        let Some(definition) = answers.and_then(|method| self.result_of(method, kind)).filter(|_| complete)
        else {
            return Ok(());
        };
        judge_type(self.revision, definition, &message["result"])
    }

    /// The type of a method's result, by the schema's own naming; `None` for a method that the revision lacks.
    fn result_of(&self, method: &str, kind: Option<&str>) -> Option<&str> {
        let request = ["ClientRequest", "ServerRequest", "InputRequest"]
            .iter()
            .find_map(|u| self.definition(u, method))?;
        let result = request.replace("Request", "Result");
        let asks =
            &self.published.get(&format!("{result}Response")).unwrap_or(&Value::Null)["properties"]["result"];
        if kind == Some("input_required") && asks.get("anyOf").is_some() {
            return Some("InputRequiredResult");
        }
        let named = self.published.get_key_value(&result).map(|(name, _)| name.as_str());
        Some(named.unwrap_or("EmptyResult"))
    }
}

fn either_requires(one: &Value, other: &Value) -> Value {
    let both =
        [one, other].into_iter().flat_map(|schema| schema["required"].as_array().into_iter().flatten());
    json!(both.filter_map(Value::as_str).collect::<BTreeSet<_>>())
}

/// Whether additional properties of this sort may be anything.
fn is_anything(additional: &Value) -> bool {
    *additional == json!(true) || *additional == json!({})
}

/// What is wrong, with the place; of a union, what each alternative has against the value.
fn told(error: &ValidationError<'_>) -> Vec<String> {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().filter_map(|errors| errors.first()).flat_map(|error| told(error)).collect()
        }
        _ => {
            let mut what = error.to_string();
            if what.chars().count() > 300 {
                what = what
                    .chars()
                    .take(140)
                    .chain(" … ".chars())
                    .chain(what.chars().skip(what.chars().count() - 140))
                    .collect();
            }
            vec![format!("at \"{}\": {what}", error.instance_path())]
        }
    }
}

fn folder() -> PathBuf {
    let named = std::env::var_os("DATELINE_SPEC").map(|folder| Path::new(&folder).join("schema"));
    let above = || {
        let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let mut places = folders
            .flat_map(|above| ["target/spec/schema", "shared/spec/schema"].map(|folder| above.join(folder)));
        places.find(|folder| folder.is_dir())
    };
    named.or_else(above).filter(|folder| folder.is_dir()).unwrap_or_else(|| {
        panic!(
            "the official schemas are not found: tests/schemas.sh fetches them, or set DATELINE_SPEC to the folder that \
             holds schema/<revision>/schema.json"
        )
    })
}
