//! A folder of files as resources.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dateline::{Directory, HttpOptions, Server};
use serde_json::{Value, json};
use testkit::{Client, Reply};

use super::{Scratch, clients};

async fn read(client: &mut Client, uri: &str) -> Reply {
    client.request("resources/read", json!({"uri": uri})).await
}

/// The one content of what was read.
fn content(reply: &Reply) -> &Value {
    let contents = reply.result()["contents"].as_array().unwrap();
    assert_eq!(contents.len(), 1, "{contents:?}");
    &contents[0]
}

/// A folder beside a secret, with every kind of way that could lead there.
fn tempting() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("secret.txt", "secret").write("root/a.txt", "inside").write("root/sub/b.txt", "below");
    scratch
        .write("root/.env", "hidden")
        .write("root/.git/config", "hidden")
        .write("rootlike/c.txt", "secret");
    scratch.link("root/out.txt", scratch.at("secret.txt")).link("root/up.txt", "../secret.txt");
    scratch
        .link("root/folder", scratch.at(""))
        .link("root/above", "..")
        .link("root/chain.txt", "folder/secret.txt");
    scratch.link("root/loop", "loop").link("root/dangling", "nothing").link("root/env.txt", ".env");
    scratch.link("root/good.txt", "sub/b.txt").link("root/goodsub", "sub");
    scratch
}

#[testkit::test]
async fn res_04_a_path_that_leads_out_of_the_folder_is_not_there() {
    let scratch = tempting();
    let outside = scratch.at("secret.txt");
    let mut wrong = vec![
        format!("file:///project/{outside}"),
        format!("file:///project/sub/..{outside}"),
        format!("file:///project/{}", outside.replace('/', "%2F")),
        format!("file:///project/{}", outside.trim_start_matches('/')),
    ];
    for path in [
        "../secret.txt",
        "../rootlike/c.txt",
        "sub/../../secret.txt",
        "./a.txt",
        "sub/../a.txt",
        "sub/./b.txt",
        "%2e%2e/secret.txt",
        "%2E%2E/secret.txt",
        ".%2e/secret.txt",
        "..%2fsecret.txt",
        "%2e%2e%2fsecret.txt",
        "%252e%252e/secret.txt",
        "%252e%252e%252fsecret.txt",
        "..%c0%afsecret.txt",
        "%c0%ae%c0%ae/secret.txt",
        "..%5csecret.txt",
        "..\\secret.txt",
        "sub\\b.txt",
        "sub%5Cb.txt",
        "%2fetc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "sub//b.txt",
        "sub%2Fb.txt",
        "a.txt/",
        "/",
        "a.txt/..",
        "a.txt/../../secret.txt",
        "a.txt%00",
        "..%00/secret.txt",
        "a.txt%00.png",
        "C:/secret.txt",
        "file:///etc/passwd",
        "out.txt",
        "up.txt",
        "folder/secret.txt",
        "folder/",
        "above/secret.txt",
        "above/",
        "above/root/a.txt",
        "chain.txt",
        "loop",
        "dangling",
        ".env",
        ".git/config",
        "%2eenv",
        "env.txt",
        "nothing.txt",
        "..",
        "../",
        ".",
        "%2e%2e",
        "a.txt?x",
    ] {
        wrong.push(format!("file:///project/{path}"));
    }
    wrong.extend(
        ["file:///project/../secret.txt", "file:///projectlike/a.txt", "file:///etc/passwd"]
            .map(str::to_owned),
    );
    for mut client in clients(&scratch.at("root")).await {
        let code = if client.revision.is_some() { -32002 } else { -32602 };
        for uri in &wrong {
            let reply = read(&mut client, uri).await;
            assert_eq!(reply.code(), code, "{uri}: {}", reply.text);
            assert!(
                !reply.text.contains("secret\"") && !reply.text.contains("hidden"),
                "{uri}: {}",
                reply.text
            );
            assert_eq!(reply.error()["data"]["uri"], **uri);
        }
        let reply = read(&mut client, "file:///project/sub/b.txt").await;
        assert_eq!(content(&reply)["text"], "below");
        let reply = read(&mut client, "file:///project/good.txt").await;
        assert_eq!(content(&reply)["text"], "below", "a link that stays within is followed");
        let reply = read(&mut client, "file:///project/goodsub/b.txt").await;
        assert_eq!(content(&reply)["text"], "below");
    }
}

