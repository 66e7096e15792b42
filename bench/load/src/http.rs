//! One connection of HTTP/1.1 that is kept alive, and event streams.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Outcome;
use crate::job::{Era, Server};
use crate::message::{Exchange, INITIALIZED, LEGACY, MODERN, Template, initialize};

/// Bytes that are read at once at most, unless a body is longer.
const READ: usize = 64 * 1024;
/// The id of the request that opens a session: none of those behind it gets there.
const OPENING: u32 = 99_999_999;

/// What is left of a body.
enum Left {
    Bytes(usize),
    /// The chunk that is read, and then more of them.
    Chunk(usize),
    /// Between two chunks.
    NextChunk,
    UntilClosed,
    Nothing,
}

pub(crate) struct Connection {
    address: String,
    stream: TcpStream,
    /// What was read and is not used yet.
    input: Vec<u8>,
    pub(crate) body: Vec<u8>,
    left: Left,
    close: bool,
}

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) events: bool,
    pub(crate) session: Option<String>,
}

async fn connect(address: &str) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(stream)
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Outcome<Connection> {
        let stream = connect(address).await?;
        let address = address.to_owned();
        Ok(Connection {
            address,
            stream,
            input: Vec::new(),
            body: Vec::new(),
            left: Left::Nothing,
            close: false,
        })
    }

    /// Sends a whole request and reads the head of the response.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Outcome<Head> {
        if self.close {
            self.stream = connect(&self.address).await?;
            self.input.clear();
            self.close = false;
        }
        self.stream.write_all(request).await.map_err(|error| format!("cannot write: {error}"))?;
        self.body.clear();
        loop {
            if let Some(head) = self.head()? {
                return Ok(head);
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Outcome<()> {
        self.input.reserve(READ);
        match self.stream.read_buf(&mut self.input).await {
            Ok(0) => Err("the server closed the connection".into()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("cannot read: {error}")),
        }
    }

    /// The head, once all of it was read.
    fn head(&mut self) -> Outcome<Option<Head>> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&self.input).map_err(|error| format!("not a response: {error}"))?;
        let httparse::Status::Complete(end) = parsed else { return Ok(None) };
        let status = response.code.unwrap_or(0);
        let mut head = Head { status, events: false, session: None };
        self.left = Left::UntilClosed;
        self.close = false;
        for header in response.headers.iter() {
            let value = std::str::from_utf8(header.value).unwrap_or_default();
            match header.name {
                name if name.eq_ignore_ascii_case("content-length") => {
                    self.left = Left::Bytes(value.parse().map_err(|_| "a wrong length")?);
                }
                name if name.eq_ignore_ascii_case("transfer-encoding") => self.left = Left::NextChunk,
                name if name.eq_ignore_ascii_case("content-type") => {
                    head.events = value.starts_with("text/event-stream");
                }
                name if name.eq_ignore_ascii_case("connection") => {
                    self.close = value.eq_ignore_ascii_case("close");
                }
                name if name.eq_ignore_ascii_case("mcp-session-id") => head.session = Some(value.to_owned()),
                _ => {}
            }
        }
        if status == 204 {
            self.left = Left::Nothing;
        }
        self.close |= matches!(self.left, Left::UntilClosed);
        self.input.drain(..end);
        Ok(Some(head))
    }

    /// Moves what was read of the body into `body`, and reads where nothing was. Gives false when the body is over.
    pub(crate) async fn more(&mut self) -> Outcome<bool> {
        loop {
            match self.left {
                Left::Nothing | Left::Bytes(0) => return Ok(false),
                Left::Bytes(left) | Left::Chunk(left) if !self.input.is_empty() => {
                    let taken = left.min(self.input.len());
                    self.body.extend_from_slice(&self.input[..taken]);
                    self.input.drain(..taken);
                    self.left = match self.left {
                        Left::Chunk(_) if taken == left => Left::NextChunk,
                        Left::Chunk(_) => Left::Chunk(left - taken),
                        _ => Left::Bytes(left - taken),
                    };
                    return Ok(true);
                }
                Left::NextChunk => match self.chunk()? {
                    Some(true) => continue,
                    Some(false) => return Ok(false),
                    None => {}
                },
                Left::UntilClosed if !self.input.is_empty() => {
                    self.body.append(&mut self.input);
                    return Ok(true);
                }
                _ => {}
            }
            let ended = self.read().await;
            if ended.is_err() && matches!(self.left, Left::UntilClosed) {
                self.left = Left::Nothing;
                return Ok(false);
            }
            ended?;
        }
    }

    /// Reads the line before a chunk: whether there is one, once the line is there.
    fn chunk(&mut self) -> Outcome<Option<bool>> {
        // The line end behind the chunk before.
        let skipped = if self.input.starts_with(b"\r\n") { 2 } else { 0 };
        let size = httparse::parse_chunk_size(&self.input[skipped..]).map_err(|_| "a wrong chunk")?;
        let httparse::Status::Complete((begin, size)) = size else { return Ok(None) };
        let mut used = skipped + begin;
        if size == 0 {
            // The last chunk is followed by an empty line; none of the servers here sends trailers.
            if self.input.len() < used + 2 {
                return Ok(None);
            }
            used += 2;
        }
        self.input.drain(..used);
        self.left = if size == 0 { Left::Nothing } else { Left::Chunk(size as usize) };
        Ok(Some(size > 0))
    }

    /// Reads the whole body.
    pub(crate) async fn whole(&mut self) -> Outcome<&[u8]> {
        if let Left::Bytes(length) = self.left {
            self.body.reserve(length);
            self.input.reserve(length.saturating_sub(self.input.len()));
        }
        while self.more().await? {}
        Ok(&self.body)
    }
}

