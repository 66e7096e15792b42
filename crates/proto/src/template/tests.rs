use super::*;

fn values(template: &str, uri: &str) -> Option<Vec<String>> {
    let values = Template::new(template).unwrap().matches(uri)?;
    Some(values.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
}

/// The steps that it takes to say what a URI means.
fn steps(template: &Template, uri: &str) -> usize {
    let units: Vec<Unit> = unit::units(uri).map(Result::unwrap).collect();
    Reach::new(&template.graph, &units).steps
}

#[test]
fn a_template_gives_the_values_that_make_the_uri() {
    assert_eq!(values("test://t/{id}/data", "test://t/123/data").unwrap(), ["id=123"]);
    assert_eq!(values("test://t/{id}/data", "test://t/1%2F2/data").unwrap(), ["id=1/2"]);
    assert_eq!(values("f:///{+path}", "f:///a/b.txt").unwrap(), ["path=a/b.txt"]);
    assert_eq!(values("x:{a}-{b}", "x:1-2-3").unwrap(), ["a=1", "b=2-3"]);
    for (template, uri) in [
        ("test://t/{id}/data", "test://t//data"),
        ("test://t/{id}/data", "test://t/1/2/data"),
        ("x:{a}", "y:1"),
        ("x:{a}", "x:%"),
        ("x:{a}", "x:%ff"),
        ("x:{a}", "x:"),
        ("x:{+a}", "x:"),
        ("x:1", "x:12"),
    ] {
        assert_eq!(values(template, uri), None, "{template} {uri}");
    }
    assert_eq!(values("x:{a}é", "x:éé"), Some(vec!["a=é".into()]));
    assert_eq!(values("x:%41é", "x:A%C3%A9"), Some(Vec::new()), "the same literal, written otherwise");
    assert_eq!(values("x:/", "x:%2F"), None, "a slash that is encoded is another character");
}

/// The examples of RFC 6570, sections 1.2 and 3.2, with the values that the section gives the variables, and some more
/// of their kind.
const EXAMPLES: &[(&str, &str, &[&str])] = &[
    // Levels 1 and 2, and simple expansion.
    ("{var}", "value", &["var=value"]),
    ("{hello}", "Hello%20World%21", &["hello=Hello World!"]),
    ("{half}", "50%25", &["half=50%"]),
    ("{x,y}", "1024,768", &["x=1024", "y=768"]),
    ("{x,hello,y}", "1024,Hello%20World%21,768", &["x=1024", "hello=Hello World!", "y=768"]),
    ("?{x,empty}", "?1024,", &["x=1024", "empty="]),
    ("?{x,undef}", "?1024", &["x=1024"]),
    ("{var:3}", "val", &["var=val"]),
    ("{var:30}", "value", &["var=value"]),
    ("{x,list}", "1024,red,green,blue", &["x=1024", "list=red,green,blue"]),
    ("{list}", "red,green,blue", &["list=red,green,blue"]),
    ("{list*}", "red,green,blue", &["list=red,green,blue"]),
    ("{keys*}", "semi=%3B,dot=.,comma=%2C", &["keys=semi=;,dot=.,comma=,"]),
    // Reserved expansion.
    ("{+var}", "value", &["var=value"]),
    ("{+hello}", "Hello%20World!", &["hello=Hello World!"]),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex", &["base=http://example.com/home/"]),
    ("{+base}index", "http://example.com/home/index", &["base=http://example.com/home/"]),
    ("{+path}/here", "/foo/bar/here", &["path=/foo/bar"]),
    ("here?ref={+path}", "here?ref=/foo/bar", &["path=/foo/bar"]),
    ("up{+path}{var}/here", "up/foo/barvalue/here", &["path=/foo/", "var=barvalue"]),
    ("{+x,hello,y}", "1024,Hello%20World!,768", &["x=1024", "hello=Hello World!", "y=768"]),
    ("{+path,x}/here", "/foo/bar,1024/here", &["path=/foo/bar", "x=1024"]),
    ("{+path:6}/here", "/foo/b/here", &["path=/foo/b"]),
    ("{+list*}", "red,green,blue", &["list=red,green,blue"]),
    // Fragments.
    ("{#var}", "#value", &["var=value"]),
    ("{#hello}", "#Hello%20World!", &["hello=Hello World!"]),
    ("{#path,x}/here", "#/foo/bar,1024/here", &["path=/foo/bar", "x=1024"]),
    ("{#path:6}/here", "#/foo/b/here", &["path=/foo/b"]),
    ("foo{#empty}", "foo#", &["empty="]),
    ("foo{#undef}", "foo", &[]),
    // Labels.
    ("{.who}", ".fred", &["who=fred"]),
    ("{.who,who}", ".fred.fred", &["who=fred"]),
    ("{.half,who}", ".50%25.fred", &["half=50%", "who=fred"]),
    ("{.x,who}", ".1024.fred.too", &["x=1024", "who=fred.too"]),
    ("www{.dom*}", "www.example.com", &["dom=example.com"]),
    ("X{.var:3}", "X.val", &["var=val"]),
    ("X{.empty}", "X.", &["empty="]),
    ("X{.undef}", "X", &[]),
    // Path segments.
    ("{/who}", "/fred", &["who=fred"]),
    ("{/who,who}", "/fred/fred", &["who=fred"]),
    ("{/half,who}", "/50%25/fred", &["half=50%", "who=fred"]),
    ("{/var,empty}", "/value/", &["var=value", "empty="]),
    ("{/var,x}/here", "/value/1024/here", &["var=value", "x=1024"]),
    ("{/var:1,var}", "/v/value", &["var=value"]),
    ("{/list*}", "/red/green/blue", &["list=red/green/blue"]),
    ("{/list*,path:4}", "/red/green/blue/%2Ffoo", &["list=red/green/blue", "path=/foo"]),
    // Path-style parameters.
    ("{;who}", ";who=fred", &["who=fred"]),
    ("{;empty}", ";empty", &["empty="]),
    ("{;v,empty,who}", ";v=6;empty;who=fred", &["v=6", "empty=", "who=fred"]),
    ("{;v,bar,who}", ";v=6;who=fred", &["v=6", "who=fred"]),
    ("{;hello:5}", ";hello=Hello", &["hello=Hello"]),
    ("{;list*}", ";list=red;list=green;list=blue", &["list=red,green,blue"]),
    ("{;keys*}", ";semi=%3B;dot=.;comma=%2C", &["keys=semi=;,dot=.,comma=,"]),
    // Queries, and queries that go on.
    ("{?who}", "?who=fred", &["who=fred"]),
    ("{?x,y,empty}", "?x=1024&y=768&empty=", &["x=1024", "y=768", "empty="]),
    ("{?x,y,undef}", "?x=1024&y=768", &["x=1024", "y=768"]),
    ("{?var:3}", "?var=val", &["var=val"]),
    ("{?list}", "?list=red,green,blue", &["list=red,green,blue"]),
    ("{?list*}", "?list=red&list=green&list=blue", &["list=red,green,blue"]),
    ("{?keys*}", "?semi=%3B&dot=.&comma=%2C", &["keys=semi=;,dot=.,comma=,"]),
    ("{&half}", "&half=50%25", &["half=50%"]),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024", &["x=1024"]),
    ("{&x,y,empty}", "&x=1024&y=768&empty=", &["x=1024", "y=768", "empty="]),
    ("{&list*}", "&list=red&list=green&list=blue", &["list=red,green,blue"]),
];

#[test]
fn the_examples_of_rfc_6570_are_read_back() {
    for (template, uri, expected) in EXAMPLES {
        let expected: Vec<String> = expected.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(values(template, uri).as_ref(), Some(&expected), "{template} {uri}");
    }
}

#[test]
fn a_query_comes_in_any_order_and_may_be_absent() {
    let read = |uri: &str| values("x:a{?page,tag*}{&sort}", uri).map(|values| values.join(" "));
    assert_eq!(read("x:a").as_deref(), Some(""));
    assert_eq!(read("x:a?sort=up&page=2").as_deref(), Some("page=2 sort=up"));
    assert_eq!(read("x:a&sort=up").as_deref(), Some("sort=up"), "the first expression has none");
    assert_eq!(read("x:a?tag=1&page=2&tag=3%262").as_deref(), Some("page=2 tag=1,3&2"));
    assert_eq!(read("x:a?other=1&sort=up").as_deref(), Some("tag=other=1 sort=up"));
    assert_eq!(read("x:a?page").as_deref(), Some("page="));
    for wrong in ["x:a?", "x:a?page=1&page=2", "x:a?page=1&", "x:a?&page=1", "x:a?page=1#2", "x:a?=1"] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
    let read = |uri: &str| values("x:a{?a,ab}", uri).map(|values| values.join(" "));
    assert_eq!(read("x:a?ab=1&a=2").as_deref(), Some("a=2 ab=1"));
    assert_eq!(read("x:a?abc=1"), None, "a parameter that no variable names");
    assert_eq!(read("x:a?A=1"), None);
    assert_eq!(values("f:///{+path}{?line}", "f:///a/b?line=3").unwrap(), ["path=a/b", "line=3"]);
}

#[test]
fn a_prefix_bounds_the_value_in_characters() {
    assert_eq!(values("x:{a:3}", "x:%C3%A9%C3%A9é").unwrap(), ["a=ééé"]);
    assert_eq!(values("x:{a:3}", "x:abcd"), None);
    assert_eq!(values("x:{a}-{b:1}", "x:1-2-3").unwrap(), ["a=1-2", "b=3"], "the first takes what has to be");
    assert_eq!(values("x:{a:1}/{a}", "x:v/value").unwrap(), ["a=value"]);
    assert_eq!(values("x:{a}/{a:3}", "x:va/val"), None, "the two do not agree");
    assert_eq!(values("x:{a:2}/{a:4}", "x:va/valu").unwrap(), ["a=valu"]);
    assert_eq!(values("x:{a:2}/{a}", "x:w/value"), None);
    assert_eq!(values("x:{a}/{a}", "x:1/2"), None);
}

#[test]
fn lists_are_known_value_by_value() {
    let found = Template::new("x:{/path*}{?q*}").unwrap().find("x:/a/b%2Fc/?q=1&q=2,3").unwrap();
    assert_eq!(found[0].values, ["a", "b/c", ""]);
    assert_eq!(found[1].values, ["1", "2,3"]);
    let template = Template::new("x:{a}{a:1}{/b*}").unwrap();
    assert_eq!(template.variables().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_is_wrong_with_a_template_is_said() {
    for (wrong, why) in [
        ("x:{", "not closed"),
        ("x:{a", "not closed"),
        ("x:}", "not opened"),
        ("x:{a{b}}", "\"a{b\""),
        ("x:{}", "\"\""),
        ("x:{a,}", "\"\""),
        ("x:{a b}", "\"a b\""),
        ("x:{a..b}", "\"a..b\""),
        ("x:{%4}", "\"%4\""),
        ("x:{a:0}", "1 to 9999"),
        ("x:{a:10000}", "1 to 9999"),
        ("x:{a:+1}", "1 to 9999"),
        ("x:{a:1*}", "one modifier"),
        ("x:{=a}", "'='"),
        ("x:{a}{/a*}", "exploded in one place"),
        ("x: {a}", "' '"),
        ("x:%zz", "percent sign"),
    ] {
        let error = Template::new(wrong).map(|_| ()).unwrap_err();
        assert!(error.contains(why) && error.contains(&format!("{wrong:?}")), "{wrong}: {error}");
    }
    assert!(Template::new("x:{a.b_1,%41}{?c*}").is_ok());
}

#[test]
fn a_hostile_uri_costs_its_length() {
    let templates = [
        "{a}{b}{c}{d}{e}",
        "{+a}-{+b}-{+c}-{+d}",
        "{/a*}{/b*}{/c*}x",
        "{a*}{+b*}{#c*}",
        "{?a*,b,c}{&d*}x",
        "{a:50}{b:50}{c:50}",
        "{;a,aa,aaa,aaaa*}",
        "aaaaaaaaaaaaaaaaaaaaaaaaab",
    ];
    let hostile = |size: usize| {
        ["a", "-", "/a", "a,", "&a=a", ";a", "%2F", "?a=a&", "é"]
            .map(move |part| part.repeat(size / part.len()))
    };
    for template in templates {
        let template = Template::new(template).unwrap();
        let literals = template.graph.nodes.iter().map(|node| match node {
            Node::Literal { units, .. } => units.len(),
            _ => 0,
        });
        let bound = template.graph.nodes.len() + literals.sum::<usize>();
        assert!(bound < 80, "{bound}");
        for uri in hostile(3_000) {
            assert!(steps(&template, &uri) <= bound * (uri.chars().count() + 1), "{}", template.as_str());
        }
    }
    // What is too much of both is not begun with.
    let any = Template::new("{+a}").unwrap();
    assert!(any.matches(&"a".repeat(WORK / 64)).is_some() && any.matches(&"a".repeat(WORK)).is_none());
    let long = "{a}/".repeat(LONGEST / 4);
    assert!(Template::new(&long).is_ok());
    assert!(Template::new(&(long + "x")).unwrap_err().contains("at most 2048 bytes"));
    let uri = "/a".repeat(50_000);
    assert_eq!(values("{/path*}", &uri).map(|values| values[0].len()), Some("path=".len() + 2 * 50_000 - 1));
}
