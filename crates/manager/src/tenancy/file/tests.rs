use proptest::prelude::*;

use super::*;

const TOPOLOGY: &str = r#"
[[node]]
name = "root"
[[host]]
name = "h0"
leaf = "root"
[[host]]
name = "h1"
leaf = "root"
"#;

fn parse(text: &str) -> Result<Policy, String> {
    let topology = Topology::parse(TOPOLOGY, Path::new("topology.toml")).unwrap();
    Policy::parse(text, Path::new("/etc/x/tenants.toml"), &topology).map_err(|error| error.to_string())
}

const WHOLE: &str = r#"
[node]
memory = 68719476736
streams = 64
groups = 65536
osts = 4194304
jobs = 64

[root]
jobs = 16
streams = 32

[job]
share = "1/16"

[[tenant]]
name = "astro"
priority = 10
jobs = 8
streams = 16
memory = "50%"
reserve = "1/4"
hosts = ["h[0-1]"]
data_path = "signed"

[[tenant]]
name = "*"
priority = -1
groups = "1/8"
"#;

#[test]
fn a_file_with_everything_is_read() {
    let policy = parse(WHOLE).unwrap();
    let (node, root) = (Scope::Node("leaf0".into()), Scope::Root("root".into()));
    assert_eq!(policy.capacity(&node).get(Kind::Jobs), Some(64));
    assert_eq!(policy.limit("astro", &Scope::Fabric).get(Kind::Jobs), Some(8));
    assert_eq!(policy.limit("astro", &node).get(Kind::Memory), Some(32 << 30));
    assert_eq!(policy.limit(OTHERS, &node).get(Kind::Groups), Some(8192));
    assert_eq!((policy.tenants["astro"].data_path, policy.tenants[OTHERS].data_path), (Some(Mode::Signed), None));
    let kept =
        [(Kind::Streams, &node, 16), (Kind::Memory, &node, 16 << 30), (Kind::Jobs, &root, 4), (Kind::Groups, &root, 0)];
    for (kind, scope, amount) in kept {
        assert_eq!(policy.reserved("astro", scope).get(kind), amount, "{kind:?} {scope}");
    }
    assert_eq!(policy.entitlement(OTHERS, &root, Kind::Streams), Some(24));
    assert_eq!((policy.priority("astro"), policy.priority(OTHERS)), (10, -1));
    assert_eq!(
        (policy.keeper_of("h0"), policy.keeper_of("h1.x"), policy.hosts.len()),
        (Some("astro"), Some("astro"), 2)
    );
    assert_eq!(parse("").unwrap(), Policy::default());
}

#[test]
fn the_document_shows_a_file_that_can_be_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tenants.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (_, rest) = document.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let topology = "[[node]]\nname = \"n\"\n[[host]]\nname = \"*\"\nleaf = \"n\"\n";
    let topology = Topology::parse(topology, Path::new("t")).unwrap();
    let policy = Policy::parse(example, Path::new("docs/tenants.md"), &topology).unwrap();
    assert!(policy.tenants.len() >= 2 && policy.share.is_some() && !policy.hosts.is_empty());
}

