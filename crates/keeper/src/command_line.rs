//! Command line: `portolan-keeper [--no-keeper] [PROGRAM] [ARGUMENTS…]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Option that replaces the keeper by the server, as the only process.
const NO_KEEPER: &str = "--no-keeper";
/// Option of the server that names its Corefile, without the dashes.
const COREFILE: &str = "conf";
/// Names of standard input, where the option names a Corefile.
const STANDARD_INPUT: [&str; 2] = ["stdin", "-"];
/// Name of the server beside the keeper.
const SERVER: &str = "portolan";

/// Command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// False with `--no-keeper`, and for a Corefile on standard input: no second server could read that.
    pub(crate) is_kept: bool,
    /// The server's executable.
    pub(crate) program: OsString,
    /// The server's arguments.
    pub(crate) arguments: Vec<OsString>,
}

impl CommandLine {
    /// Reads the words after the name of the keeper. The first one is a program if it is a path, with a slash and no
    /// dash in front. Its option may also follow the program, because the entry point of an image names that. All other
    /// words are the server's, also those that look like options of the keeper.
    pub(crate) fn read(words: impl Iterator<Item = OsString>, keeper: &Path) -> CommandLine {
        let mut words = words.peekable();
        let mut is_off = words.next_if(|word| word == NO_KEEPER).is_some();
        let program = words.next_if(|word| is_path(word)).unwrap_or_else(|| keeper.with_file_name(SERVER).into());
        is_off |= words.next_if(|word| word == NO_KEEPER).is_some();
        let arguments: Vec<OsString> = words.collect();
        CommandLine { is_kept: !is_off && !reads_standard_input(&arguments), program, arguments }
    }
}

/// Returns true if the server reads its Corefile from standard input: `-conf stdin`, `--conf=-`.
fn reads_standard_input(arguments: &[OsString]) -> bool {
    let texts: Vec<Option<&str>> = arguments.iter().map(|word| word.to_str()).collect();
    texts.iter().enumerate().any(|(at, word)| {
        let Some(option) = word.and_then(|word| word.strip_prefix("--").or(word.strip_prefix('-'))) else {
            return false;
        };
        let value = match option.strip_prefix(COREFILE) {
            Some("") => texts.get(at + 1).copied().flatten(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        value.is_some_and(|value| STANDARD_INPUT.contains(&value))
    })
}

fn is_path(word: &OsStr) -> bool {
    let bytes = word.as_bytes();
    bytes.contains(&b'/') && bytes.first() != Some(&b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_all_words_to_the_server_but_its_own_option_and_a_program() {
        for (words, is_kept, program, arguments) in [
            ("", true, "/bin/portolan", ""),
            ("-conf /etc/coredns/Corefile", true, "/bin/portolan", "-conf /etc/coredns/Corefile"),
            ("-conf=/etc/coredns/Corefile", true, "/bin/portolan", "-conf=/etc/coredns/Corefile"),
            ("/coredns -conf x", true, "/coredns", "-conf x"),
            ("--no-keeper /coredns -conf x", false, "/coredns", "-conf x"),
            ("/coredns --no-keeper -conf x", false, "/coredns", "-conf x"),
            ("--no-keeper -conf x", false, "/bin/portolan", "-conf x"),
            ("-conf stdin -quiet", false, "/bin/portolan", "-conf stdin -quiet"),
            ("--conf=-", false, "/bin/portolan", "--conf=-"),
            ("-conf -", false, "/bin/portolan", "-conf -"),
            ("check stdin", true, "/bin/portolan", "check stdin"),
            ("-conf", true, "/bin/portolan", "-conf"),
            ("node -localip 1.1.1.1 --no-keeper", true, "/bin/portolan", "node -localip 1.1.1.1 --no-keeper"),
        ] {
            let split = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
            let read = CommandLine::read(split(words).into_iter(), Path::new("/bin/portolan-keeper"));
            let expected = CommandLine { is_kept, program: program.into(), arguments: split(arguments) };
            assert_eq!(read, expected, "{words}");
        }
    }
}