#[testkit::test]
async fn res_04_a_folder_lists_what_can_be_read_and_nothing_else() {
    let scratch = tempting();
    scratch.write("root/sub/what is #1?.txt", "strange");
    for mut client in clients(&scratch.at("root")).await {
        let reply = read(&mut client, "file:///project/").await;
        let listed = content(&reply)["text"].as_str().unwrap();
        assert_eq!(content(&reply)["mimeType"], "text/uri-list");
        let expected =
            ["a.txt", "good.txt", "goodsub/", "sub/"].map(|name| format!("file:///project/{name}"));
        assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
        let reply = read(&mut client, "file:///project/sub/").await;
        let strange = "file:///project/sub/what%20is%20%231%3F.txt";
        assert_eq!(content(&reply)["text"], format!("file:///project/sub/b.txt\r\n{strange}\r\n"));
        assert_eq!(content(&read(&mut client, strange).await)["text"], "strange");
        let all = client.request("resources/list", json!({})).await;
        assert_eq!(all.result()["resources"].as_array().unwrap().len(), 1);
        assert_eq!(all.result()["resources"][0]["uri"], "file:///project/");
    }
}

/// Serves a directory over HTTP; gives a modern client.
async fn served(directory: Directory) -> Client {
    let server = Server::new("files", "1").define(directory).build().unwrap();
    Client::connect(&crate::serve(server, HttpOptions::default()).await)
}