#[test]
fn every_slip_is_told_with_file_line_cause_and_remedy() {
    for (text, line, words) in [
        ("[nod]\nstreams = 1", 1, ["unknown field `nod`", "docs/tenants.md"]),
        ("[node]\nstream = 1", 2, ["unknown field `stream`", "docs/tenants.md"]),
        ("[node]\nstreams = -1", 2, ["-1", "correct the line"]),
        ("[node]\n\nstreams = 0", 3, ["streams = 0 leaves nothing", "how much there is"]),
        ("[root]\nmemory = 5", 2, ["unknown field `memory`", "correct the line"]),
        ("[job]\nshare = \"1/2\"", 2, ["[node] has, which says nothing", "say under [node]"]),
        ("[node]\njobs = 1\n[job]\nshare = \"2/1\"", 4, ["`2/1` is no share", "write \"1/8\""]),
        ("[node]\njobs = 1\n[job]\nshare = 2", 4, ["expected a string", "correct the line"]),
        ("[[tenant]]\npriority = 1", 1, ["missing field `name`", "correct the line"]),
        ("[[tenant]]\nname = \"A\"", 2, ["`A` is no name", "a-z, 0-9"]),
        ("[[tenant]]\nname = \"a\"\n[[tenant]]\nname = \"a\"", 4, ["tenant a stands there twice", "one of the two"]),
        ("[[tenant]]\nname = \"a\"\npriority = 1001", 3, ["1001 lies outside", "a value inside"]),
        ("[[tenant]]\nname = \"a\"\nmemory = \"10%\"", 3, ["says no memory", "say under [node]"]),
        ("[[tenant]]\nname = \"a\"\nstreams = true", 3, ["a number, or a share", "correct the line"]),
        ("[[tenant]]\nname = \"a\"\nstreams = \"all\"", 3, ["a number, or a share", "correct the line"]),
        ("[[tenant]]\nname = \"a\"\nstreams = 0", 3, ["streams comes to nothing", "jobs = 0"]),
        (
            "[[tenant]]\nname = \"a\"\nreserve = \"10%\"",
            3,
            ["[node] and [root] have, which say nothing", "say under [node]"],
        ),
        ("[[tenant]]\nname = \"a\"\nhosts = [\"h7\"]", 3, ["no host h7", "add the host"]),
        ("[[tenant]]\nname = \"a\"\nhosts = [\"h[1\"]", 3, ["unpaired bracket", "h[0-15]"]),
        (
            "[[tenant]]\nname = \"a\"\nhosts = [\"h1\"]\n[[tenant]]\nname = \"b\"\nhosts = [\"h1\"]",
            6,
            ["kept for tenant a", "one of them"],
        ),
        (
            "[node]\nstreams = 8\n[[tenant]]\nname = \"a\"\nreserve = \"75%\"\n[[tenant]]\nname = \"b\"\nreserve = \"1/2\"",
            8,
            ["reserve 10 streams of 8", "together"],
        ),
        (
            "[node]\nstreams = 8\n[[tenant]]\nname = \"a\"\nreserve = \"1/2\"\nstreams = 3",
            5,
            ["reserve keeps 4 streams", "raise the one"],
        ),
        ("[node", 1, ["", "correct the line"]),
    ] {
        let error = parse(text).unwrap_err();
        let position = format!("tenants /etc/x/tenants.toml:{line}: ");
        assert!(error.starts_with(&position), "{text:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{text:?}: {error}");
    }
}

#[test]
fn a_file_that_is_not_there_or_endless_is_named() {
    let topology = Topology::parse(TOPOLOGY, Path::new("topology.toml")).unwrap();
    for (path, cause) in [("/nonexistent/tenants.toml", "cannot read it"), ("/dev/zero", "longer than")] {
        let error = Policy::load(Path::new(path), &topology).unwrap_err().to_string();
        assert!(error.starts_with(&format!("tenants {path}: ")) && error.contains(cause), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_brings_the_reader_down(text in "[a-z_=\"\\[\\]0-9%/*\n#. -]{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_change_of_a_good_file_brings_the_reader_down(at in 0usize..400, byte in 0u8..128) {
        let mut text = WHOLE.to_owned().into_bytes();
        let at = at % text.len();
        text[at] = byte;
        if let Ok(policy) = parse(core::str::from_utf8(&text).unwrap()) {
            // Whatever it says now, it does not promise more than there is.
            let scope = Scope::Node("n".into());
            for kind in Kind::ALL {
                let kept: u64 = policy.tenants.keys().map(|name| policy.reserved(name, &scope).get(kind)).sum();
                prop_assert!(policy.capacity(&scope).get(kind).is_none_or(|capacity| kept <= capacity));
            }
        }
    }
}

#[test]
fn the_packages_example_changes_nothing_until_its_lines_are_no_comments() {
    let example = include_str!("../../../../../deploy/debian/tenants.toml");
    assert_eq!(parse(example).unwrap(), Policy::default());
    // After the `#` of a comment there is a space, and after that of a line that may be put in
    // force there is none.
    let uncomment = |line: &str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
        _ => format!("{line}\n"),
    };
    let policy = parse(&example.lines().map(uncomment).collect::<String>()).unwrap();
    assert_eq!(policy.tenants.keys().map(String::as_str).collect::<Vec<_>>(), [OTHERS, "astro"]);
    assert_eq!(policy.limit("astro", &Scope::Node("leaf0".into())).get(Kind::Streams), Some(16));
    assert_eq!(policy.capacity(&Scope::Root("root".into())).get(Kind::Streams), Some(32));
}
