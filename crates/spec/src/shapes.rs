//! All shapes that the tables lead to.

use crate::fields;
use crate::method::{Method, Notice, Question};
use crate::shape::Shape;

/// Every shape, each once and before those that it leads to. The first ones are those that the rows of methods,
/// questions and notifications name.
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
