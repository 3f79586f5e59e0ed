use corefile::Code;

use super::*;

const PROBLEM: Code = Code::declared("test/code", "");

fn parsed(text: &str) -> Corefile {
    corefile::parse(Path::new("Corefile"), text.to_owned(), &Environment).corefile
}

/// Environment with one variable.
struct Environment;

impl corefile::Loader for Environment {
    fn read(&self, _: &Path) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn glob(&self, _: &Path) -> std::io::Result<Vec<std::path::PathBuf>> {
        Ok(Vec::new())
    }

    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "KEY" => Some("TopS3cret".to_owned()),
            "UPSTREAM" => Some("https://bob:TopS3cret@h".to_owned()),
            _ => None,
        }
    }
}

fn shown(text: &str) -> String {
    let written = parsed(text);
    let file = written.sources.first().unwrap();
    Secrets::of(&written).shown(file, written.sources.text(file))
}

/// Returns a message about the first place of a word as it is shown.
fn message(text: &str, word: &str, message: &str) -> String {
    let written = parsed(text);
    Secrets::of(&written).masked_text(span_of(&written, word), message)
}

fn span_of(written: &Corefile, word: &str) -> Span {
    let file = written.sources.first().unwrap();
    let start = u32::try_from(written.sources.text(file).find(word).unwrap()).unwrap();
    Span { file, start, end: start + u32::try_from(word.len()).unwrap() }
}

#[test]
fn hides_secrets_where_they_are_written() {
    for (text, expected) in [
        (". {\n tsig {\n  secret kea. S-\n }\n}\n", ". {\n tsig {\n  secret kea. [removed]\n }\n}\n"),
        (". {\n tsig {\n  sekret kea S\n }\n}\n", ". {\n tsig {\n  sekret [removed] [removed]\n }\n}\n"),
        (". {\n tsig {\n  key kea. S\n }\n}\n", ". {\n tsig {\n  key kea. [removed]\n }\n}\n"),
        (". {\n tsgi {\n  value S\n }\n}\n", ". {\n tsgi {\n  value [removed]\n }\n}\n"),
        (
            ". {\n tsig {\n  secrets file\n  require all\n }\n}\n",
            ". {\n tsig {\n  secrets file\n  require all\n }\n}\n",
        ),
        (". {\n tsig { secret kea. S }\n}\n", ". {\n tsig { secret kea. [removed] }\n}\n"),
        (". {\n secret kea. S\n}\n}\nsecret kea. S\n", ". {\n secret kea. [removed]\n}\n}\nsecret kea. [removed]\n"),
        (
            ". {\n etcd {\n  credentails u S # password: S\n }\n}\n",
            ". {\n etcd {\n  credentails [removed] [removed] # password: [removed]\n }\n}\n",
        ),
        (". {\n tsig {\n  secret kea. \"S S", ". {\n tsig {\n  secret kea. [removed]"),
        (". {\n secret \"S\nS\" S\n}\n", ". {\n secret [removed]\n [removed]\n}\n"),
        (". {\n on startup curl -H \"S\" \"S\n}\n", ". {\n on startup curl [removed] [removed] [removed]\n\n"),
        (
            ". {\n forward . https://u:S@h/?S \"http://u:S@h\"\n}\n",
            ". {\n forward . https://[removed]@h/?[removed] \"http://[removed]@h\"\n}\n",
        ),
        (
            ". {\n tsig {\n  secret kea. {$KEY}\n }\n forward . {$UPSTREAM}\n}\n",
            ". {\n tsig {\n  secret kea. {$KEY}\n }\n forward . {$UPSTREAM}\n}\n",
        ),
        (". {\n tsig secret kea. S\n}\n", ". {\n tsig secret [removed] [removed]\n}\n"),
        ("(a) {\n b {\n  secret S\n }\n}\n", "(a) {\n b {\n  secret [removed]\n }\n}\n"),
        (". {\n sign f {\n  key file K\n }\n}\n", ". {\n sign f {\n  key file K\n }\n}\n"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn hides_secrets_that_a_message_quotes() {
    let tsig = ". {\n    tsig {\n        secret kea. TopS3cret-Key\n    }\n    whoami\n}\n";
    let forward = ". {\n    forward . https://bob:Top@S3cret@h\n}\n";
    for (text, word, told, expected) in [
        (tsig, "TopS3cret", "`TopS3cret-Key` is no secret", "`[removed]` is no secret"),
        (tsig, "secret", "`secret` takes 2 arguments, not tops3cret-key", "`secret` takes 2 arguments, not [removed]"),
        (tsig, "TopS3cret", "`kea.`, `TopS3…`, `Key`", "`kea.`, `[removed]`, `[removed]`"),
        (tsig, "tsig", "TopS3cret-Key", "[removed]"),
        (tsig, "whoami", "`TopS3cret-Key`", "`[removed]`"),
        (forward, "https", "`https://bob:Top@S3cret@h`: `S3cret@h`", "`https://[removed]@h`: `[removed]@h`"),
        (forward, "https", "`bob:Top`: `Top@S3cret` `forward`", "`[removed]`: `[removed]` `forward`"),
        (". {\n secret S\n}\n", "S", "`S` is no Size", "`[removed]` is no Size"),
        (". {\n on startup sh cache.\n cache x\n}\n", "cache x", "`cache.` x", "`cache.` x"),
        (". {\n secret kea. {$KEY}\n}\n", "kea", "`TopS3cret` is no secret", "`[removed]` is no secret"),
        (". {\n forward . {$UPSTREAM}\n}\n", "{$", "`TopS3cret@h`", "`[removed]@h`"),
        (". {\n log \"a\n secret S\n\"\n}\n", "\"a", "`a\n secret S\n`", "`a\n secret [removed]\n`"),
    ] {
        assert_eq!(message(text, word, told), expected, "{text}");
    }
}

#[test]
fn renders_a_problem_without_the_secret() {
    let written = parsed(". {\n    tsig {\n        secret kea. TopS3cret-Key more\n    }\n}\n");
    let problem = |word: &str| {
        let span = span_of(&written, word);
        Diagnostic::error(PROBLEM, span, format!("`{word}` is wrong"))
            .with_label("`TopS3cret-Key`")
            .with_usage("secret NAME KEY")
    };
    let text = Secrets::of(&written).render(&[problem("TopS3cret-Key"), problem("kea.")], Style::Plain);
    let expected = "\
error[test/code]: `[removed]` is wrong
 --> Corefile:3:21
  |
3 |         secret kea. [removed] [removed]
  |                     ^^^^^^^^^ `[removed]`
  |
  = usage: secret NAME KEY

error[test/code]: `kea.` is wrong
 --> Corefile:3:16
  |
3 |         secret kea. [removed] [removed]
  |                ^^^^ `[removed]`
  |
  = usage: secret NAME KEY
";
    assert_eq!(text, expected);
}

#[test]
fn hides_no_argument_of_other_properties() {
    for directive in plugins::DIRECTIVES.available() {
        let names = directive.properties().into_iter().map(|property| property.usage.name());
        for name in names.filter(|name| !SECRET_PROPERTIES.contains(name)) {
            let text = format!(". {{\n {} {{\n  {name} value\n }}\n}}\n", directive.name());
            assert_eq!(shown(&text), text);
        }
    }
}
