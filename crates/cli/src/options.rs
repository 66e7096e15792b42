//! Options that several commands share.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use dateline::HttpOptions;

#[derive(Args, Debug)]
pub(crate) struct ConfigOptions {
    /// The configuration file [default: $DATELINE_CONFIG, else dateline/config.json in the configuration directory].
    ///
    /// It has the form that clients use: {"mcpServers": {NAME: {"command", "args", "env", "cwd"} or {"url", "headers"}}}.
    /// Comments are allowed. The configuration directory is $XDG_CONFIG_HOME, else ~/.config. Without a configuration,
    /// `serve` and `stdio` serve a demo.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct AdminOptions {
    /// The Unix socket of the admin API [default: dateline/admin.sock in $XDG_RUNTIME_DIR, else in the state directory].
    ///
    /// The state directory is $XDG_STATE_HOME, else ~/.local/state.
    #[arg(long, value_name = "PATH", env = "DATELINE_ADMIN_SOCKET")]
    pub(crate) admin_socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct KeyOptions {
    /// A file of keys that several processes share, so that a client of 2026-07-28 can send each request to another process.
    /// The first key seals the client's cursors and request states, and every key opens them. One key of 32 bytes per line,
    /// in base64 or hex, as `dateline key` prints it; # begins a comment. The file is read again when it changes, and on
    /// SIGHUP. Default: a random key of this process.
    #[arg(long, value_name = "FILE", env = "DATELINE_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ListenOptions {
    /// Where to listen; can be repeated.
    ///
    /// ADDR:PORT serves HTTP (port 0 takes a free port), PORT alone listens on
    /// 127.0.0.1. unix:PATH and tcp:ADDR:PORT serve the framing of stdio: one message per line.
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:4400", value_parser = listen_place)]
    pub(crate) listen: Vec<String>,
    /// Allow to listen on an address that other machines can reach, although clients need no login.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// A host name under which clients may reach this server, such as gateway.example; can be repeated.
    ///
    /// localhost and the addresses listened on are always allowed.
    #[arg(long = "allow-host", value_name = "HOST", value_parser = transport::http::host)]
    pub(crate) allow_hosts: Vec<String>,
    /// An origin whose web pages may send requests from a browser, such as https://app.example; can be repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = transport::http::origin)]
    pub(crate) allow_origins: Vec<String>,
    /// The largest message that is accepted, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) max_message: usize,
    #[command(flatten)]
    pub(crate) limits: HttpLimits,
}

/// What all clients of one HTTP address together may hold.
#[derive(Args, Debug)]
pub(crate) struct HttpLimits {
    /// How many connections may be open at each HTTP address.
    ///
    /// At most three quarters of the files that the process may open are used. For one more connection, the connection that has waited longest for its client is closed.
    #[arg(long, value_name = "COUNT", default_value_t = HttpOptions::default().connections)]
    pub(crate) max_connections: usize,
    /// How many sessions of older revisions may be open.
    ///
    /// For one more, the session that was unused longest ends.
    #[arg(long, value_name = "COUNT", default_value_t = HttpOptions::default().sessions)]
    pub(crate) max_sessions: usize,
    /// How many event streams without an end may be open: listens, and streams of sessions.
    #[arg(long, value_name = "COUNT", default_value_t = HttpOptions::default().listens)]
    pub(crate) max_listens: usize,
    /// How many bytes of requests may be in memory, of all clients together.
    ///
    /// As many bytes of unread responses may be, and a
    /// quarter as many of responses that are kept for clients that reconnect.
    #[arg(long, value_name = "BYTES", default_value_t = HttpOptions::default().request_bytes)]
    pub(crate) max_held: usize,
    /// How much of each of these limits the clients of one IP address may use, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = HttpOptions::default().address_share,
        value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) share: u8,
    /// An IP address from which many clients come, such as that of a proxy; can be repeated.
    ///
    /// --share does not apply to it, nor to 127.0.0.1 and ::1.
    #[arg(long = "shared-address", value_name = "ADDRESS")]
    pub(crate) shared_addresses: Vec<IpAddr>,
}

impl HttpLimits {
    /// These limits as options of an HTTP endpoint.
    pub(crate) fn options(&self) -> HttpOptions {
        let defaults = HttpOptions::default();
        let shared = [&defaults.shared_addresses[..], &self.shared_addresses].concat();
        defaults
            .connections(self.max_connections)
            .sessions(self.max_sessions)
            .listens(self.max_listens)
            .request_bytes(self.max_held)
            .response_bytes(self.max_held)
            .replay_bytes(self.max_held / 4)
            .address_share(self.share)
            .shared_addresses(shared)
    }
}

/// Reads a value of --listen. A port alone is a port on 127.0.0.1.
fn listen_place(text: &str) -> Result<String, String> {
    let (prefix, address) = match text.split_once(':') {
        Some(("unix", "")) => return Err("write the path of the socket after unix:".into()),
        Some(("unix", _)) => return Ok(text.to_owned()),
        Some(("tcp", address)) => ("tcp:", address),
        _ => ("", text),
    };
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    if port.parse::<u16>().is_err() {
        return Err(format!(
            "{text:?} has no port from 0 to 65535; write PORT, ADDR:PORT, unix:PATH or tcp:ADDR:PORT"
        ));
    }
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok(format!("{prefix}{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::listen_place;

    #[test]
    fn a_port_by_itself_is_one_on_this_machine() {
        for (typed, read) in [
            ("4631", "127.0.0.1:4631"),
            (":4631", "127.0.0.1:4631"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:1", "localhost:1"),
            ("tcp:4631", "tcp:127.0.0.1:4631"),
            ("unix:/x:1", "unix:/x:1"),
        ] {
            assert_eq!(listen_place(typed).as_deref(), Ok(read));
        }
        for typed in ["", "localhost", "65536", "127.0.0.1:", "http://127.0.0.1:80/mcp", "unix:", "tcp:x"] {
            assert!(listen_place(typed).is_err(), "{typed}");
        }
    }
}
