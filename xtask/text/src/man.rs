//! Converts the project's Markdown to man pages. It supports what the project uses: headings, paragraphs, lists,
//! tables, fenced blocks, code, emphasis and links.

use std::fmt::Write as _;

/// Formats a man page of a section. The first line of the text is its heading. `about` is the text for the NAME
/// section.
pub(crate) fn page(name: &str, section: u8, about: &str, markdown: &str) -> String {
    let mut text = format!(".TH {} {section} \"\" Portolan\n.SH NAME\n", escaped(&name.to_uppercase()));
    let _ = writeln!(text, "{} \\- {}", escaped(name), inline(about));
    // Skip the heading, the markers of generated blocks, and the sentence that NAME already has.
    let said = format!("*{}* - {about}.", name.rsplit_once('-').map_or(name, |(_, own)| own));
    let mut lines = markdown.lines().skip(1).filter(|line| !line.starts_with("<!--") && *line != said).peekable();
    let mut in_paragraph = false;
    while let Some(line) = lines.next() {
        match Line::of(line) {
            Line::Empty => in_paragraph = false,
            Line::Heading(heading) => {
                let _ = writeln!(text, ".SH {}", escaped(&heading.to_uppercase()));
            }
            Line::Subheading(heading) => {
                let _ = writeln!(text, ".SS {}", inline(heading));
            }
            Line::Fence => {
                let block: String = lines.by_ref().take_while(|line| !is_fence(line)).map(verbatim).collect();
                let _ = write!(text, ".PP\n.nf\n.RS 4\n{block}.RE\n.fi\n");
            }
            Line::Item(item) => {
                let _ = writeln!(text, ".IP \\(bu 2\n{}", start_of_line(&inline(item)));
                in_paragraph = true;
            }
            Line::Row(cells) => text.push_str(&row(&cells, lines.peek().is_some_and(|next| next.starts_with("|---")))),
            Line::Rule => {}
            Line::Text(words) => {
                text.push_str(if in_paragraph { "" } else { ".PP\n" });
                let _ = writeln!(text, "{}", start_of_line(&inline(words)));
                in_paragraph = true;
            }
        }
    }
    text
}

enum Line<'a> {
    Empty,
    Heading(&'a str),
    Subheading(&'a str),
    Fence,
    Item(&'a str),
    Row(Vec<&'a str>),
    /// Separator between the head of a table and its rows.
    Rule,
    Text(&'a str),
}

impl Line<'_> {
    fn of(line: &str) -> Line<'_> {
        let line = line.trim();
        if let Some(heading) = line.strip_prefix("### ") {
            return Line::Subheading(heading);
        }
        if let Some(heading) = line.strip_prefix("## ") {
            return Line::Heading(heading);
        }
        match line {
            "" => Line::Empty,
            _ if is_fence(line) => Line::Fence,
            _ if line.starts_with("|---") => Line::Rule,
            _ if line.starts_with("- ") => Line::Item(&line[2..]),
            _ if line.starts_with('|') => Line::Row(cells(line)),
            _ => Line::Text(line),
        }
    }
}

fn is_fence(line: &str) -> bool {
    line.starts_with("~~~") || line.starts_with("```")
}

/// Splits a row into cells. `\|` does not separate cells.
fn cells(line: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    let mut start = 1;
    for (at, _) in line.match_indices('|').skip(1).filter(|(at, _)| !line[..*at].ends_with('\\')) {
        cells.push(line[start..at].trim());
        start = at + 1;
    }
    cells
}

/// Formats a row as an entry whose last cell explains the others. The head of a table is left out.
fn row(cells: &[&str], is_head: bool) -> String {
    let Some((last, others)) = cells.split_last().filter(|_| !is_head) else { return String::new() };
    let others: Vec<String> = others.iter().filter(|cell| !cell.is_empty()).map(|cell| inline(cell)).collect();
    format!(".TP\n{}\n{}\n", start_of_line(&others.join(", ")), start_of_line(&inline(last)))
}

/// Converts code, emphasis and links within a line.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.replace("\\|", "|").split('`').enumerate() {
        match at % 2 {
            0 => out.push_str(&plain(part)),
            _ => {
                let _ = write!(out, "\\fB{}\\fR", escaped(part));
            }
        }
    }
    out
}

/// Converts text outside of code: links keep only their text, and emphasis becomes italic.
fn plain(text: &str) -> String {
    let mut without_links = String::new();
    let mut rest = text;
    while let Some((before, words, after)) = link(rest) {
        without_links.push_str(before);
        without_links.push_str(words);
        rest = after;
    }
    without_links.push_str(rest);
    let parts: Vec<String> = without_links.replace("**", "*").split('*').map(escaped).collect();
    // An unpaired star stays a star.
    if parts.len().is_multiple_of(2) {
        return escaped(&without_links);
    }
    let slanted = |(at, part): (usize, String)| if at % 2 == 0 { part } else { format!("\\fI{part}\\fR") };
    parts.into_iter().enumerate().map(slanted).collect()
}

/// Splits at the first `[WORDS](TARGET)`: text before it, its words, text after it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (words, rest) = text.split_once("](")?;
    let (before, words) = words.rsplit_once('[')?;
    Some((before, words, rest.split_once(')')?.1))
}

fn verbatim(line: &str) -> String {
    format!("{}\n", start_of_line(&escaped(line)))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Protects a line that roff would take for a request.
fn start_of_line(text: &str) -> String {
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_markdown_to_a_man_page() {
        let text = "# x\n\n*y* - does.\n*x* has\n**a-b** [here](to) `c\\d`.\n\n<!-- x -->\n## Syntax\n\n~~~ txt\n.x {\n}\n~~~\n\n\
                    | a | b |\n|---|---|\n| `p\\|q` | 1. |\n\n- one\n  more\n";
        let expected = ".TH X\\-Y 7 \"\" Portolan\n.SH NAME\nx\\-y \\- does\n.PP\n\\fIx\\fR has\n\\fIa\\-b\\fR here \
                        \\fBc\\ed\\fR.\n.SH SYNTAX\n.PP\n.nf\n.RS 4\n\\&.x {\n}\n.RE\n.fi\n.TP\n\\fBp|q\\fR\n1.\n\
                        .IP \\(bu 2\none\nmore\n";
        assert_eq!(page("x-y", 7, "does", text), expected);
    }
}
