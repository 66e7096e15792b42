//! Holds the rows against the official schemas, in both directions.

#![allow(clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use spec::fields::{self, *};
use spec::shape::{Field, Holds, Kind, Shape, ValueType};
use spec::{Revision, Revisions, meta};

/// Where the values of a shape stand in the schema; a name without a definition in a revision is skipped.
#[derive(Clone, Copy, Debug)]
enum At {
    /// The definition itself.
    Type(&'static str),
    /// The params of a notification, together with what the envelope of any notification gives them.
    Notification(&'static str),
    /// The params of a request, likewise.
    Request(&'static str),
    /// `_meta` of any request.
    RequestMeta,
}

/// The shapes that messages begin with, and what requests have of them. All others are found below.
static ROOTS: &[(&Shape, &[At])] = &[
    (&REQUEST_META, &[At::RequestMeta]),
    (&INITIALIZE_REQUEST_PARAMS, &[At::Request("InitializeRequest")]),
    (&REQUEST_PARAMS, &[At::Request("PingRequest"), At::Request("DiscoverRequest")]),
    (
        &PAGINATED_REQUEST_PARAMS,
        &[
            At::Request("ListToolsRequest"),
            At::Request("ListPromptsRequest"),
            At::Request("ListResourcesRequest"),
            At::Request("ListResourceTemplatesRequest"),
        ],
    ),
    (&CALL_TOOL_REQUEST_PARAMS, &[At::Request("CallToolRequest")]),
    (&GET_PROMPT_REQUEST_PARAMS, &[At::Request("GetPromptRequest")]),
    (&READ_RESOURCE_REQUEST_PARAMS, &[At::Request("ReadResourceRequest")]),
    (&SUBSCRIBE_REQUEST_PARAMS, &[At::Request("SubscribeRequest"), At::Request("UnsubscribeRequest")]),
    (&COMPLETE_REQUEST_PARAMS, &[At::Request("CompleteRequest")]),
    (&SET_LEVEL_REQUEST_PARAMS, &[At::Request("SetLevelRequest")]),
    (&SUBSCRIPTIONS_LISTEN_REQUEST_PARAMS, &[At::Request("SubscriptionsListenRequest")]),
    (&CLIENT_CAPABILITIES, &[At::Type("ClientCapabilities")]),
    (&INITIALIZE_RESULT, &[At::Type("InitializeResult")]),
    (&DISCOVER_RESULT, &[At::Type("DiscoverResult")]),
    (&LIST_TOOLS_RESULT, &[At::Type("ListToolsResult")]),
    (&CALL_TOOL_RESULT, &[At::Type("CallToolResult")]),
    (&LIST_PROMPTS_RESULT, &[At::Type("ListPromptsResult")]),
    (&GET_PROMPT_RESULT, &[At::Type("GetPromptResult")]),
    (&LIST_RESOURCES_RESULT, &[At::Type("ListResourcesResult")]),
    (&LIST_RESOURCE_TEMPLATES_RESULT, &[At::Type("ListResourceTemplatesResult")]),
    (&READ_RESOURCE_RESULT, &[At::Type("ReadResourceResult")]),
    (&COMPLETE_RESULT, &[At::Type("CompleteResult")]),
    (&EMPTY_RESULT, &[At::Type("EmptyResult"), At::Type("Result")]),
    (&SUBSCRIPTIONS_LISTEN_RESULT, &[At::Type("SubscriptionsListenResult")]),
    (&INPUT_REQUIRED_RESULT, &[At::Type("InputRequiredResult")]),
    (&PROGRESS, &[At::Notification("ProgressNotification")]),
    (&LOGGING_MESSAGE, &[At::Notification("LoggingMessageNotification")]),
    (&RESOURCE_UPDATED, &[At::Notification("ResourceUpdatedNotification")]),
    (
        &LIST_CHANGED,
        &[
            At::Notification("ToolListChangedNotification"),
            At::Notification("PromptListChangedNotification"),
            At::Notification("ResourceListChangedNotification"),
            At::Notification("RootsListChangedNotification"),
            At::Notification("InitializedNotification"),
        ],
    ),
    (&CANCELLED, &[At::Notification("CancelledNotification")]),
    (&SUBSCRIPTIONS_ACKNOWLEDGED, &[At::Notification("SubscriptionsAcknowledgedNotification")]),
    (&ELICITATION_COMPLETE, &[At::Notification("ElicitationCompleteNotification")]),
    (&CREATE_MESSAGE_REQUEST_PARAMS, &[At::Request("CreateMessageRequest")]),
    (&CREATE_MESSAGE_RESULT, &[At::Type("CreateMessageResult")]),
    (&ELICIT_REQUEST_PARAMS, &[At::Request("ElicitRequest")]),
    (&ELICIT_RESULT, &[At::Type("ElicitResult")]),
    (&LIST_ROOTS_REQUEST_PARAMS, &[At::Request("ListRootsRequest")]),
    (&LIST_ROOTS_RESULT, &[At::Type("ListRootsResult")]),
];

/// Messages that the table leaves out: tasks have a table of their own.
const LEFT_OUT: &[&str] = &[
    "GetTaskRequest",
    "GetTaskPayloadRequest",
    "CancelTaskRequest",
    "ListTasksRequest",
    "GetTaskResult",
    "GetTaskPayloadResult",
    "CancelTaskResult",
    "ListTasksResult",
    "TaskStatusNotification",
];

/// Fields with listed properties below them that the rows pass as they are.
const OPAQUE: &[(&str, &str)] = &[
    ("Tool", "inputSchema"),
    ("Tool", "outputSchema"),
    ("ElicitRequestParams", "requestedSchema"),
    ("InputRequest", "params"),
    ("CallToolRequestParams", "inputResponses"),
    ("GetPromptRequestParams", "inputResponses"),
    ("ReadResourceRequestParams", "inputResponses"),
];

/// The schema of one revision.
struct Schema {
    revision: Revision,
    definitions: Value,
}

/// Every way in which a value may be written: the alternatives of a union.
type Alternatives<'a> = Vec<&'a Value>;

/// The listed properties of an object, over all its alternatives.
#[derive(Default)]
struct Listed<'a> {
    properties: BTreeMap<&'a str, Alternatives<'a>>,
    required: BTreeSet<&'a str>,
}

impl Schema {
    fn load(revision: Revision) -> Schema {
        let path = schema_folder().join(revision.as_str()).join("schema.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let root: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let definitions = root.get("$defs").or_else(|| root.get("definitions")).cloned();
        let Some(definitions) = definitions else { panic!("{}: no definitions", path.display()) };
        Schema { revision, definitions }
    }

    fn definition(&self, name: &str) -> Option<&Value> {
        self.definitions.get(name)
    }

    fn property(&self, definition: &str, name: &str) -> Option<&Value> {
        self.definition(definition)?.get("properties")?.get(name)
    }

    /// Follows a reference to the definition that it names.
    fn follow<'a>(&'a self, mut schema: &'a Value) -> &'a Value {
        while let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            schema = self.definition(name).unwrap_or_else(|| panic!("{reference} is not defined"));
        }
        schema
    }

    /// The members of a union, those of unions within it included.
    fn alternatives<'a>(&'a self, schema: &'a Value) -> Alternatives<'a> {
        let schema = self.follow(schema);
        match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
            Some(members) => members.iter().flat_map(|m| self.alternatives(m)).collect(),
            None => vec![schema],
        }
    }

    /// What an object lists. A property is required when every alternative requires it.
    fn listed<'a>(&'a self, alternatives: &[&'a Value]) -> Listed<'a> {
        alternatives
            .iter()
            .flat_map(|schema| self.alternatives(schema))
            .map(|schema| self.listed_by_one(schema))
            .reduce(|mut all, one| {
                all.required.retain(|name| one.required.contains(name));
                for (name, schemas) in one.properties {
                    all.properties.entry(name).or_default().extend(schemas);
                }
                all
            })
            .unwrap_or_default()
    }

    fn listed_by_one<'a>(&'a self, schema: &'a Value) -> Listed<'a> {
        let mut listed = Listed::default();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            listed.properties.insert(name, vec![property]);
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        listed.required.extend(required.filter_map(Value::as_str));
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            listed.add(self.listed(&[part]));
        }
        listed
    }

    /// What is listed where the values of a shape stand, if the revision has such values.
    fn at(&self, at: At) -> Option<Listed<'_>> {
        let params = |message, envelope| {
            self.definition(message)?;
            let mut listed = Listed::default();
            for definition in [envelope, message] {
                listed.add(self.listed(&[self.property(definition, "params")?]));
            }
            Some(listed)
        };
        match at {
            At::Type(name) => Some(self.listed(&[self.definition(name)?])),
            At::Notification(name) => params(name, "JSONRPCNotification"),
            At::Request(name) => params(name, "JSONRPCRequest"),
            At::RequestMeta => {
                let params = params("CallToolRequest", "JSONRPCRequest")?;
                Some(self.listed(params.properties.get(meta::META)?))
            }
        }
    }

