//! Completion scripts and man pages, generated from the definition of the command line.
//!
//! clap knows long flags with two dashes only. A flag that may also be written with one dash, as in CoreDNS and
//! node-cache, gets a second definition for the completion scripts. Its name starts with [`MARKER`], which occurs
//! nowhere else in the scripts, and which is then replaced by one dash.

use std::fmt;

use clap::{Arg, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments;
use crate::manual_sections::{self, Sections};

/// Marker of a flag with one dash.
const MARKER: &str = "one-dash-";
/// Line of the script for fish after which `$cmd` has the words before the cursor.
const FISH_WORDS: &str = "    set -e cmd[1]";

/// Subcommand without a man page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoManPage {
    /// Words of the command line, without the name of the program.
    words: Vec<String>,
    /// Subcommands of the last word that is known.
    known: Vec<String>,
}

impl fmt::Display for NoManPage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoManPage { words, known } = self;
        write!(out, "no man page for `portolan {}`; ", words.join(" "))?;
        match known.as_slice() {
            [] => out.write_str("the command has no subcommands"),
            known => write!(out, "the commands are {}", known.join(", ")),
        }
    }
}

impl core::error::Error for NoManPage {}

/// Returns the completion script of a shell.
#[must_use]
pub fn completions(shell: Shell) -> String {
    let mut command = with_one_dash(arguments::command(), |arg| arg.get_long().is_some_and(arguments::takes_one_dash));
    for name in ["node", "kube-dns"] {
        command = command.mut_subcommand(name, |mode| with_one_dash(mode, |_| true));
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "portolan", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = if shell == Shell::Fish { for_fish(&script) } else { script.into_owned() };
    script.replace(&format!("--{MARKER}"), "-")
}

/// Corrects a script for fish. fish has `-l` for flags with two dashes and `-o` for those with one. To find the
/// subcommand, the script parses the words before the cursor with `argparse`, which knows neither flags with one dash
/// nor names with a dot. So the words are converted before.
fn for_fish(script: &str) -> String {
    let mut fixed = String::new();
    for line in script.lines() {
        let specs = line.strip_prefix("    string join \\n ").map(|specs| specs.split(' '));
        match specs {
            Some(specs) => {
                let known: Vec<String> =
                    specs.filter(|spec| !spec.starts_with(MARKER)).map(|spec| spec.replace('.', "-")).collect();
                fixed += &format!("    string join \\n {}\n", known.join(" "));
            }
            None => fixed += &format!("{}\n", line.replace(&format!("-l {MARKER}"), "-o ")),
        }
        if line == FISH_WORDS {
            let flags = arguments::SINGLE_DASH.join("|").replace('.', r"\.");
            fixed += &format!("    set cmd (string replace -r -- '^-({flags})(=|$)' '--$1$2' $cmd)\n");
            fixed += "    set cmd (string replace -- --dns.port --dns-port $cmd)\n";
        }
    }
    fixed
}

/// Adds a second definition to the selected long flags of a command.
fn with_one_dash(command: Command, is_selected: impl Fn(&Arg) -> bool) -> Command {
    let twin = |arg: &Arg| {
        let name = format!("{MARKER}{}", arg.get_long()?);
        Some(arg.clone().id(name.clone()).long(name).short(None))
    };
    let twins: Vec<Arg> = command.get_arguments().filter(|arg| is_selected(arg)).filter_map(twin).collect();
    command.args(twins)
}

/// Returns the man page of a subcommand in roff. Without words, returns that of the program.
///
/// # Errors
/// A word that is not a subcommand of the words before it.
pub(crate) fn man_page(words: &[String]) -> Result<String, NoManPage> {
    let program = built_command();
    let mut command = &program;
    for word in words {
        let known = || command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        let unknown = || NoManPage { words: words.to_vec(), known: known() };
        command = command.find_subcommand(word).ok_or_else(unknown)?;
    }
    Ok(roff(command))
}

/// Returns the man pages of the program and of all subcommands, by file name: `portolan-check.1`.
#[must_use]
pub fn man_pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    add_pages(&built_command(), &mut pages);
    pages
}

fn add_pages(command: &Command, pages: &mut Vec<(String, String)>) {
    pages.push((Man::new(command.clone()).get_filename(), roff(command)));
    command.get_subcommands().for_each(|inner| add_pages(inner, pages));
}

/// Returns the command line with the full names of all subcommands, without clap's own `help`.
fn built_command() -> Command {
    let mut command = arguments::command().disable_help_subcommand(true);
    command.build();
    command
}