/// The data of the events in a stream so far; those without any are left out.
pub(crate) fn events(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let mut data = Vec::new();
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() && !data.is_empty() {
            events.push(std::mem::take(&mut data));
        } else if let Some(more) = line.strip_prefix(b"data:") {
            data.extend_from_slice(more.strip_prefix(b" ").unwrap_or(more));
        }
    }
    events
}

/// A request as it is sent, with a place for its id.
pub(crate) fn post(server: &Server, message: &str, headers: &str) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{message}",
        server.path,
        server.address,
        message.len()
    )
}

/// The headers of a modern request.
pub(crate) fn modern(method: &str, name: Option<&str>) -> String {
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n{name}")
}

/// A client with a connection, and a session where the era has them.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    request: Template,
    exchange: Exchange,
}

impl Client {
    pub(crate) async fn open(server: &Server, era: Era, exchange: &Exchange) -> Outcome<Client> {
        let mut connection = Connection::open(&server.address).await?;
        let headers = match era {
            Era::Modern => modern(exchange.method, exchange.name.as_deref()),
            Era::Legacy => session(&mut connection, server).await?,
        };
        let message = exchange.message.clone();
        let request = Template::new(&post(server, message.text(), &headers));
        Ok(Client { connection, request, exchange: exchange.clone() })
    }

    /// One request with this id, whose answer is right.
    pub(crate) async fn ask(&mut self, id: u32) -> Outcome<()> {
        let head = self.connection.send(self.request.with(id)).await?;
        let body = self.connection.whole().await?;
        if head.status != 200 {
            let shown = String::from_utf8_lossy(&body[..body.len().min(400)]).into_owned();
            return Err(format!("status {} in answer to {id}: {shown}", head.status));
        }
        if !head.events {
            return self.exchange.check(id, &[body]);
        }
        let events = events(body);
        let messages: Vec<&[u8]> = events.iter().map(Vec::as_slice).collect();
        self.exchange.check(id, &messages)
    }
}

/// Opens a session; gives the headers of its requests.
pub(crate) async fn session(connection: &mut Connection, server: &Server) -> Outcome<String> {
    let mut opening = Template::new(&post(server, &initialize(), ""));
    let head = connection.send(opening.with(OPENING)).await?;
    let body = connection.whole().await?;
    if head.status != 200 {
        return Err(format!("status {} for initialize: {}", head.status, String::from_utf8_lossy(body)));
    }
    // A server may do without a session.
    let session = head.session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let headers = format!("MCP-Protocol-Version: {LEGACY}\r\n{session}");
    let head = connection.send(post(server, INITIALIZED, &headers).as_bytes()).await?;
    connection.whole().await?;
    if head.status == 202 { Ok(headers) } else { Err(format!("status {} for initialized", head.status)) }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What a client reads of a response that comes in two parts, cut at any place.
    async fn read(response: &'static [u8]) -> Outcome<Vec<Vec<u8>>> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?.to_string();
        tokio::spawn(async move {
            for cut in 0..=response.len() {
                let (mut stream, _) = listener.accept().await?;
                stream.read_u8().await?;
                stream.write_all(&response[..cut]).await?;
                tokio::task::yield_now().await;
                stream.write_all(&response[cut..]).await?;
            }
            Ok::<(), std::io::Error>(())
        });
        let mut bodies = Vec::new();
        for _ in 0..=response.len() {
            let mut connection = Connection::open(&address).await?;
            let head = connection.send(b"x").await?;
            assert_eq!(head.status, 200);
            bodies.push(connection.whole().await?.to_vec());
        }
        Ok(bodies)
    }

    #[tokio::test]
    async fn bodies_are_read_wherever_they_are_cut() {
        let responses: [&'static [u8]; 3] = [
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\nhello",
        ];
        for response in responses {
            let bodies = read(response).await.expect("a body");
            assert!(bodies.iter().all(|body| body == b"hello"), "{}", String::from_utf8_lossy(response));
        }
    }

    #[test]
    fn events_have_data_and_an_end() {
        let stream =
            b": hi\n\nid: 1\nretry: 3\ndata:\n\ndata: {\"a\":1}\r\n\r\nevent: message\ndata: 2\n\ndata: cut";
        assert_eq!(events(stream), [b"{\"a\":1}".to_vec(), b"2".to_vec()]);
    }
}
