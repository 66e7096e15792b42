//! How messages are written, framed and carried.

use serde_json::json;

use super::{ERAS, Odd, behind_one, legacy_beside, stdio};

#[tokio::test]
async fn what_can_be_read_without_guessing_is_read() {
    let odd = Odd::start().await;
    let mut servers = vec![("healthy".to_owned(), stdio("plain", "legacy"))];
    let mut names = vec!["healthy".to_owned()];
    for name in ["plain"] {
        for era in ERAS {
            for (how, entry) in [("stdio", stdio(name, era)), ("http", odd.http(name, era))] {
                names.push(format!("{name}-{era}-{how}"));
                servers.push((format!("{name}-{era}-{how}"), entry));
            }
        }
        names.push(format!("{name}-sse"));
        servers.push((format!("{name}-sse"), odd.sse(name)));
    }
    let mut modern = behind_one(&servers, json!({})).await;
    let mut legacy = legacy_beside(&modern).await;
    for name in &names {
        for client in [&mut modern, &mut legacy] {
            let reply = client.call(&format!("{name}_echo"), json!({"a": "b"})).await;
            assert_eq!(reply.said(), r#"{"a": "b"}"#, "{name}");
        }
    }
}
