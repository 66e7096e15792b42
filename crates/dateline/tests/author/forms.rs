//! Forms made of types, as each revision can show them.

use dateline::{Context, ElicitForm, ElicitResult, Error, Server, Tool};
use serde_json::{Value, json};

use super::{House, accept, call, converse, text, with_forms};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code)] // it is shown as a whole
struct Order {
    /// Who it is for.
    #[schemars(length(min = 1, max = 20))]
    name: String,
    #[schemars(range(min = 1, max = 9))]
    count: u8,
    gift: bool,
    size: Size,
    colours: Vec<Colour>,
    #[schemars(email)]
    mail: Option<String>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
enum Size {
    /// Fits in a pocket
    Small,
    /// Needs a bag
    Large,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Colour {
    Red,
    DarkBlue,
}

fn orders() -> Server {
    let order = |cx: Context| async move {
        Ok::<_, Error>(match cx.elicit("order", ElicitForm::<Order>::new("What will it be?")).await? {
            ElicitResult::Accepted(order) => format!("{order:?}"),
            other => format!("{other:?}"),
        })
    };
    Server::new("orders", "1").tool(Tool::new("order", "Takes an order.", order)).build().unwrap()
}

#[testkit::test]
async fn mrtr_11_a_form_of_a_type_is_shown_as_each_revision_can_and_its_answer_is_of_that_type() {
    let house = House::of(&orders()).await;
    for (wire, revision) in with_forms() {
        let what = format!("{wire:?} {revision}");
        let mut client = house.client(wire, revision, json!({"elicitation": {}})).await;
        let plain = revision == "2025-06-18";
        let colours = if plain { json!("dark-blue, red") } else { json!(["dark-blue", "red"]) };
        let filled = json!({"name": "Ada", "count": 2, "gift": true, "size": "Large", "colours": colours});
        let (questions, response) =
            converse(&mut client, "tools/call", call("order", json!({})), |_, _| accept(filled.clone()))
                .await;
        let due = r#"Order { name: "Ada", count: 2, gift: true, size: Large, colours: [DarkBlue, Red], mail: None }"#;
        assert_eq!(text(&response), due, "{what}");
        assert_eq!(questions.len(), 1, "{what}");
        let schema = &questions[0]["params"]["requestedSchema"];
        assert_eq!(schema["required"], json!(["name", "count", "gift", "size", "colours"]), "{what}");
        let fields = &schema["properties"];
        let name =
            json!({"type": "string", "description": "Who it is for.", "minLength": 1, "maxLength": 20});
        assert_eq!(fields["name"], name, "{what}");
        assert_eq!(fields["count"], json!({"type": "integer", "minimum": 1, "maximum": 9}), "{what}");
        assert_eq!(fields["gift"], json!({"type": "boolean"}), "{what}");
        assert_eq!(fields["mail"], json!({"type": "string", "format": "email"}), "{what}");
        if plain {
            let size = json!({"type": "string", "enum": ["Small", "Large"],
                "enumNames": ["Fits in a pocket", "Needs a bag"]});
            assert_eq!(fields["size"], size, "{what}");
            assert_eq!(fields["colours"]["type"], "string", "{what}");
            let told = fields["colours"]["description"].as_str().unwrap();
            assert!(told.contains("red, dark-blue"), "{what}: {told}");
        } else {
            let titled = json!([{"const": "Small", "title": "Fits in a pocket"},
                {"const": "Large", "title": "Needs a bag"}]);
            assert_eq!(fields["size"], json!({"type": "string", "oneOf": titled}), "{what}");
            let items = json!({"type": "string", "enum": ["red", "dark-blue"]});
            assert_eq!(fields["colours"], json!({"type": "array", "items": items}), "{what}");
        }
        // One field that does not fit spoils it.
        let wrong: [(&str, Value); 5] = [
            ("name", json!("")),
            ("count", json!(10)),
            ("gift", json!("yes")),
            ("size", json!("Medium")),
            ("colours", if plain { json!("red, green") } else { json!(["green"]) }),
        ];
        for (field, value) in wrong {
            let mut filled = filled.clone();
            filled[field] = value;
            let (_, response) =
                converse(&mut client, "tools/call", call("order", json!({})), |_, _| accept(filled.clone()))
                    .await;
            assert_eq!(response["error"]["code"], -32602, "{what} {field}: {response}");
        }
    }
}
