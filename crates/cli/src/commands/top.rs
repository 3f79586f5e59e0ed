//! `portolan top`.

use std::io::{self, IsTerminal};

use clap::{Arg, ArgAction, ArgMatches};
use control::top::{By, ROWS_DEFAULT, ROWS_MAX, Top, Window};
use control::{Endpoint, exit};

use super::screen::Screen;
use super::{CommonOptions, command, json, print, read_number, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "top";

/// Options of the command.
#[derive(Debug)]
pub(super) struct Options {
    by: By,
    window: Window,
    rows: usize,
    once: bool,
}

pub(super) fn definition() -> clap::Command {
    let by = Arg::new("by")
        .long("by")
        .value_name("GROUP")
        .value_parser(By::ALL.map(By::name))
        .default_value(By::default().name())
        .help("Grouping; `waste` shows pods with most queries without a useful answer first");
    let window = Arg::new("window")
        .long("window")
        .value_name("WINDOW")
        .value_parser(Window::ALL.map(Window::name))
        .default_value(Window::default().name())
        .help("Period that the numbers are about");
    let rows = Arg::new("rows")
        .long("rows")
        .value_name("NUMBER")
        .value_parser(|text: &str| read_number(text, ROWS_MAX))
        .help("Maximum number of rows [default: 20]");
    command(NAME, "Show which pods, namespaces, names or upstreams cause most queries")
        .long_about(
            "Show which pods, namespaces, names, domains, zones, response codes or upstreams cause most queries. WASTE \
             is the number of queries per useful answer, which is NOERROR with records. Search paths and AAAA queries \
             without an answer raise it. At high rates a sample is counted, and the first line says which. With --all, \
             the table has the groups of each replica of the cluster DNS, and the exit status is 3 if one could not be \
             asked.",
        )
        .args(service::options())
        .arg(by)
        .arg(window)
        .arg(rows)
        .arg(
            Arg::new("once")
                .long("once")
                .action(ArgAction::SetTrue)
                .help("Print one table and end, as without a terminal"),
        )
        .arg(json())
}

impl Options {
    pub(super) fn by(&self) -> By {
        self.by
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the command for one replica.
    pub(super) fn words(&self) -> Vec<String> {
        let rows = self.rows.to_string();
        let words = [NAME, "--json", "--by", self.by.name(), "--window", self.window.name(), "--rows", &rows];
        words.map(str::to_owned).to_vec()
    }

    pub(super) fn read(matches: &ArgMatches) -> Options {
        let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
        let (by, window) = (text("by"), text("window"));
        let rows = matches.get_one::<usize>("rows").copied();
        Options {
            by: By::ALL.into_iter().find(|known| known.name() == by).unwrap_or_default(),
            window: Window::ALL.into_iter().find(|known| known.name() == window).unwrap_or_default(),
            rows: rows.unwrap_or(ROWS_DEFAULT),
            once: matches.get_flag("once"),
        }
    }
}

pub(super) fn run(own: &Options, options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    if !own.once && !options.json && io::stdout().is_terminal() {
        // https://no-color.org
        let has_colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let screen = Screen::new(own.by, own.window, has_colors);
        screen.run(|by, window, rows| fetch(socket, by, window, rows))?;
        return Ok(exit::FINE);
    }
    print(options, &fetch(socket, own.by, own.window, own.rows)?)?;
    Ok(exit::FINE)
}

/// Asks the server for a table.
fn fetch(socket: &Socket, by: By, window: Window, rows: usize) -> Result<Top, ControlError> {
    let rows = rows.to_string();
    socket.get(Endpoint::Top, &[("by", by.name()), ("window", window.name()), ("rows", &rows)])
}
