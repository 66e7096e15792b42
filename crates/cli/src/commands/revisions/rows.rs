//! The tables of `spec`, as one list of rows.

use clap::ValueEnum;
use spec::shape::{Holds, Kind as ContentKind, Shape};
use spec::{
    Direction, Era, Home, Method, Notice, Question, Revision, Revisions, Setting, fields, header, meta,
};

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowKind {
    /// Requests of a client.
    Methods,
    /// Requests of a server, or what it asks for in a result.
    Questions,
    /// Messages that are not answered.
    Notifications,
    /// What peers declare.
    Capabilities,
    /// Fields of the types that messages consist of.
    Fields,
    /// Kinds of content blocks.
    Content,
    /// Reserved keys of `_meta`.
    Meta,
    /// HTTP headers.
    Headers,
    /// Error codes.
    Codes,
    /// How a revision behaves.
    Behaviour,
}

impl RowKind {
    /// Its name in the output.
    pub(crate) fn word(self) -> &'static str {
        match self {
            RowKind::Methods => "methods",
            RowKind::Questions => "questions",
            RowKind::Notifications => "notifications",
            RowKind::Capabilities => "capabilities",
            RowKind::Fields => "fields",
            RowKind::Content => "content",
            RowKind::Meta => "meta",
            RowKind::Headers => "headers",
            RowKind::Codes => "codes",
            RowKind::Behaviour => "behaviour",
        }
    }
}

/// How many revisions there are.
pub(super) const COUNT: usize = Revision::ALL.len();

/// The revisions, the oldest first.
pub(super) fn in_order() -> [Revision; COUNT] {
    let mut revisions = Revision::ALL;
    revisions.reverse();
    revisions
}

/// Something that exists in some revisions, or differs between them.
pub(super) struct RevisionRow {
    pub(super) kind: RowKind,
    /// What it is part of: the type of a field, the place of a content block.
    pub(super) group: Option<String>,
    pub(super) name: String,
    /// Other names by which it is found.
    pub(super) words: Vec<String>,
    /// An explanation; empty when there is none.
    pub(super) about: String,
    /// What it is in each revision, in the order of [`in_order`].
    pub(super) cells: [Cell; COUNT],
}

