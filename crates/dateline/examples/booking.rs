//! Replicas of a server that go on with each other's requests, since they have one key: `booking KEY_FILE ADDRESS`. What
//! was done before a question is done once, whichever process gets the answer.

use std::sync::Mutex;

use dateline::seal::Key;
use dateline::{Args, Context, ElicitForm, Http, Result, Server, State, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Seat {
    seat: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmation {
    sure: bool,
}

/// The seats that this process reserved.
type Reserved = Mutex<Vec<String>>;

async fn reserve(reserved: &Reserved, seat: &str) -> Result<usize> {
    let mut reserved = reserved.lock()?;
    reserved.push(seat.to_owned());
    Ok(reserved.len())
}

async fn book(Args(Seat { seat }): Args<Seat>, cx: Context, reserved: State<Reserved>) -> Result<String> {
    // The number is kept in the sealed request state: the handler that runs with the answer finds it there.
    let number = cx.once("reserve", reserve(&reserved, &seat)).await?;
    let filled = cx.elicit("sure", ElicitForm::<Confirmation>::new(format!("Book {seat}?"))).await?;
    Ok(match filled.accepted() {
        Some(Confirmation { sure: true }) => format!("{seat} is booked, by its reservation {number}"),
        _ => format!("{seat} stays free"),
    })
}

async fn list(reserved: State<Reserved>) -> Result<String> {
    let reserved = reserved.lock()?;
    Ok(if reserved.is_empty() { "nothing".into() } else { reserved.join(", ") })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [key_file, address] = &arguments[..] else { return Err("which key file, and which address?".into()) };
    let key: Key = std::fs::read(key_file)?.try_into().map_err(|_| "a key has 32 bytes")?;
    let server = Server::new("booking", "1.0.0")
        .keys(key)
        .state(Reserved::default())
        .tool(Tool::new("book", "Books a seat.", book))
        .tool(Tool::new("reserved", "Lists the seats that this process reserved.", list))
        .build()?;
    let bound = Http::new(server).bind(address).await?;
    eprintln!("serving {}", bound.url());
    bound.serve().await?;
    Ok(())
}
