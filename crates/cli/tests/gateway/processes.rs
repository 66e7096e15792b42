//! Processes: none is left behind.

use serde_json::json;
use testkit::{Client, MODERN, PATIENCE, Wire};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::{demo, hold, listed, scripted, signal, through};

/// Whether a process is there: not ended, or not yet waited for.
fn exists(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).exists()
}

/// Takes in processes that stay connected while they live; gives for each its name, its id and the connection.
async fn leashed(listener: &TcpListener, count: usize) -> Vec<(String, String, tokio::net::TcpStream)> {
    let mut all = Vec::new();
    for _ in 0..count {
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
        let (mut stream, _) = accepted.expect("the processes start in time").unwrap();
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            line.push(stream.read_u8().await.unwrap());
        }
        let line = String::from_utf8(line).unwrap();
        let (name, pid) = line.trim().split_once(' ').unwrap();
        all.push((name.to_owned(), pid.to_owned(), stream));
    }
    all
}

/// Starts a gateway over servers of all sorts, ends it, and asserts that nothing is left of them.
async fn nothing_is_left(wire: Wire, end: impl AsyncFnOnce(&mut Client, u64)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let leash = ["--leash", &port];
    let servers = [
        ("tame", scripted(&[&["--name", "tame"][..], &leash].concat())),
        ("stubborn", scripted(&[&["--name", "stubborn", "--stubborn"][..], &leash].concat())),
        (
            "parent",
            scripted(&[&["--name", "parent", "--era", "modern", "--grandchild"][..], &leash].concat()),
        ),
        ("demo", demo("modern")),
    ];
    let mut client = through(wire, &servers, MODERN, json!({})).await;
    let mut processes = leashed(&listener, 4).await;
    assert!(listed(&mut client, "tools", "name").await.contains(&"parent_hold".to_owned()));
    let exchange = hold(&mut client, "parent", "held").await;
    end(&mut client, exchange).await;
    assert_eq!(client.exit().await, Some(0), "{wire:?}");
    for (name, pid, stream) in &mut processes {
        // What was started by a server is nobody's child, and may take a moment longer.
        let gone = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 1])).await;
        assert!(matches!(gone, Ok(Ok(0) | Err(_))), "{wire:?}: {name} is left");
        assert!(name == "grandchild" || !exists(pid), "{wire:?}: {name} was not waited for");
    }
}

async fn terminate(client: &mut Client) {
    let pid = client.program.as_ref().unwrap().child.id().unwrap();
    signal("TERM", &pid.to_string()).await;
}

#[testkit::test]
async fn prox_12_no_process_is_left_after_a_termination_over_http() {
    nothing_is_left(Wire::Http, async |client, exchange| {
        // A call that is under way would be waited for.
        client.disconnect(exchange);
        terminate(client).await;
    })
    .await;
}

#[testkit::test]
async fn prox_12_no_process_is_left_after_a_termination_over_a_pipe() {
    nothing_is_left(Wire::Stdio, async |client, _| {
        client.notify("notifications/cancelled", json!({"requestId": "held"})).await;
        terminate(client).await;
    })
    .await;
}

#[testkit::test]
async fn no_process_is_left_after_the_end_of_the_input() {
    nothing_is_left(Wire::Stdio, async |client, _| client.close_input()).await;
}

/// The children of a process whose command line has a word.
fn children(of: &str, word: &str) -> Vec<String> {
    let tasks = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    let all = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).ok();
    let listed = all.filter_map(of_task).chain([tasks]).collect::<Vec<_>>().join(" ");
    let mut found: Vec<String> = listed.split_whitespace().map(str::to_owned).collect();
    found.sort();
    found.dedup();
    let named = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(|arg| arg == word)
    };
    found.into_iter().filter(named).collect()
}

#[testkit::test]
async fn a_guard_that_ends_is_replaced_and_nothing_is_left_when_dateline_is_killed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let stubborn = scripted(&["--name", "stubborn", "--stubborn", "--leash", &port]);
    let mut client = through(Wire::Http, &[("stubborn", stubborn)], MODERN, json!({})).await;
    let mut processes = leashed(&listener, 1).await;
    let ours = client.program.as_ref().unwrap().child.id().unwrap().to_string();
    for _ in 0..2 {
        let before = children(&ours, "guard");
        assert_eq!(before.len(), 1, "one guard watches");
        signal("KILL", &before[0]).await;
        let replaced = async {
            loop {
                let now = children(&ours, "guard");
                if now.len() == 1 && now != before {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, replaced).await.expect("another guard takes its place");
    }
    signal("KILL", &ours).await;
    client.exit().await;
    let (name, _, stream) = &mut processes[0];
    let gone = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 1])).await;
    assert!(matches!(gone, Ok(Ok(0) | Err(_))), "{name} is left");
}
