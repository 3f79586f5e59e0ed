//! Elements of a document that `maud` has written: every attribute is in quotes and every element is closed.

use core::fmt::Write;

/// Start tag.
#[derive(Debug)]
pub(super) struct Element<'a> {
    pub(super) name: &'a str,
    pub(super) attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Element<'a> {
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Part of a document.
enum Part<'a> {
    Start(Element<'a>),
    End,
    Text(&'a str),
}

/// Elements without an end tag.
const EMPTY: [&str; 4] = ["meta", "link", "input", "br"];

fn parts(page: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    while !rest.is_empty() {
        let Some(inside) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            parts.push(Part::Text(&rest[..end]));
            rest = &rest[end..];
            continue;
        };
        let (tag, after) = inside.split_once('>').expect("the end of a tag");
        rest = after;
        if tag.starts_with('/') {
            parts.push(Part::End);
            continue;
        }
        let element = element(tag);
        let name = element.name;
        parts.push(Part::Start(element));
        if ["style", "script"].contains(&name) {
            // Their content is another language.
            rest = &rest[rest.find("</").expect("an end tag")..];
        }
    }
    parts
}

fn element(tag: &str) -> Element<'_> {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    let mut attributes = Vec::new();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let (value, after) = match after.strip_prefix("=\"") {
            Some(quoted) => quoted.split_once('"').expect("a closing quote"),
            None => ("", after),
        };
        attributes.push((name, value));
        rest = after.trim_start();
    }
    Element { name, attributes }
}

/// Returns all elements in their order.
pub(super) fn elements(page: &str) -> Vec<Element<'_>> {
    let element = |part| if let Part::Start(element) = part { Some(element) } else { None };
    parts(page).into_iter().filter_map(element).collect()
}

/// Returns the document as lines, each with an element or a text, indented by its depth.
pub(super) fn outline(page: &str) -> String {
    let (mut out, mut depth) = (String::new(), 0_usize);
    for part in parts(page) {
        match part {
            Part::Start(Element { name, attributes }) => {
                let _ = write!(out, "{}{name}", " ".repeat(depth));
                for (name, value) in attributes {
                    let _ = if value.is_empty() { write!(out, " {name}") } else { write!(out, " {name}={value:?}") };
                }
                out.push('\n');
                depth += usize::from(!EMPTY.contains(&name));
            }
            Part::End => depth -= 1,
            Part::Text(text) => _ = writeln!(out, "{}| {text}", " ".repeat(depth)),
        }
    }
    assert_eq!(depth, 0, "every element is closed");
    out
}