    /// What [`meta::RELATED_TASK`] holds: the schema names that key in this type's description alone.
    fn related_task(&self) -> Option<&Value> {
        let definition = self.definition("RelatedTaskMetadata")?;
        definition.get("description")?.as_str()?.contains(meta::RELATED_TASK).then_some(definition)
    }

    /// Whether objects with listed properties stand anywhere below.
    fn is_structured(&self, schema: &Value, depth: u8) -> bool {
        let within = |s: &Value| depth > 0 && self.is_structured(s, depth - 1);
        self.alternatives(schema).into_iter().any(|schema| {
            !self.listed_by_one(schema).properties.is_empty()
                || ["items", "additionalProperties"].iter().filter_map(|k| schema.get(k)).any(within)
        })
    }
}

impl<'a> Listed<'a> {
    fn add(&mut self, other: Listed<'a>) {
        self.required.extend(other.required);
        for (name, schemas) in other.properties {
            self.properties.entry(name).or_default().extend(schemas);
        }
    }
}

fn schema_folder() -> PathBuf {
    let folder = match std::env::var_os("DATELINE_SPEC") {
        Some(folder) => Some(Path::new(&folder).join("schema")),
        None => Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .flat_map(|above| ["target/spec/schema", "shared/spec/schema"].map(|folder| above.join(folder)))
            .find(|folder| folder.is_dir()),
    };
    match folder.filter(|folder| folder.is_dir()) {
        Some(folder) => folder,
        None => panic!(
            "the official schemas are not found: tests/schemas.sh fetches them, or set DATELINE_SPEC to the folder that \
             holds schema/<revision>/schema.json"
        ),
    }
}

