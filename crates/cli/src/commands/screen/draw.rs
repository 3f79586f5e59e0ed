//! Drawing of the screen.

use control::top::{Column, Top, columns};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, Wrap};

use super::{Missing, Screen};

/// Width from which names fit beside the numbers.
const WIDE: u16 = 110;
/// Minimum width of the group. On a narrower screen, numbers are left out instead.
const GROUP_MIN: usize = 20;
/// Share of failed or wasted queries in percent from which a row has a colour.
const ALARMING: u64 = 50;

const KEYS: &str = " q quit  1-8 view  s sort  w window  f filter  p pause  ? help";

const HELP: &[&str] = &[
    "1 pod   2 ns   3 name   4 zone   5 rcode",
    "6 upstream   7 waste   tab next view",
    "",
    "s  sort by queries, NXDOMAIN, SERVFAIL, waste",
    "w  window: 10 s, 1 minute, 10 minutes",
    "f  filter rows by a text; esc clears it",
    "p  pause",
    "q  quit, or leave this help",
    "",
    "WASTE is the number of queries per useful",
    "answer (NOERROR with records).",
];

/// Draws the whole screen.
pub(super) fn draw(screen: &Screen, frame: &mut Frame<'_>) {
    let headline = screen.latest.as_ref().map_or_else(|_| String::new(), Top::headline);
    let lines = if Line::from(headline.as_str()).width() > usize::from(frame.area().width) { 2 } else { 1 };
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(lines), Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    match &screen.latest {
        Ok(top) => {
            frame.render_widget(Paragraph::new(headline).wrap(Wrap { trim: true }), head);
            draw_table(screen, top, frame, body);
        }
        Err(Missing(error)) => frame.render_widget(Paragraph::new(control::text::harmless(error)), body),
    }
    frame.render_widget(Line::styled(foot_text(screen), reversed()), foot);
    if screen.shows_help {
        draw_help(frame, body);
    }
}

fn foot_text(screen: &Screen) -> String {
    if screen.is_typing {
        return format!(" filter: {}_", screen.filter);
    }
    let mut text = KEYS.to_owned();
    text += &format!("  │ by {}, sorted by {}", screen.by.name(), screen.order.name());
    if !screen.filter.is_empty() {
        text += &format!(", with `{}`", screen.filter);
    }
    if screen.is_paused {
        text += "  PAUSED";
    }
    text
}

/// Returns the columns that fit into a width. The group is more important than its most frequent name and the numbers
/// at the right.
fn fitting(mut columns: Vec<Column>, width: u16) -> Vec<Column> {
    if width < WIDE {
        columns.truncate(columns.iter().rposition(|column| column.is_number).map_or(1, |at| at + 1));
    }
    let numbers = |columns: &[Column]| -> usize {
        columns.iter().filter(|column| column.is_number).map(|column| column.width + 1).sum()
    };
    while columns.len() > 2 && numbers(&columns) + GROUP_MIN > usize::from(width) {
        columns.pop();
    }
    columns
}

fn draw_table(screen: &Screen, top: &Top, frame: &mut Frame<'_>, area: Rect) {
    let columns = fitting(columns(top.by), area.width);
    let titles = columns.iter().map(|column| aligned(column, column.title));
    let header = Row::new(titles).style(reversed());
    let rows = screen.rows(top).into_iter().take(usize::from(area.height)).map(|row| {
        let cells = top.cells(row);
        let cells: Vec<Text<'_>> = columns.iter().zip(cells).map(|(column, cell)| aligned(column, cell)).collect();
        let counts = row.counts;
        let bad = |number: u64| number * 100 >= counts.queries.max(1) * ALARMING;
        let style = match (bad(counts.servfail), bad(counts.queries.saturating_sub(counts.useful))) {
            _ if !screen.has_colors => Style::new(),
            (true, _) => Style::new().fg(Color::Red),
            (false, true) => Style::new().fg(Color::Yellow),
            (false, false) => Style::new(),
        };
        Row::new(cells).style(style)
    });
    let widths = columns.iter().map(|column| match column.is_number {
        true => Constraint::Length(u16::try_from(column.width).unwrap_or(u16::MAX)),
        false => Constraint::Fill(1),
    });
    frame.render_widget(Table::new(rows, widths).header(header), area);
}

fn aligned(column: &Column, text: impl Into<String>) -> Text<'static> {
    let text = Text::from(text.into());
    if column.is_number { text.right_aligned() } else { text.left_aligned() }
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Line<'_>> = HELP.iter().map(|line| Line::from(*line)).collect();
    let (width, height) = (48, u16::try_from(HELP.len()).unwrap_or(0) + 2);
    let area = area.centered(Constraint::Length(width), Constraint::Length(height));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), area);
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}
