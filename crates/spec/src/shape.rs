//! How rows of fields are written down: a shape is an object type of the schema, a field one name in it.

use crate::revision::{Revision, Revisions};

/// An object type of the schema, with its fields over all revisions.
///
/// A field that no row names is unknown and passes unchanged
/// (<https://modelcontextprotocol.io/specification/2026-07-28/basic/index#messages>).
#[derive(Debug)]
pub struct Shape {
    /// The type's name in the newest schema that has it.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

/// One field of a [`Shape`].
#[derive(Debug)]
pub struct Field {
    /// The name on the wire.
    pub name: &'static str,
    /// Where it exists.
    pub exists: Revisions,
    /// Where a message without it is invalid.
    pub required: Revisions,
    /// What lies below it, where rows say something about that.
    pub opens: Opens,
    /// What its value has to be, where it opens nothing.
    pub is: Is,
    /// Whoever answers writes it, whatever a service says.
    pub stamped: bool,
    /// Where its value has to be of a narrower form than elsewhere, and of which.
    pub narrow: Option<(Revisions, Form)>,
    /// The list of content beside it that says it in words, where a peer cannot be shown it and is told nothing else.
    pub said_in: Option<&'static str>,
    /// The field beside it whose value serves, where the peer's revision wants this one and the sender's has none.
    pub stand_in: Option<&'static str>,
}

/// What a value has to be, in every revision that has it. `null` is only [`Is::Anything`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Is {
    /// Anything.
    Anything,
    /// A text.
    Text,
    /// A text that says all that there is: any other value says the same as its JSON.
    Said,
    /// A text by which others ask for it: a value of another type cannot be asked for.
    Key,
    /// An absolute URI, by which others ask for it.
    Uri,
    /// One of these texts.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// A number from 0 to 1.
    Share,
    /// A whole number.
    Whole,
    /// A text or a whole number.
    Id,
    /// An object whose members are free.
    Free,
    /// An array of texts, at most so many.
    Texts(usize),
    /// An array of some of these texts.
    Words(&'static [&'static str]),
    /// A JSON Schema of objects.
    Schema,
    /// A JSON Schema.
    AnySchema,
    /// A JSON Schema of objects that have listed properties.
    Form,
}

/// A form that some revisions ask of a value where others take any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// An object.
    Object,
    /// A JSON Schema of objects.
    ObjectSchema,
}

/// What lies below a field.
#[derive(Clone, Copy, Debug)]
pub enum Opens {
    /// Nothing that rows speak of: the value passes as it is.
    Nothing,
    /// One object.
    Object(&'static Shape),
    /// An array of objects.
    List(&'static Shape),
    /// An object whose every value is of this shape.
    Map(&'static Shape),
    /// One block of content, told apart by its `type`.
    Content(&'static [Kind]),
    /// An array of blocks of content.
    Contents(&'static [Kind]),
    /// One block or, where [`crate::Rules::sampling_tools`] allows it, an array of them.
    ContentOrList(&'static [Kind]),
}

impl Opens {
    /// The shapes of what lies there.
    pub fn shapes(self) -> impl Iterator<Item = &'static Shape> {
        let (one, kinds): (_, &'static [Kind]) = match self {
            Opens::Nothing => (None, &[]),
            Opens::Object(shape) | Opens::List(shape) | Opens::Map(shape) => (Some(shape), &[]),
            Opens::Content(kinds) | Opens::Contents(kinds) | Opens::ContentOrList(kinds) => (None, kinds),
        };
        one.into_iter().chain(kinds.iter().map(|kind| kind.shape))
    }
}

/// A kind of content block.
#[derive(Debug)]
pub struct Kind {
    /// The value of `type`.
    pub tag: &'static str,
    /// Where it exists.
    pub exists: Revisions,
    /// Its other fields.
    pub shape: &'static Shape,
}

impl Shape {
    /// The row of a field, if there is one.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// The shapes right below its fields.
    pub fn below(&self) -> impl Iterator<Item = &'static Shape> {
        self.fields.iter().flat_map(|field| field.opens.shapes())
    }

    /// Whether a value of this shape can need a change for a peer of this revision; where not, it is passed
    /// on unread.
    pub fn concerns(&self, revision: Revision) -> bool {
        self.concerns_within(revision, 4)
    }

    fn concerns_within(&self, revision: Revision, depth: u8) -> bool {
        if depth == 0 {
            return false;
        }
        let kinds = |kinds: &'static [Kind]| {
            kinds.iter().any(|k| !k.exists.contains(revision) || k.shape.concerns_within(revision, depth - 1))
        };
        self.fields.iter().any(|f| {
            !f.exists.contains(revision)
                || f.narrow.is_some_and(|(narrow, _)| narrow.contains(revision))
                || f.stand_in.is_some()
                || match f.opens {
                    Opens::Nothing => false,
                    Opens::Object(s) | Opens::List(s) | Opens::Map(s) => {
                        s.concerns_within(revision, depth - 1)
                    }
                    Opens::Content(k) | Opens::Contents(k) => kinds(k),
                    // Whether one block or several may stand here differs by revision.
                    Opens::ContentOrList(_) => true,
                }
        })
    }
}

/// An optional field that opens nothing.
pub(crate) const fn opt(name: &'static str, exists: Revisions) -> Field {
    Field {
        name,
        exists,
        required: Revisions::NONE,
        opens: Opens::Nothing,
        is: Is::Anything,
        stamped: false,
        narrow: None,
        said_in: None,
        stand_in: None,
    }
}

/// A field that is required wherever it exists.
pub(crate) const fn req(name: &'static str, exists: Revisions) -> Field {
    opt(name, exists).required(exists)
}

impl Field {
    /// The same field with what its value has to be.
    pub(crate) const fn of(mut self, is: Is) -> Field {
        self.is = is;
        self
    }

    /// The same field, written by whoever answers.
    pub(crate) const fn stamped(mut self) -> Field {
        self.stamped = true;
        self
    }

    /// Whether an object without it means nothing, in whichever revision it was written.
    pub fn is_needed(&self) -> bool {
        !self.stamped && self.required == self.exists && self.exists != Revisions::NONE
    }

    /// The same field with something below it.
    pub(crate) const fn opens(mut self, opens: Opens) -> Field {
        self.opens = opens;
        self
    }

    /// The same field, required in these revisions only.
    pub(crate) const fn required(mut self, required: Revisions) -> Field {
        self.required = required;
        self
    }

    /// The same field with a narrower form in these revisions.
    pub(crate) const fn narrow(mut self, revisions: Revisions, form: Form) -> Field {
        self.narrow = Some((revisions, form));
        self
    }

    /// The same field, said in this list of content where it cannot be shown.
    pub(crate) const fn said_in(mut self, content: &'static str) -> Field {
        self.said_in = Some(content);
        self
    }

    /// The same field with another one that serves for it.
    pub(crate) const fn stand_in(mut self, other: &'static str) -> Field {
        self.stand_in = Some(other);
        self
    }
}