fn schemas() -> Vec<Schema> {
    Revision::ALL.into_iter().map(Schema::load).collect()
}

/// Tells one static shape from another.
fn identity(shape: &'static Shape) -> usize {
    std::ptr::from_ref(shape).addr()
}

/// A comparison of rows with one schema.
struct Comparison<'a> {
    schema: &'a Schema,
    /// The shapes that were compared.
    seen: BTreeSet<usize>,
    /// How many fields were found on both sides.
    fields: usize,
    differences: Vec<String>,
}

impl<'a> Comparison<'a> {
    fn new(schema: &'a Schema) -> Comparison<'a> {
        Comparison { schema, seen: BTreeSet::new(), fields: 0, differences: Vec::new() }
    }

    /// A comparison of everything that the roots lead to.
    fn of_roots(schema: &'a Schema) -> Comparison<'a> {
        let mut comparison = Comparison::new(schema);
        for (shape, places) in ROOTS {
            for place in *places {
                if let Some(listed) = schema.at(*place) {
                    comparison.shape(shape, listed, &format!("{place:?}"));
                }
            }
        }
        comparison
    }

    fn differ(&mut self, path: &str, what: &str) {
        self.differences.push(format!("{} {path}: {what}", self.schema.revision));
    }

    fn shape(&mut self, shape: &'static Shape, mut listed: Listed<'a>, path: &str) {
        let is_meta = path.ends_with(meta::META) || path.ends_with("RequestMeta");
        if let Some(task) = self.schema.related_task().filter(|_| is_meta) {
            listed.properties.insert(meta::RELATED_TASK, vec![task]);
        }
        self.seen.insert(identity(shape));
        for name in listed.properties.keys() {
            if !shape.field(name).is_some_and(|f| f.exists.contains(self.schema.revision)) {
                self.differ(path, &format!("{} has no row for {name}", shape.name));
            }
        }
        for field in shape.fields.iter().filter(|f| f.exists.contains(self.schema.revision)) {
            let path = format!("{path}.{}", field.name);
            let Some(schemas) = listed.properties.get(field.name) else {
                self.differ(&path, &format!("a row of {} that the schema has not", shape.name));
                continue;
            };
            self.fields += 1;
            let required = listed.required.contains(field.name);
            if field.required.contains(self.schema.revision) != required {
                self.differ(&path, &format!("required in the schema: {required}"));
            }
            self.below(shape, field, schemas, &path);
        }
        for field in shape.fields {
            if field.required.and(field.exists) != field.required {
                self.differ(path, &format!("{} is required where it does not exist", field.name));
            }
        }
    }

    fn below(&mut self, shape: &Shape, field: &Field, schemas: &[&'a Value], path: &str) {
        let alternatives: Alternatives = schemas.iter().flat_map(|s| self.schema.alternatives(s)).collect();
        let deeper = |key: &str| -> Alternatives<'a> {
            alternatives.iter().filter_map(|s| s.get(key)).flat_map(|s| self.schema.alternatives(s)).collect()
        };
        match field.holds {
            Holds::Nothing => {
                let structured = alternatives.iter().any(|s| self.schema.is_structured(s, 4));
                if structured && !OPAQUE.contains(&(shape.name, field.name)) {
                    self.differ(path, "opens nothing, but the schema lists what is below it");
                }
                let due: BTreeSet<String> = alternatives.iter().flat_map(|s| self.types(s)).collect();
                let told = types(field.value_type);
                let narrowed =
                    field.narrow.is_some_and(|(revisions, _)| revisions.contains(self.schema.revision));
                if due != told && !narrowed && due != BTreeSet::from(["anything".to_owned()]) {
                    self.differ(path, &format!("it is {due:?}, and the row says {told:?}"));
                }
            }
            Holds::Object(shape) => self.shape(shape, self.schema.listed(&alternatives), path),
            Holds::List(shape) => self.shape(shape, self.schema.listed(&deeper("items")), path),
            Holds::Map(shape) => {
                self.shape(shape, self.schema.listed(&deeper("additionalProperties")), path);
            }
            Holds::Content(kinds) => self.kinds(kinds, &alternatives, path),
            Holds::Contents(kinds) => self.kinds(kinds, &deeper("items"), path),
            Holds::ContentOrList(kinds) => {
                let listed = deeper("items");
                if !listed.is_empty() {
                    self.kinds(kinds, &listed, path);
                }
                let single =
                    alternatives.into_iter().filter(|s| s.get("items").is_none()).collect::<Vec<_>>();
                self.kinds(kinds, &single, path);
            }
        }
    }

    /// The types of JSON that a value may be of, and the values where they are listed.
    fn types(&self, schema: &Value) -> BTreeSet<String> {
        let words = match (schema.get("enum").and_then(Value::as_array), schema.get("const")) {
            (Some(words), _) => words.iter().collect(),
            (None, Some(word)) => vec![word],
            (None, None) => Vec::new(),
        };
        if !words.is_empty() {
            return words.iter().map(ToString::to_string).collect();
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            Value::String(only) => vec![only.as_str()],
            _ => vec!["anything"],
        };
        let of = |kind: &str| match kind {
            "array" => {
                let items = self.schema.alternatives(&schema["items"]);
                items.iter().flat_map(|s| self.types(s)).map(|kind| format!("array of {kind}")).collect()
            }
            // The generator writes either of the two for numbers.
            "integer" => vec!["number".to_owned()],
            kind => vec![kind.to_owned()],
        };
        types.into_iter().flat_map(of).collect()
    }

    fn kinds(&mut self, kinds: &'static [Kind], blocks: &[&'a Value], path: &str) {
        let mut tags = BTreeSet::new();
        for block in blocks {
            let mut listed = self.schema.listed(&[block]);
            let tag = listed.properties.remove("type").and_then(|schemas| schemas[0].get("const")?.as_str());
            let Some(tag) = tag.filter(|_| listed.required.remove("type")) else {
                self.differ(path, "a block without a type");
                continue;
            };
            tags.insert(tag);
            match kinds.iter().find(|k| k.tag == tag && k.exists.contains(self.schema.revision)) {
                Some(kind) => self.shape(kind.shape, listed, &format!("{path}[{tag}]")),
                None => self.differ(path, &format!("no row for the kind {tag}")),
            }
        }
        for kind in kinds.iter().filter(|k| k.exists.contains(self.schema.revision)) {
            if !tags.contains(kind.tag) {
                self.differ(path, &format!("a row for the kind {} that the schema has not", kind.tag));
            }
        }
    }
}

/// The same of a row.
fn types(value_type: ValueType) -> BTreeSet<String> {
    let some: &[&str] = match value_type {
        ValueType::Anything => &["anything"],
        ValueType::Text | ValueType::Said | ValueType::Key | ValueType::Uri => &["string"],
        ValueType::Word(words) => return words.iter().map(|word| format!("{word:?}")).collect(),
        ValueType::Words(words) => return words.iter().map(|word| format!("array of {word:?}")).collect(),
        ValueType::Flag => &["boolean"],
        ValueType::Number | ValueType::Share | ValueType::Whole => &["number"],
        ValueType::Id => &["string", "number"],
        ValueType::Free | ValueType::Schema | ValueType::AnySchema | ValueType::Form => &["object"],
        ValueType::Texts(_) => &["array of string"],
    };
    some.iter().map(|kind| (*kind).to_owned()).collect()
}

/// Every shape that the roots lead to in any revision.
fn all_shapes() -> BTreeMap<usize, &'static Shape> {
    let mut found = BTreeMap::new();
    let mut left: Vec<&'static Shape> = ROOTS.iter().map(|(shape, _)| *shape).collect();
    while let Some(shape) = left.pop() {
        if found.insert(identity(shape), shape).is_some() {
            continue;
        }
        left.extend(shape.below());
    }
    found
}

