//! How the rows of fields are written: a shape is an object type of the schema, and a field is one name in it.

use crate::revision::{Revision, Revisions};

/// An object type of the schema, with the fields that it has in any revision.
///
/// A field that no row names is unknown. It is passed on unchanged
/// (<https://modelcontextprotocol.io/specification/2026-07-28/basic/index#messages>).
#[derive(Debug)]
pub struct Shape {
    /// The name of the type in the newest schema that has it.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
    /// The revisions for which an object may have to be changed.
    concerned: Revisions,
}

/// One field of a [`Shape`].
#[derive(Debug)]
pub struct Field {
    /// The name that messages carry.
    pub name: &'static str,
    /// The revisions that have the field.
    pub exists: Revisions,
    /// The revisions in which an object without the field is invalid.
    pub required: Revisions,
    /// What its value holds, where rows describe that.
    pub holds: Holds,
    /// What its value has to be, where rows do not describe what the value holds.
    pub value_type: ValueType,
    /// The server that answers writes the field itself; it ignores what a service wrote there.
    pub stamped: bool,
    /// The revisions that allow fewer values than others do, and which values they allow.
    pub narrow: Option<(Revisions, Form)>,
    /// The field of the same object that holds content. Where a peer cannot be shown this field and that content is
    /// empty, the content shows the value as text.
    pub said_in: Option<&'static str>,
    /// The field of the same object whose value is used where this field is missing.
    pub stand_in: Option<&'static str>,
}

/// What a value has to be in every revision that has its field. Only [`ValueType::Anything`] may be `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueType {
    /// Anything.
    Anything,
    /// A string.
    Text,
    /// A string that is shown to people or models. Any other value is shown as its JSON.
    Said,
    /// A string that peers use as a name in later requests. A value of another type cannot be corrected.
    Key,
    /// An absolute URI that peers use in later requests.
    Uri,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// A number from 0 to 1.
    Share,
    /// A whole number.
    Whole,
    /// A string or a whole number.
    Id,
    /// An object that may have any members.
    Free,
    /// An array of at most this many strings.
    Texts(usize),
    /// An array of some of these strings.
    Words(&'static [&'static str]),
    /// A JSON Schema whose type is `object`.
    Schema,
    /// A JSON Schema.
    AnySchema,
    /// A JSON Schema whose type is `object` and which lists its properties.
    Form,
}

/// What some revisions require of a value for which other revisions allow anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// An object.
    Object,
    /// A JSON Schema whose type is `object`.
    ObjectSchema,
}

