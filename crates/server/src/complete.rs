//! Completion of arguments.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion>

use std::collections::HashMap;
use std::sync::Arc;

use proto::BoxFuture;

/// The most values that one answer may hold.
pub(crate) const MOST: usize = 100;

/// An argument that a user is typing, and what is known of the other arguments.
#[derive(Clone, Debug, Default)]
pub struct CompletionArgument {
    pub(crate) value: String,
    pub(crate) arguments: HashMap<String, String>,
}

impl CompletionArgument {
    /// Gives what the user typed; empty where nothing was typed.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Gives the value of another argument, where the client sent it. Clients of revisions before 2025-06-18 cannot.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).map(String::as_str)
    }

    /// Gives the choices that fit what was typed, the best one first: the same text, what begins with it, what has a
    /// word that begins with it, what holds it. Upper and lower case count as one. Choices that fit equally well
    /// keep their order.
    pub fn rank<S: AsRef<str>>(&self, choices: impl IntoIterator<Item = S>) -> Vec<String> {
        let typed = self.value.to_lowercase();
        let mut fitting: Vec<(u8, String)> = choices
            .into_iter()
            .filter_map(|choice| {
                Some((fit(&typed, &choice.as_ref().to_lowercase())?, choice.as_ref().to_owned()))
            })
            .collect();
        fitting.sort_by_key(|(rank, _)| *rank);
        fitting.into_iter().map(|(_, choice)| choice).collect()
    }
}

fn fit(typed: &str, choice: &str) -> Option<u8> {
    if choice == typed {
        return Some(0);
    }
    if choice.starts_with(typed) {
        return Some(1);
    }
    let word = |at: usize| !choice[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    match choice.match_indices(typed).map(|(at, _)| at).find(|at| word(*at)) {
        Some(_) => Some(2),
        None => choice.contains(typed).then_some(3),
    }
}

/// Completes an argument.
pub(crate) type Completer = Arc<dyn Fn(CompletionArgument) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// A completer of an async function.
pub(crate) fn completer<F, Fut>(values: F) -> Completer
where
    F: Fn(CompletionArgument) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<String>> + Send + 'static,
{
    Arc::new(move |typed| Box::pin(values(typed)))
}

/// A completer of a fixed set of choices.
pub(crate) fn choices<S: Into<String>>(choices: impl IntoIterator<Item = S>) -> Completer {
    let choices: Arc<[String]> = choices.into_iter().map(Into::into).collect();
    completer(move |typed: CompletionArgument| std::future::ready(typed.rank(choices.iter())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_choice_comes_first() {
        let typed = |value: &str| CompletionArgument { value: value.into(), ..CompletionArgument::default() };
        let choices = ["a rust", "trust", "Rust", "rusty", "oxide", "crusty-rust"];
        assert_eq!(typed("rust").rank(choices), ["Rust", "rusty", "a rust", "crusty-rust", "trust"]);
        assert_eq!(typed("").rank(choices), choices);
        assert_eq!(typed("é").rank(["Éa", "bé", "c"]), ["Éa", "bé"]);
    }
}