#[test]
fn rows_equal_the_schemas() {
    let differences: Vec<String> =
        schemas().iter().flat_map(|s| Comparison::of_roots(s).differences).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_type_without_a_place_in_a_revision_has_no_rows_there() {
    for schema in &schemas() {
        let seen = Comparison::of_roots(schema).seen;
        for (identity, shape) in all_shapes() {
            let lives = shape.fields.iter().any(|f| f.exists.contains(schema.revision));
            assert!(seen.contains(&identity) || !lives, "{} in {}", shape.name, schema.revision);
        }
    }
}

#[test]
fn every_shape_is_compared() {
    let source = include_str!("../src/fields.rs");
    let defined = source.lines().filter(|l| l.starts_with("pub static ") && l.contains(": Shape =")).count();
    assert_eq!(all_shapes().len(), defined, "a shape that no root leads to is not compared");

    let schemas = schemas();
    let comparisons: Vec<_> = schemas.iter().map(Comparison::of_roots).collect();
    let seen: BTreeSet<_> = comparisons.iter().flat_map(|c| c.seen.iter().copied()).collect();
    assert_eq!(seen.len(), defined);
    assert!(defined > 60, "{defined} shapes");
    for comparison in comparisons {
        let revision = comparison.schema.revision;
        assert!(comparison.seen.len() > 35, "{revision}: {} shapes", comparison.seen.len());
        assert!(comparison.fields > 150, "{revision}: {} fields", comparison.fields);
    }
}

#[test]
fn who_walks_the_tables_meets_every_shape() {
    let walked: Vec<usize> = spec::shapes().into_iter().map(identity).collect();
    let once: BTreeSet<usize> = walked.iter().copied().collect();
    assert_eq!(once.len(), walked.len());
    assert_eq!(once, all_shapes().into_keys().collect());
    let mut metas = BTreeSet::from([identity(&REQUEST_META)]);
    let mut kinds = BTreeSet::new();
    for field in spec::shapes().into_iter().flat_map(|shape| shape.fields) {
        if field.name == meta::META {
            metas.extend(field.holds.shapes().map(identity));
        }
        if let Holds::Content(k) | Holds::Contents(k) | Holds::ContentOrList(k) = field.holds {
            kinds.insert(k.as_ptr().addr());
        }
    }
    assert_eq!(metas, METAS.iter().map(|(_, shape)| identity(shape)).collect());
    assert_eq!(kinds, KINDS.iter().map(|(_, kinds)| kinds.as_ptr().addr()).collect());
}

#[test]
fn a_name_stands_once_in_a_shape() {
    for shape in all_shapes().values() {
        let names: BTreeSet<_> = shape.fields.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), shape.fields.len(), "{}", shape.name);
    }
}

