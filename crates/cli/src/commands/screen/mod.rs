//! Screen of `portolan top`: the table, refreshed every second, and keys to change what it shows.

mod draw;

use std::io;
use std::time::{Duration, Instant};

use control::top::{By, ROWS_MAX, Row, Top, Window};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use tokio::signal::unix::{SignalKind, signal};

use crate::client::ControlError;

/// Interval between requests to the server.
const REFRESH: Duration = Duration::from_secs(1);
/// Maximum length of the text to filter by.
const FILTER_MAX: usize = 64;

/// Order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SortOrder {
    /// That of the server: by number of queries, or of wasted ones.
    #[default]
    Server,
    Nxdomain,
    Servfail,
    Waste,
}

impl SortOrder {
    const fn next(self) -> SortOrder {
        match self {
            SortOrder::Server => SortOrder::Nxdomain,
            SortOrder::Nxdomain => SortOrder::Servfail,
            SortOrder::Servfail => SortOrder::Waste,
            SortOrder::Waste => SortOrder::Server,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            SortOrder::Server => "queries",
            SortOrder::Nxdomain => "NXDOMAIN",
            SortOrder::Servfail => "SERVFAIL",
            SortOrder::Waste => "waste",
        }
    }
}

/// Action that a key causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Nothing,
    /// Request another table.
    Fetch,
    Quit,
}

/// State of the screen.
pub(super) struct Screen {
    by: By,
    window: Window,
    order: SortOrder,
    /// Text that shown rows contain.
    filter: String,
    is_typing: bool,
    is_paused: bool,
    shows_help: bool,
    has_colors: bool,
    latest: Result<Top, Missing>,
}

/// Reason why there is nothing to show.
struct Missing(String);

impl Screen {
    pub(super) fn new(by: By, window: Window, has_colors: bool) -> Screen {
        Screen {
            by,
            window,
            order: SortOrder::default(),
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            shows_help: false,
            has_colors,
            latest: Err(Missing("waiting for the server".to_owned())),
        }
    }

    /// Shows the screen until the user ends it. `fetch` requests a table.
    pub(super) fn run(
        mut self,
        fetch: impl Fn(By, Window, usize) -> Result<Top, ControlError>,
    ) -> Result<(), ControlError> {
        // A server that cannot be asked is reported as text.
        self.latest = Ok(fetch(self.by, self.window, ROWS_MAX)?);
        restore_at_sigterm().map_err(ControlError::Io)?;
        let mut terminal = ratatui::try_init().map_err(ControlError::Io)?;
        let outcome = self.show(&mut terminal, fetch);
        ratatui::restore();
        outcome.map_err(ControlError::Io)
    }

    fn show(
        &mut self,
        terminal: &mut ratatui::DefaultTerminal,
        fetch: impl Fn(By, Window, usize) -> Result<Top, ControlError>,
    ) -> io::Result<()> {
        let mut fetched = Instant::now();
        loop {
            terminal.draw(|frame| draw::draw(self, frame))?;
            let action = match event::poll(REFRESH.saturating_sub(fetched.elapsed()))? {
                true => match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => self.key(key),
                    _ => Action::Nothing,
                },
                false if self.is_paused => {
                    fetched = Instant::now();
                    Action::Nothing
                }
                false => Action::Fetch,
            };
            match action {
                Action::Nothing => {}
                Action::Quit => return Ok(()),
                Action::Fetch => {
                    self.latest = fetch(self.by, self.window, ROWS_MAX).map_err(|error| Missing(error.to_string()));
                    fetched = Instant::now();
                }
            }
        }
    }

    /// Handles a key.
    fn key(&mut self, key: KeyEvent) -> Action {
        let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        if is_interrupt {
            return Action::Quit;
        }
        if self.is_typing {
            self.type_key(key.code);
            return Action::Nothing;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc if self.shows_help => self.shows_help = false,
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.shows_help = !self.shows_help,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('f' | '/') => self.is_typing = true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('w') => {
                self.window = next(&Window::ALL, self.window);
                return Action::Fetch;
            }
            KeyCode::Tab => return self.show_by(next(&By::ALL, self.by)),
            KeyCode::Char(digit @ '1'..='8') => {
                let at = digit as usize - '1' as usize;
                return self.show_by(By::ALL[at]);
            }
            _ => {}
        }
        Action::Nothing
    }

    fn show_by(&mut self, by: By) -> Action {
        self.by = by;
        self.order = SortOrder::default();
        Action::Fetch
    }

    /// Changes the text to filter by.
    fn type_key(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(c) if self.filter.len() < FILTER_MAX => self.filter.push(c),
            _ => {}
        }
    }

    /// Returns the rows to show, in their order.
    fn rows<'a>(&self, top: &'a Top) -> Vec<&'a Row> {
        let has_text = |row: &&Row| {
            row.key.contains(&self.filter) || row.top_name.as_deref().is_some_and(|name| name.contains(&self.filter))
        };
        let mut rows: Vec<&Row> = top.rows.iter().filter(has_text).collect();
        let wasted = |row: &Row| row.counts.queries.saturating_sub(row.counts.useful);
        host::sorting::sort_by_key(&mut rows, |row| match self.order {
            SortOrder::Server => std::cmp::Reverse(0),
            SortOrder::Nxdomain => std::cmp::Reverse(row.counts.nxdomain),
            SortOrder::Servfail => std::cmp::Reverse(row.counts.servfail),
            SortOrder::Waste => std::cmp::Reverse(wasted(row)),
        });
        rows
    }
}

/// Exit status of a process that SIGTERM ended, as shells report it.
const ENDED_BY_SIGTERM: i32 = 128 + 15;

/// Restores the terminal before SIGTERM ends the process. Otherwise it would stay in raw mode, without an echo.
fn restore_at_sigterm() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut terminations = runtime.block_on(async { signal(SignalKind::terminate()) })?;
    std::thread::Builder::new().name("sigterm".to_owned()).spawn(move || {
        if runtime.block_on(terminations.recv()).is_some() {
            ratatui::restore();
            let _ = execute!(io::stdout(), Show);
            std::process::exit(ENDED_BY_SIGTERM);
        }
    })?;
    Ok(())
}

/// Returns the value that follows another one; the first one follows the last.
fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let at = all.iter().position(|one| *one == now).map_or(0, |at| at + 1);
    all.get(at).or(all.first()).copied().unwrap_or(now)
}

#[cfg(test)]
mod tests;