/// What the value of a field holds, as far as rows describe it.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// Rows do not describe the value; it is passed on as it is.
    Nothing,
    /// One object.
    Object(&'static Shape),
    /// An array of objects.
    List(&'static Shape),
    /// An object whose members all hold objects of this shape.
    Map(&'static Shape),
    /// One block of content. Its `type` says of which kind it is.
    Content(&'static [Kind]),
    /// An array of blocks of content.
    Contents(&'static [Kind]),
    /// One block or, where [`crate::Rules::sampling_tools`] allows it, an array of them.
    ContentOrList(&'static [Kind]),
}

impl Holds {
    /// Returns whether the value may have to be changed for a peer of this revision.
    pub const fn concerns(self, revision: Revision) -> bool {
        self.concerned().contains(revision)
    }

    const fn concerned(self) -> Revisions {
        match self {
            Holds::Nothing => Revisions::NONE,
            Holds::Object(shape) | Holds::List(shape) | Holds::Map(shape) => shape.concerned,
            Holds::Content(kinds) | Holds::Contents(kinds) => kinds_concerned(kinds),
            // Some revisions allow several blocks here, others only one.
            Holds::ContentOrList(_) => Revisions::ALL,
        }
    }

    /// Iterates over the shapes of the objects in the value.
    pub fn shapes(self) -> impl Iterator<Item = &'static Shape> {
        let (one, kinds): (_, &'static [Kind]) = match self {
            Holds::Nothing => (None, &[]),
            Holds::Object(shape) | Holds::List(shape) | Holds::Map(shape) => (Some(shape), &[]),
            Holds::Content(kinds) | Holds::Contents(kinds) | Holds::ContentOrList(kinds) => (None, kinds),
        };
        one.into_iter().chain(kinds.iter().map(|kind| kind.shape))
    }
}

/// Returns the revisions for which a block of one of these kinds may have to be changed.
const fn kinds_concerned(kinds: &[Kind]) -> Revisions {
    let mut concerned = Revisions::NONE;
    let mut at = 0;
    while at < kinds.len() {
        concerned = concerned.or(kinds[at].exists.not()).or(kinds[at].shape.concerned);
        at += 1;
    }
    concerned
}

/// A kind of content block.
#[derive(Debug)]
pub struct Kind {
    /// The value of `type` that marks the kind.
    pub tag: &'static str,
    /// The revisions that have the kind.
    pub exists: Revisions,
    /// The fields beside `type`.
    pub shape: &'static Shape,
}

impl Shape {
    /// Returns the shape with these fields.
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Shape {
        let mut concerned = Revisions::NONE;
        let mut at = 0;
        while at < fields.len() {
            concerned = concerned.or(fields[at].concerned());
            at += 1;
        }
        Shape { name, fields, concerned }
    }

    /// Returns the row of a field; `None` where no row names it.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// Iterates over the shapes of the objects that its fields hold.
    pub fn below(&self) -> impl Iterator<Item = &'static Shape> {
        self.fields.iter().flat_map(|field| field.holds.shapes())
    }

    /// Returns whether an object of this shape may have to be changed for a peer of this revision. Any other object
    /// is passed on without being read.
    pub const fn concerns(&self, revision: Revision) -> bool {
        self.concerned.contains(revision)
    }
}

/// Returns an optional field whose value rows do not describe.
pub(crate) const fn opt(name: &'static str, exists: Revisions) -> Field {
    Field {
        name,
        exists,
        required: Revisions::NONE,
        holds: Holds::Nothing,
        value_type: ValueType::Anything,
        stamped: false,
        narrow: None,
        said_in: None,
        stand_in: None,
    }
}

/// Returns a field that is required in every revision that has it.
pub(crate) const fn req(name: &'static str, exists: Revisions) -> Field {
    opt(name, exists).required(exists)
}

impl Field {
    /// Returns the revisions for which an object may have to be changed because of this field.
    const fn concerned(&self) -> Revisions {
        let narrow = match self.narrow {
            Some((revisions, _)) => revisions,
            None => Revisions::NONE,
        };
        let stand_in = if self.stand_in.is_some() { Revisions::ALL } else { Revisions::NONE };
        self.exists.not().or(narrow).or(stand_in).or(self.holds.concerned())
    }

    /// Sets what the value has to be.
    pub(crate) const fn of(mut self, value_type: ValueType) -> Field {
        self.value_type = value_type;
        self
    }

    /// Sets that the server that answers writes the field itself.
    pub(crate) const fn stamped(mut self) -> Field {
        self.stamped = true;
        self
    }

    /// Returns whether every revision that has the field requires it, so that an object without it has no meaning.
    pub fn is_needed(&self) -> bool {
        !self.stamped && self.required == self.exists && self.exists != Revisions::NONE
    }

    /// Sets what the value holds.
    pub(crate) const fn holds(mut self, holds: Holds) -> Field {
        self.holds = holds;
        self
    }

    /// Sets the revisions that require the field.
    pub(crate) const fn required(mut self, required: Revisions) -> Field {
        self.required = required;
        self
    }

    /// Sets what these revisions require of the value.
    pub(crate) const fn narrow(mut self, revisions: Revisions, form: Form) -> Field {
        self.narrow = Some((revisions, form));
        self
    }

    /// Sets the field whose content shows the value as text where a peer cannot be shown this field.
    pub(crate) const fn said_in(mut self, content: &'static str) -> Field {
        self.said_in = Some(content);
        self
    }

    /// Sets the field whose value is used where this one is missing.
    pub(crate) const fn stand_in(mut self, other: &'static str) -> Field {
        self.stand_in = Some(other);
        self
    }
}
