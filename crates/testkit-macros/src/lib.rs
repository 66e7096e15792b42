//! Development only: the attribute of tests that note what they cover.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// Marks an async function as a test, and tells the notes on coverage the name of the test.
///
/// It replaces `#[tokio::test]`: the test runs on a runtime of one thread. It takes no arguments.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    match expand(arguments, function) {
        Ok(test) => test,
        Err(why) => format!("compile_error!({why:?});").parse().unwrap_or_default(),
    }
}

/// Writes `async fn name() { body }` as `#[test] fn name() { testkit::run("name", async move { body }) }`.
fn expand(arguments: TokenStream, function: TokenStream) -> Result<TokenStream, &'static str> {
    if !arguments.is_empty() {
        return Err("this attribute takes no arguments");
    }
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let is =
        |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
    let at = tokens.iter().position(|token| is(token, "async")).ok_or("a test is an async function")?;
    let marker = tokens.remove(at);
    let name = match (tokens.get(at), tokens.get(at + 1)) {
        (Some(function), Some(TokenTree::Ident(name))) if is(function, "fn") => name.to_string(),
        _ => return Err("a test is an async function"),
    };
    let Some(TokenTree::Group(body)) = tokens.pop().filter(is_block) else {
        return Err("a test has a body");
    };
    let mut run: TokenStream = "::testkit::run".parse().map_err(|_| "the path is no Rust")?;
    let future = [marker, TokenTree::Ident(Ident::new("move", Span::call_site())), TokenTree::Group(body)];
    let mut given: TokenStream = format!("{name:?},").parse().map_err(|_| "the name is no Rust")?;
    given.extend(future);
    run.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, given))]);
    tokens.push(TokenTree::Group(Group::new(Delimiter::Brace, run)));
    let mut test: TokenStream =
        "#[::core::prelude::v1::test]".parse().map_err(|_| "the attribute is no Rust")?;
    test.extend(tokens);
    Ok(test)
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}