/// Every message that a revision names in its unions is a root, or is left out on purpose.
#[test]
fn every_message_is_a_root() {
    let named: BTreeSet<&str> = ROOTS
        .iter()
        .flat_map(|(_, places)| places.iter())
        .filter_map(|place| match place {
            At::Type(name) | At::Notification(name) | At::Request(name) => Some(*name),
            At::RequestMeta => None,
        })
        .collect();
    let unions = [
        "ServerResult",
        "ClientResult",
        "InputResponse",
        "ServerNotification",
        "ClientNotification",
        "ServerRequest",
        "ClientRequest",
        "InputRequest",
    ];
    let schemas = schemas();
    let mut met = BTreeSet::new();
    for schema in &schemas {
        for union in unions {
            let members = schema.definition(union).and_then(|d| d["anyOf"].as_array()).into_iter().flatten();
            for name in members.filter_map(|m| m["$ref"].as_str()?.rsplit('/').next()) {
                let known = named.contains(name) || LEFT_OUT.contains(&name);
                assert!(known, "{}: {union} has {name}, which no shape describes", schema.revision);
                met.insert(name);
            }
        }
    }
    assert!(LEFT_OUT.iter().all(|name| met.contains(name)), "left out, but in no schema");
    assert!(met.len() > 35, "{met:?}");
}

