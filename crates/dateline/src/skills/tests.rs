use super::*;

const GREET: &str = "---\nname: greet\ndescription: How to greet.\n---\nSay hello.\n";

fn read(text: &str) -> Result<Value, String> {
    frontmatter::read(text.as_bytes()).map(Value::Object)
}

#[test]
fn frontmatter_is_yaml_of_the_core_schema() {
    let text = "---\nname: a\ntext: \"1.0\"\nfloat: 1.5\nint: 0x10\nno: no\nyes: true\nnil: ~\nempty:\ndate: 2026-01-01\n\
                list: [a, 'b']\nfolded: >-\n  one\n  two\nlines: |\n  ---x\nnested:\n  - {deep: \"é\"}\n---  \nbody\n---\n";
    let expected = json!({
        "name": "a", "text": "1.0", "float": 1.5, "int": 16, "no": "no", "yes": true, "nil": null, "empty": null,
        "date": "2026-01-01", "list": ["a", "b"], "folded": "one two", "lines": "---x\n", "nested": [{"deep": "é"}],
    });
    assert_eq!(read(text).unwrap(), expected);
    assert_eq!(read(&text.replace('\n', "\r\n")).unwrap(), expected, "lines may end in both ways");
    assert_eq!(read("\u{feff}---\nname: a\n---").unwrap(), json!({"name": "a"}));
    let bomb: String =
        (1..20).map(|n| format!("a{n}: &a{n} [{}]\n", format!("*a{},", n - 1).repeat(9))).collect();
    for (wrong, why) in [
        ("name: a\n", "begin with"),
        ("\n---\nname: a\n---\n", "begin with"),
        ("---\nname: a\n", "begin with"),
        ("---name: a\n---\n", "begin with"),
        ("---\n---\n", "name and a description"),
        ("---\n- a\n---\n", "name and a description"),
        ("---\na: [\n---\n", "frontmatter: "),
        ("---\na: 1\na: 2\n---\n", "frontmatter: "),
        ("---\n1: 2\n---\n", "no text"),
        ("---\na: .nan\n---\n", "no such number"),
        (&format!("---\na0: &a0 [x]\n{bomb}---\n"), "frontmatter: "),
    ] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains(why), "{wrong}: {error}");
    }
    assert!(frontmatter::read(b"---\nname: \xff\n---\n").unwrap_err().contains("UTF-8"));
}

fn wrong(path: &str, content: &str) -> String {
    Skills::from_files([(path, content)]).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_skill_has_the_name_of_its_folder() {
    assert!(Skills::from_files([("x/y/greet/SKILL.md", GREET)]).is_ok());
    for (path, from, to, why) in [
        ("hello/SKILL.md", "", "", "that of its folder, hello"),
        ("greet/SKILL.md", "name: greet\n", "", "a name"),
        ("greet/SKILL.md", "name: greet", "name: 7", "a name"),
        ("greet/SKILL.md", "description: How to greet.", "description: ''", "a description"),
        ("Greet/SKILL.md", "greet", "Greet", "a-z"),
        ("-greet/SKILL.md", "name: greet", "name: -greet", "a-z"),
        ("gr--eet/SKILL.md", "name: greet", "name: gr--eet", "a-z"),
        ("greet/SKILL.md", "How", &"x".repeat(1025), "1024"),
        (
            "greet/SKILL.md",
            "---\nSay",
            &format!("metadata: {{{}x: 1}}\n---\nSay", spec::skills::RESERVED_METADATA),
            "reserved",
        ),
        ("../greet/SKILL.md", "", "", "no path"),
        ("greet//SKILL.md", "", "", "no path"),
    ] {
        let error = wrong(path, &GREET.replacen(from, to, 1));
        assert!(error.contains(why) && error.contains(path), "{path} {from}: {error}");
    }
    let name = "x".repeat(64);
    let content = |name: &str| GREET.replace("greet\n", &format!("{name}\n"));
    assert!(Skills::from_files([(format!("{name}/SKILL.md"), content(&name))]).is_ok());
    let name = "x".repeat(65);
    assert!(wrong(&format!("{name}/SKILL.md"), &content(&name)).contains("64"));
    let twice = Skills::from_files([("greet/SKILL.md", GREET), ("greet/SKILL.md", GREET)]);
    assert!(twice.err().unwrap().to_string().contains("two files"));
}

#[test]
fn a_skill_has_the_files_and_bytes_that_every_client_takes() {
    let with = |files: Vec<(String, Vec<u8>)>| {
        let skill = ("greet/SKILL.md".to_owned(), GREET.as_bytes().to_vec());
        Skills::from_files(files.into_iter().chain([skill])).map(|_| ())
    };
    let many = |n: usize| (0..n).map(|n| (format!("greet/a/{n}"), Vec::new())).collect();
    assert_eq!(with(many(511)), Ok(()));
    assert!(with(many(512)).unwrap_err().to_string().contains("512 files"));
    let large = |n: usize| vec![("greet/a".to_owned(), vec![b'x'; n])];
    let most = usize::try_from(MOST_BYTES).unwrap() - GREET.len();
    assert_eq!(with(large(most)), Ok(()));
    assert!(with(large(most + 1)).unwrap_err().to_string().contains("16 MiB"));
    let beside = |n: usize| (0..n).map(|n| (format!("greeting/{n}"), Vec::new())).collect();
    assert_eq!(with(beside(600)), Ok(()), "what is beside a skill is no part of it");
}
