//! Resources that come, change and go while the server runs: a pin board. Clients that watch are told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dateline::{Args, Error, Resource, Result, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    /// What the note is called.
    name: String,
    /// What it says; without it the note is taken off the board.
    text: Option<String>,
}

/// What the notes say, by URI.
type Board = Arc<Mutex<HashMap<String, String>>>;

fn pin(board: &Board, server: &Server, note: Note) -> Result<String> {
    if !note.name.chars().all(char::is_alphanumeric) {
        return Err(Error::new("a name consists of letters and digits"));
    }
    let uri = format!("board://{}", note.name);
    let mut notes = board.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(text) = note.text else {
        notes.remove(&uri);
        return Ok(if server.remove_resource(&uri) { "taken off" } else { "there is no such note" }.into());
    };
    if notes.insert(uri.clone(), text).is_some() {
        // Whoever subscribed to this very note hears of it.
        server.notifier().resource_updated(&uri);
        return Ok(format!("changed {uri}"));
    }
    let (board, at) = (Arc::clone(board), uri.clone());
    let read = move || {
        let text = board.lock().unwrap_or_else(PoisonError::into_inner).get(&at).cloned();
        async move { text }
    };
    // Whoever listens to the list hears that it changed.
    server.add_resource(Resource::new(&uri, &note.name, read).mime_type("text/plain"))?;
    Ok(format!("pinned {uri}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // It begins without resources and says that there will be some.
    let server = Server::new("board", "1.0.0").dynamic().build()?;
    let (board, pins) = (Board::default(), server.clone());
    server.add_tool(Tool::new(
        "pin",
        "Pins a note to the board, changes it, or takes it off.",
        move |Args(note): Args<Note>| {
            let pinned = pin(&board, &pins, note);
            async move { pinned }
        },
    ))?;
    dateline::stdio(server).await?;
    Ok(())
}