impl RevisionRow {
    /// The name, with the group that it is part of.
    pub(super) fn full_name(&self) -> String {
        match &self.group {
            // The group is a place, not a type.
            Some(group) if group.contains(' ') => format!("{} ({group})", self.name),
            Some(group) => format!("{group}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// What something is in one revision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    /// It does not exist there.
    Absent,
    /// It exists there, and that is all.
    Present,
    /// It exists there in this way.
    As(&'static str),
    /// How the revision behaves.
    Behaves(Setting),
}

fn cells(of: impl Fn(Revision) -> Cell) -> [Cell; COUNT] {
    in_order().map(of)
}

fn lifetime(exists: Revisions) -> [Cell; COUNT] {
    cells(|revision| if exists.contains(revision) { Cell::Present } else { Cell::Absent })
}

/// The rows of all tables.
pub(super) fn entries() -> Vec<RevisionRow> {
    let mut found = Vec::new();
    methods(&mut found);
    questions(&mut found);
    notifications(&mut found);
    for (name, shape, within) in [
        ("ServerCapabilities", &fields::SERVER_CAPABILITIES, "server"),
        ("ClientCapabilities", &fields::CLIENT_CAPABILITIES, "client"),
    ] {
        capabilities(&mut found, &CapabilityOwner { group: name, within }, shape, "", Revisions::ALL);
    }
    all_fields(&mut found);
    for (place, kinds) in fields::KINDS {
        found.extend(kinds.iter().map(|block| content(place, block)));
    }
    for (place, shape) in fields::METAS {
        found.extend(members(RowKind::Meta, &format!("{} of {place}", meta::META), shape));
    }
    for (name, exists) in header::ROWS {
        let name = if name.ends_with('-') { format!("{name}*") } else { (*name).to_owned() };
        found.push(RevisionRow {
            kind: RowKind::Headers,
            group: None,
            name,
            words: Vec::new(),
            about: String::new(),
            cells: lifetime(*exists),
        });
    }
    found.extend(spec::Code::all().map(code));
    behaviour(&mut found);
    found
}

fn methods(found: &mut Vec<RevisionRow>) {
    for row in Method::rows() {
        let mut about = vec![format!("answered by {}", row.result.name)];
        about.extend(row.needs.map(|needed| match needed.path() {
            (name, Some(flag)) => format!("needs the server's {name}.{flag}"),
            (name, None) => format!("needs the server's {name}"),
        }));
        about.extend(row.named_by.map(|by| format!("HTTP mirrors its {by}")));
        about.extend(row.cacheable.then(|| "has cache hints where results describe themselves".to_owned()));
        about.extend(row.asks.then(|| "may ask for input first".to_owned()));
        for (_, home) in row.lifetimes {
            if let Home::Extension(id) = home {
                about.push(format!("extension: {id}"));
            }
        }
        let home = |revision| {
            let home = row.lifetimes.iter().find(|(set, _)| set.contains(revision)).map(|(_, home)| home);
            match home {
                None => Cell::Absent,
                Some(Home::Core) => Cell::Present,
                Some(Home::Extension(_)) => Cell::As("extension"),
            }
        };
        found.push(RevisionRow {
            kind: RowKind::Methods,
            group: None,
            name: row.wire.to_owned(),
            words: Vec::new(),
            about: about.join("; "),
            cells: cells(home),
        });
    }
}

fn questions(found: &mut Vec<RevisionRow>) {
    found.extend(Question::ALL.into_iter().map(|question| RevisionRow {
        kind: RowKind::Questions,
        group: None,
        name: question.wire().to_owned(),
        words: Vec::new(),
        about: format!(
            "params {}; answered by {}; needs the client's {}",
            question.params().name,
            question.answer().name,
            question.needs()
        ),
        cells: cells(|revision| match (question.exists().contains(revision), revision.rules()) {
            (false, _) => Cell::Absent,
            (true, rules) if rules.era() == Era::Legacy => Cell::As("request"),
            (true, _) => Cell::As("in result"),
        }),
    }));
}

fn notifications(found: &mut Vec<RevisionRow>) {
    found.extend(Notice::rows().iter().map(|row| {
        let needs = row.needs.map(|needed| match needed.path() {
            (name, Some(flag)) => format!("; needs the server's {name}.{flag}"),
            (name, None) => format!("; needs the server's {name}"),
        });
        let direction: Direction = row.direction;
        RevisionRow {
            kind: RowKind::Notifications,
            group: None,
            name: row.wire.to_owned(),
            words: Vec::new(),
            about: format!("{}; params {}{}", direction.words(), row.params.name, needs.unwrap_or_default()),
            cells: lifetime(row.exists),
        }
    }));
}

/// The peer whose capabilities are listed.
struct CapabilityOwner {
    group: &'static str,
    within: &'static str,
}

fn capabilities(
    found: &mut Vec<RevisionRow>,
    place: &CapabilityOwner,
    shape: &Shape,
    above: &str,
    exists: Revisions,
) {
    for field in shape.fields {
        let exists = exists.and(field.exists);
        let name = format!("{above}{}", field.name);
        found.push(RevisionRow {
            kind: RowKind::Capabilities,
            group: Some(place.group.to_owned()),
            words: vec![format!("{}.{name}", place.within)],
            about: String::new(),
            cells: lifetime(exists),
            name: name.clone(),
        });
        for below in field.holds.shapes() {
            capabilities(found, place, below, &format!("{name}."), exists);
        }
    }
}

/// The fields of all types, except those that are rows of another kind.
fn all_fields(found: &mut Vec<RevisionRow>) {
    let is_meta = |shape: &Shape| fields::METAS.iter().any(|(_, known)| std::ptr::eq(*known, shape));
    let is_capability = |shape: &Shape| {
        let of = |known: &Shape| shape.name.split('.').next() == Some(known.name);
        of(&fields::SERVER_CAPABILITIES) || of(&fields::CLIENT_CAPABILITIES)
    };
    for shape in spec::shapes() {
        if !is_meta(shape) && !is_capability(shape) {
            found.extend(members(RowKind::Fields, shape.name, shape));
        }
    }
}

/// The fields of one type.
fn members(kind: RowKind, group: &str, shape: &'static Shape) -> impl Iterator<Item = RevisionRow> {
    let words = carried_by(shape);
    // A field that is in no revision is a key that is reserved for other places.
    let lives = shape.fields.iter().filter(|field| field.exists != Revisions::NONE);
    lives.map(move |field| RevisionRow {
        kind,
        group: Some(group.to_owned()),
        name: field.name.to_owned(),
        words: [&words[..], &[shape.name.to_owned()]].concat(),
        about: match field.holds {
            Holds::Nothing => String::new(),
            Holds::Object(shape) => format!("of type {}", shape.name),
            Holds::List(shape) => format!("a list of {}", shape.name),
            Holds::Map(shape) => format!("{} by name", shape.name),
            Holds::Content(_) => "a block of content".to_owned(),
            Holds::Contents(_) => "blocks of content".to_owned(),
            Holds::ContentOrList(_) => "a block of content, or several where sampling has tools".to_owned(),
        },
        cells: cells(|revision| {
            if !field.exists.contains(revision) {
                Cell::Absent
            } else if field.required.contains(revision) {
                Cell::As("required")
            } else {
                Cell::As("optional")
            }
        }),
    })
}

/// The messages whose params or result are of this type.
fn carried_by(shape: &Shape) -> Vec<String> {
    let same = |other: &Shape| std::ptr::eq(shape, other);
    let of_method = |row: &&spec::MethodRow| same(row.params) || same(row.result);
    let methods = Method::rows().iter().filter(of_method).map(|row| row.wire);
    let notices = Notice::rows().iter().filter(|row| same(row.params)).map(|row| row.wire);
    let questions = Question::ALL.into_iter().filter(|q| same(q.params()) || same(q.answer()));
    methods.chain(notices).chain(questions.map(Question::wire)).map(str::to_owned).collect()
}

fn content(place: &str, block: &ContentKind) -> RevisionRow {
    RevisionRow {
        kind: RowKind::Content,
        group: Some(format!("in {place}")),
        name: block.tag.to_owned(),
        words: vec![block.shape.name.to_owned()],
        about: format!("fields: {}", block.shape.name),
        cells: lifetime(block.exists),
    }
}

fn code(code: spec::Code) -> RevisionRow {
    let (number, word) = (code.number().to_string(), format!("{code:?}"));
    RevisionRow {
        kind: RowKind::Codes,
        group: None,
        name: format!("{number} {word}"),
        words: vec![number, word],
        about: String::new(),
        cells: lifetime(code.exists()),
    }
}

fn behaviour(found: &mut Vec<RevisionRow>) {
    let revisions = in_order().map(|revision| revision.rules().columns());
    for (at, column) in revisions[0].iter().enumerate() {
        let mut cells = [Cell::Absent; COUNT];
        for (cell, columns) in cells.iter_mut().zip(&revisions) {
            *cell = Cell::Behaves(columns[at].value);
        }
        found.push(RevisionRow {
            kind: RowKind::Behaviour,
            group: None,
            name: column.name.to_owned(),
            words: Vec::new(),
            about: column.about.to_owned(),
            cells,
        });
    }
}
