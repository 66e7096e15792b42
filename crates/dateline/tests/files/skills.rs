//! Skills of a folder.

use dateline::{CacheScope, HttpOptions, Server, Skills};
use serde_json::{Value, json};
use testkit::{Client, LATEST_LEGACY};

use super::{Scratch, clients};

fn skill(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Knows of {name}.\n{more}---\n# {name}\n")
}

fn folder() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("outer/SKILL.md", skill("outer", "license: MIT\nmetadata: {version: '1.0', n: 1}\n"));
    scratch.write("outer/refs/a b.md", "# A").write("outer/refs/deep/pixel.png", [0x89, b'P', 0]);
    scratch.write("outer/inner/SKILL.md", skill("inner", "")).write("outer/inner/x.txt", "x");
    scratch.write("outer/.hidden", "hidden").write("team/tools/other/SKILL.md", skill("other", ""));
    scratch.write("README.md", "no skill").write("team/notes.txt", "no skill").write("secret.txt", "secret");
    scratch.link("outer/out.txt", "/etc/passwd").link("outer/round", "..");
    scratch
}

fn uris(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["uri"].as_str().unwrap()).collect()
}

#[testkit::test]
async fn skills_are_told_with_every_file_and_read_as_they_were_told() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let scratch = folder();
    let server = Server::new("skills", "1").define(Skills::from_folder(&scratch.0).unwrap()).build().unwrap();
    let mut client = Client::connect(&crate::serve(server, HttpOptions::default()).await);
    let discovered = client.request("server/discover", json!({})).await;
    let settings = &discovered.result()["capabilities"]["extensions"]["io.modelcontextprotocol/skills"];
    assert_eq!(*settings, json!({"directoryRead": true}));
    let listed = client.request("skills/list", json!({})).await;
    let listed = listed.result();
    assert_eq!((&listed["ttlMs"], &listed["cacheScope"]), (&json!(0), &json!("public")));
    assert_eq!(listed["resultType"], "complete");
    let expected =
        ["skill://outer/SKILL.md", "skill://outer/inner/SKILL.md", "skill://team/tools/other/SKILL.md"];
    let mut found = uris(&listed["skills"]);
    found.sort_unstable_by_key(|uri| expected.iter().position(|e| e == uri));
    assert_eq!(found, expected);
    let outer =
        listed["skills"].as_array().unwrap().iter().find(|skill| skill["uri"] == expected[0]).unwrap();
    let frontmatter = json!({"name": "outer", "description": "Knows of outer.", "license": "MIT",
        "metadata": {"version": "1.0", "n": 1}});
    assert_eq!(outer["frontmatter"], frontmatter);
    let files = [
        "skill://outer/SKILL.md",
        "skill://outer/inner/SKILL.md",
        "skill://outer/inner/x.txt",
        "skill://outer/refs/a%20b.md",
        "skill://outer/refs/deep/pixel.png",
    ];
    assert_eq!(uris(&outer["resources"]), files);
    for skill in listed["skills"].as_array().unwrap() {
        let got = client.request("skills/get", json!({"uri": skill["uri"]})).await;
        assert_eq!(got.result()["skill"], *skill);
        assert_eq!((&got.result()["ttlMs"], &got.result()["cacheScope"]), (&json!(0), &json!("public")));
        assert!(got.result().get("nextCursor").is_none());
        for file in skill["resources"].as_array().unwrap() {
            let read = client.request("resources/read", json!({"uri": file["uri"]})).await;
            let content = &read.result()["contents"][0];
            let bytes = match content["text"].as_str() {
                Some(text) => text.as_bytes().to_vec(),
                None => base64::engine::general_purpose::STANDARD
                    .decode(content["blob"].as_str().unwrap())
                    .unwrap(),
            };
            assert_eq!(file["size"], bytes.len());
            assert_eq!(file["digest"], format!("sha256:{:x}", sha2::Sha256::digest(&bytes)));
        }
    }
}

#[testkit::test]
async fn a_skill_that_is_not_served_is_an_error_that_says_so() {
    let scratch = folder();
    for mut client in clients(&scratch.at("")).await {
        let modern = client.revision.is_none();
        for method in ["skills/get", "resources/directory/read"] {
            for params in [
                json!({"uri": "skill://nothing/SKILL.md"}),
                json!({"uri": "skill://outer/refs/a%20b.md"}),
                json!({"uri": "skill://outer/"}),
                json!({"uri": 1}),
                json!({}),
            ] {
                let reply = client.request(method, params.clone()).await;
                assert_eq!(
                    reply.code(),
                    if modern { -32602 } else { -32601 },
                    "{method} {params}: {}",
                    reply.text
                );
            }
        }
        for path in [
            "outer/.hidden",
            "outer/out.txt",
            "outer/round/secret.txt",
            "secret.txt",
            "README.md",
            "team/notes.txt",
            "outer/../secret.txt",
            "outer/%2e%2e/secret.txt",
            "outer",
            "outer/inner%2Fx.txt",
        ] {
            let reply = client.request("resources/read", json!({"uri": format!("skill://{path}")})).await;
            assert_eq!(reply.code(), if modern { -32602 } else { -32002 }, "{path}: {}", reply.text);
        }
        // Every client can read them as resources.
        let reply = client.request("resources/read", json!({"uri": "skill://outer/inner/x.txt"})).await;
        assert_eq!(reply.result()["contents"][0]["text"], "x");
        let listed = client.request("resources/list", json!({})).await;
        let manifests: Vec<&Value> = listed.result()["resources"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|resource| resource["uri"].as_str().unwrap().starts_with("skill://"))
            .collect();
        assert_eq!(manifests.len(), 3);
        assert!(manifests.iter().all(|resource| resource["mimeType"] == "text/markdown"));
        let inner = manifests.iter().find(|r| r["uri"] == "skill://outer/inner/SKILL.md").unwrap();
        assert_eq!((&inner["name"], &inner["description"]), (&json!("inner"), &json!("Knows of inner.")));
    }
}

