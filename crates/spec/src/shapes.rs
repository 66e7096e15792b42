//! The list of all shapes.

use crate::fields;
use crate::method::{Method, Notice};
use crate::question::Question;
use crate::shape::Shape;

/// Returns every shape that the tables reach, each once.
///
/// The shapes that rows of methods, questions and notifications name come first. A shape comes before the shapes of
/// its fields.
pub fn shapes() -> Vec<&'static Shape> {
    let results = Method::rows().iter().map(|row| row.result);
    let notices = Notice::rows().iter().map(|row| row.params);
    let questions = Question::ALL.into_iter().flat_map(|question| [question.params(), question.answer()]);
    let requests = Method::rows().iter().map(|row| row.params);
    let mut left: Vec<&'static Shape> = results
        .chain([&fields::INPUT_REQUIRED_RESULT])
        .chain(notices)
        .chain(questions)
        .chain(requests)
        .collect();
    left.reverse();
    let mut found: Vec<&'static Shape> = Vec::new();
    while let Some(shape) = left.pop() {
        if found.iter().any(|known| std::ptr::eq(*known, shape)) {
            continue;
        }
        found.push(shape);
        let below: Vec<_> = shape.below().collect();
        left.extend(below.into_iter().rev());
    }
    found
}