fn roff(command: &Command) -> String {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(command.clone()).source("Portolan").render(&mut page);
    let name = command.get_bin_name().unwrap_or_default();
    let words = name.split_once(' ').map_or("", |(_, words)| words);
    String::from_utf8_lossy(&page).into_owned() + &manual_sections::of(words).map(own_sections).unwrap_or_default()
}

/// Returns the sections that clap does not know in roff.
fn own_sections(sections: &Sections) -> String {
    let mut page = ".SH \"EXIT STATUS\"\n".to_owned();
    for (code, meaning) in sections.exits {
        page += &format!(".TP\n\\fB{code}\\fR\n{}\n", escaped(meaning));
    }
    page += ".SH EXAMPLES\n";
    for (what, line) in sections.examples {
        page += &format!(".PP\n{}:\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", escaped(what), escaped(line));
    }
    page
}

/// Escapes what has a meaning in roff within a line. No line starts with a dot or an apostrophe.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completes_flags_with_one_dash_in_every_shell() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let script = completions(shell);
            assert!(!script.contains(MARKER), "{shell}");
            let flags = match shell {
                Shell::Fish => ["-o conf ", "-o dns.port ", "-o localip "],
                _ => [" -conf", " -dns.port", " -localip"],
            };
            let script = script.replace(['\'', '"', '('], " ");
            flags.iter().for_each(|flag| assert!(script.contains(flag), "{shell}: {flag}"));
        }
    }

    /// Runs a shell with a script. Returns what it prints, or `None` with a message if the shell is missing.
    fn run_shell(shell: &str, script: &str) -> Option<String> {
        let output = std::process::Command::new(shell).args(["-c", script]).output();
        match output {
            Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
            Err(error) => {
                println!("SKIPPED: completions in {shell}: {error}");
                None
            }
        }
    }

    #[test]
    fn bash_completes_flags_and_values() {
        let complete = |words: &str, last: &str| {
            format!(
                "COMP_WORDS=({words} {last}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _portolan portolan {last} x; echo ${{COMPREPLY[@]}}\n"
            )
        };
        let script = completions(Shell::Bash)
            + &complete("portolan", "-con")
            + &complete("portolan", "--dns")
            + &complete("portolan node", "-localip")
            + &complete("portolan completions", "zs");
        let Some(printed) = run_shell("bash", &script) else { return };
        assert_eq!(printed, "-conf\n--dns.port\n-localip\nzsh\n");
    }

    #[test]
    fn fish_completes_flags_and_subcommands() {
        let complete = |line: &str| format!("complete -C '{line}' | string split -f 1 \\t\n");
        let script = completions(Shell::Fish)
            + &complete("portolan -con")
            + &complete("portolan --dns")
            + &complete("portolan -dns.port 53 -quiet chec")
            + &complete("portolan -dns.port 53 check --rba")
            + &complete("portolan node -localip");
        let Some(printed) = run_shell("fish", &script) else { return };
        assert_eq!(printed, "-conf\n--dns.port\ncheck\n--rbac\n-localip\n");
    }

    #[test]
    fn has_a_man_page_for_each_subcommand() {
        let pages = man_pages();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["portolan.1", "portolan-check.1", "portolan-node.1", "portolan-cache-get.1", "portolan-man.1"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        let of_cache = man_page(&["cache".to_owned(), "get".to_owned()]).unwrap();
        assert!(of_cache.contains("portolan cache get") || of_cache.contains("portolan\\-cache\\-get"), "{of_cache}");
    }

    #[test]
    fn every_man_page_has_an_exit_status_and_examples_that_parse() {
        for (name, page) in man_pages() {
            for heading in [".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\n", ".SH EXAMPLES\n.PP\n"] {
                assert!(page.contains(heading), "{name}: {page}");
            }
        }
        for Sections { command, exits, examples } in manual_sections::SECTIONS {
            assert!(exits.is_sorted() && !examples.is_empty(), "{command}");
            for (_, line) in *examples {
                let words = line.split(' ').map(std::ffi::OsString::from);
                assert!(line.starts_with("portolan") && arguments::read(words, plugins::DIRECTIVES).is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn names_the_commands_instead_of_an_unknown_one() {
        let message = man_page(&["chekc".to_owned()]).unwrap_err().to_string();
        assert!(message.starts_with("no man page for `portolan chekc`; the commands are check, "), "{message}");
    }
}