/// The comparison sees each sort of mistake that a row can have.
#[test]
fn a_wrong_row_is_noticed() {
    const fn row(name: &'static str, exists: Revisions, required: Revisions, holds: Holds) -> Field {
        Field {
            name,
            exists,
            required,
            holds,
            value_type: ValueType::Anything,
            stamped: false,
            narrow: None,
            said_in: None,
            stand_in: None,
        }
    }
    const fn of(mut row: Field, value_type: ValueType) -> Field {
        row.value_type = value_type;
        row
    }
    const ALL: Revisions = Revisions::ALL;
    const NONE: Revisions = Revisions::NONE;
    const URI: Field = of(row("uri", ALL, ALL, Holds::Nothing), ValueType::Uri);
    const NAME: Field = of(row("name", ALL, NONE, Holds::Nothing), ValueType::Text);
    const SINCE: Revisions = Revisions::since(Revision::V2025_06_18);
    const META: Field = of(row(meta::META, SINCE, NONE, Holds::Nothing), ValueType::Free);
    const ROLE: Field = of(row("role", ALL, ALL, Holds::Nothing), ValueType::Word(&["user", "assistant"]));
    static RIGHT: Shape = Shape::new("Root", &[URI, NAME, META]);
    static MISSING: Shape = Shape::new("Root", &[URI, META]);
    static EXTRA: Shape = Shape::new("Root", &[URI, NAME, META, row("extra", ALL, NONE, Holds::Nothing)]);
    static TOO_LONG: Shape =
        Shape::new("Root", &[URI, NAME, of(row(meta::META, ALL, NONE, Holds::Nothing), ValueType::Free)]);
    static NOT_REQUIRED: Shape =
        Shape::new("Root", &[of(row("uri", ALL, NONE, Holds::Nothing), ValueType::Uri), NAME, META]);
    static REQUIRED: Shape =
        Shape::new("Root", &[URI, of(row("name", ALL, ALL, Holds::Nothing), ValueType::Text), META]);
    static OF_ANOTHER_TYPE: Shape = Shape::new("Root", &[URI, of(NAME, ValueType::Flag), META]);
    static NOT_OPENED: Shape = Shape::new("PromptMessage", &[ROLE, row("content", ALL, ALL, Holds::Nothing)]);
    static WRONG_KINDS: Shape = Shape::new(
        "PromptMessage",
        &[ROLE, row("content", ALL, ALL, Holds::Content(fields::SAMPLING_CONTENT))],
    );

    let schemas = schemas();
    let differences = |shape: &'static Shape| -> usize {
        let compare = |schema: &Schema| {
            let mut comparison = Comparison::new(schema);
            comparison.shape(shape, schema.at(At::Type(shape.name)).unwrap(), shape.name);
            comparison.differences.len()
        };
        schemas.iter().map(compare).sum()
    };
    assert_eq!(differences(&RIGHT), 0);
    assert_eq!(differences(&MISSING), 5);
    assert_eq!(differences(&EXTRA), 5);
    assert_eq!(differences(&TOO_LONG), 2);
    assert_eq!(differences(&NOT_REQUIRED), 5);
    assert_eq!(differences(&REQUIRED), 5);
    assert_eq!(differences(&OF_ANOTHER_TYPE), 5);
    assert!(differences(&NOT_OPENED) >= 5);
    assert!(differences(&WRONG_KINDS) >= 5);
}