#[testkit::test]
async fn res_04_a_link_that_changes_while_it_is_followed_leads_nowhere_else() {
    let scratch = Scratch::new();
    scratch
        .write("secret/file.txt", "secret")
        .write("root/real/file.txt", "inside")
        .link("root/turn", "real");
    let mut client = served(Directory::new(scratch.at("root"), "file:///x").unwrap()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let turning = std::thread::spawn({
        let (stop, root, secret) = (Arc::clone(&stop), scratch.at("root"), scratch.at("secret"));
        move || {
            let mut turns = 0;
            while !stop.load(Ordering::Relaxed) {
                for target in ["real", &secret] {
                    let _ = std::fs::remove_file(format!("{root}/new"));
                    std::os::unix::fs::symlink(target, format!("{root}/new")).unwrap();
                    std::fs::rename(format!("{root}/new"), format!("{root}/turn")).unwrap();
                    turns += 1;
                }
            }
            turns
        }
    });
    let (mut inside, mut nothing) = (0, 0);
    for _ in 0..2000 {
        let reply = read(&mut client, "file:///x/turn/file.txt").await;
        assert!(!reply.text.contains("secret"), "{}", reply.text);
        if reply.message.get("result").is_some() {
            inside += 1
        } else {
            nothing += 1
        }
        if inside > 50 && nothing > 50 {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let turns = turning.join().unwrap();
    assert!(turns > 1 && inside > 0 && nothing > 0, "{turns} turns, {inside} inside, {nothing} nothing");
}

#[testkit::test]
async fn files_are_text_or_bytes_of_the_type_that_their_name_says() {
    let scratch = Scratch::new();
    scratch.write("a.md", "# A").write("b.png", b"\x89PNG\r\n\x1a\n\0").write("c.ts", "let a = 1;");
    scratch.write("d", "plain").write("e.bin", [0xff, 0]).write("f.json", "{}").write("g.svg", "<svg/>");
    scratch
        .write("h.txt", "")
        .write("i.txt", "a\0b")
        .write("large.txt", vec![b'x'; 101])
        .write("fits.txt", vec![b'x'; 100]);
    std::fs::create_dir(scratch.0.join("empty")).unwrap();
    let directory = Directory::new(&scratch.0, "file:///x/").unwrap().max_bytes(100).max_entries(2);
    let mut client = served(directory).await;
    for (name, mime, member) in [
        ("a.md", "text/markdown", "text"),
        ("b.png", "image/png", "blob"),
        ("c.ts", "text/plain", "text"),
        ("d", "text/plain", "text"),
        ("e.bin", "application/octet-stream", "blob"),
        ("f.json", "application/json", "text"),
        ("g.svg", "image/svg+xml", "text"),
        ("h.txt", "text/plain", "text"),
        ("i.txt", "text/plain", "blob"),
        ("fits.txt", "text/plain", "text"),
        ("empty/", "text/uri-list", "text"),
    ] {
        let reply = read(&mut client, &format!("file:///x/{name}")).await;
        assert_eq!(content(&reply)["mimeType"], mime, "{name}");
        assert!(content(&reply)[member].is_string(), "{name}: {}", reply.text);
        assert_eq!(content(&reply)["uri"], format!("file:///x/{name}"));
    }
    let reply = read(&mut client, "file:///x/large.txt").await;
    assert_eq!(reply.code(), -32603);
    assert!(reply.error()["message"].as_str().unwrap().contains("100 bytes"), "{}", reply.text);
    let reply = read(&mut client, "file:///x/").await;
    let listed = content(&reply)["text"].as_str().unwrap();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.lines().last().unwrap().starts_with("# There is more"), "{listed}");
}

#[testkit::test]
async fn a_pipe_in_the_folder_is_not_waited_for() {
    let scratch = Scratch::new();
    scratch.write("a.txt", "a");
    let made = std::process::Command::new("mkfifo").arg(scratch.at("pipe")).status().unwrap();
    assert!(made.success());
    let mut client = served(Directory::new(&scratch.0, "file:///x").unwrap()).await;
    assert_eq!(read(&mut client, "file:///x/pipe").await.code(), -32602);
}

#[testkit::test]
async fn paths_are_completed_a_folder_at_a_time() {
    let scratch = tempting();
    scratch.write("root/sub/bee.txt", "").write("root/sub/other.txt", "");
    let mut client = served(Directory::new(scratch.at("root"), "file:///x").unwrap()).await;
    for (typed, expected) in [
        ("", json!(["a.txt", "good.txt", "goodsub/", "sub/"])),
        ("s", json!(["sub/"])),
        ("sub/b", json!(["sub/b.txt", "sub/bee.txt"])),
        ("sub/", json!(["sub/b.txt", "sub/bee.txt", "sub/other.txt"])),
        ("../", json!([])),
        ("folder/", json!([])),
        ("/", json!([])),
        (".", json!([])),
        (".git/", json!([])),
        ("nothing/", json!([])),
    ] {
        let reference = json!({"type": "ref/resource", "uri": "file:///x/{+path}"});
        let params = json!({"ref": reference, "argument": {"name": "path", "value": typed}});
        let reply = client.request("completion/complete", params).await;
        assert_eq!(reply.result()["completion"]["values"], expected, "{typed}");
    }
}

#[testkit::test]
async fn hidden_files_are_served_where_that_is_asked_for() {
    let scratch = tempting();
    let directory = Directory::new(scratch.at("root"), "file:///x").unwrap().hidden();
    let mut client = served(directory).await;
    for (name, text) in [(".env", "hidden"), ("env.txt", "hidden"), (".git/config", "hidden")] {
        assert_eq!(content(&read(&mut client, &format!("file:///x/{name}")).await)["text"], text);
    }
    assert_eq!(read(&mut client, "file:///x/../secret.txt").await.code(), -32602);
}

#[test]
fn what_is_no_folder_or_no_uri_is_said_at_once() {
    let error = |root: &str, uri: &str| Directory::new(root, uri).err().unwrap().to_string();
    assert!(error("/nonexistent/folder", "file:///x").contains("/nonexistent/folder"));
    assert!(error("/", "file:///{x}").contains("{x}"));
}