#[testkit::test]
async fn folders_of_skills_can_be_walked() {
    let scratch = folder();
    let server = Server::new("skills", "1").define(Skills::from_folder(&scratch.0).unwrap()).build().unwrap();
    let mut client = Client::connect(&crate::serve(server, HttpOptions::default()).await);
    let (mut folders, mut files) = (vec!["skill://outer".to_owned(), "skill://team".to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        let reply = client.request("resources/directory/read", json!({"uri": folder})).await;
        for child in reply.result()["resources"].as_array().unwrap() {
            let uri = child["uri"].as_str().unwrap().to_owned();
            assert_eq!(uri.rsplit_once('/').unwrap().0, folder, "a direct child");
            assert!(child["name"].is_string());
            if child["mimeType"] == "inode/directory" { folders.push(uri) } else { files.push(uri) }
        }
    }
    files.sort_unstable();
    let expected = [
        "skill://outer/SKILL.md",
        "skill://outer/inner/SKILL.md",
        "skill://outer/inner/x.txt",
        "skill://outer/refs/a%20b.md",
        "skill://outer/refs/deep/pixel.png",
        "skill://team/tools/other/SKILL.md",
    ];
    assert_eq!(files, expected);
}

#[testkit::test]
async fn lists_of_skills_come_in_pages_whose_cursors_are_good_for_them_alone() {
    let scratch = folder();
    let skills = Skills::from_folder(&scratch.0)
        .unwrap()
        .cache(CacheScope::Private, std::time::Duration::from_secs(5));
    let server = Server::new("skills", "1").page_size(2).define(skills).build().unwrap();
    let url = crate::serve(server, HttpOptions::default()).await;
    let mut client = Client::connect(&url);
    let first = client.request("skills/list", json!({})).await;
    let cursor = first.result()["nextCursor"].clone();
    assert_eq!(first.result()["skills"].as_array().unwrap().len(), 2);
    assert_eq!((&first.result()["ttlMs"], &first.result()["cacheScope"]), (&json!(5000), &json!("private")));
    let second = client.request("skills/list", json!({"cursor": cursor})).await;
    assert_eq!(second.result()["skills"].as_array().unwrap().len(), 1);
    assert!(second.result().get("nextCursor").is_none());
    let outer = client.request("resources/directory/read", json!({"uri": "skill://outer"})).await;
    let in_outer = outer.result()["nextCursor"].clone();
    let rest =
        client.request("resources/directory/read", json!({"uri": "skill://outer", "cursor": in_outer})).await;
    assert_eq!(rest.result()["resources"].as_array().unwrap().len(), 1);
    for (method, params) in [
        ("skills/list", json!({"cursor": in_outer})),
        ("skills/list", json!({"cursor": "made-up"})),
        ("skills/list", json!({"cursor": 1})),
        ("resources/directory/read", json!({"uri": "skill://outer", "cursor": cursor})),
        ("resources/directory/read", json!({"uri": "skill://outer/inner", "cursor": in_outer})),
    ] {
        let reply = client.request(method, params.clone()).await;
        assert_eq!(reply.code(), -32602, "{method} {params}");
    }
    let mut legacy = Client::connect(&url);
    legacy.handshake(LATEST_LEGACY, json!({})).await;
    assert_eq!(legacy.request("skills/list", json!({})).await.code(), -32601);
}

#[test]
fn a_folder_with_a_skill_that_is_wrong_is_refused_by_name() {
    let error = |scratch: &Scratch| Skills::from_folder(&scratch.0).err().unwrap().to_string();
    let scratch = Scratch::new();
    scratch.write("a/b/SKILL.md", skill("c", ""));
    assert!(error(&scratch).contains("a/b/SKILL.md"));
    let scratch = Scratch::new();
    scratch.write("SKILL.md", skill("c", ""));
    assert!(error(&scratch).contains("in a folder"));
    let scratch = Scratch::new();
    scratch.write("c/SKILL.md", skill("c", ""));
    for n in 0..512 {
        scratch.write(&format!("c/{n}"), "");
    }
    assert!(error(&scratch).contains("512 files"));
    let absent = Skills::from_folder("/nonexistent/skills").err().unwrap();
    assert!(absent.to_string().contains("/nonexistent/skills"));
}
