//! Folder for mdBook: the chapters, and the files that they link to.
//!
//! Pages of `docs` move to the root of the book, all other files below `repository`.

use std::path::{Path, PathBuf};

use super::pages::{DOCS, Link, Page, Pages, SUMMARY};
use crate::{Failed, root};

/// Folder in the book for everything that is not in `docs`.
const REPOSITORY: &str = "repository";
const SETTINGS: &str = "\
[book]
title = \"Portolan\"
language = \"en\"
src = \"src\"

[build]
build-dir = \"html\"
create-missing = false
";

/// Writes the settings and the sources of the book.
pub(super) fn write(pages: &Pages, book: &Path) -> Result<(), Failed> {
    let sources = book.join("src");
    if book.exists() {
        std::fs::remove_dir_all(book).map_err(|error| format!("{}: {error}", book.display()))?;
    }
    write_file(&book.join("book.toml"), SETTINGS.as_bytes())?;
    for path in pages.chapters().iter().map(PathBuf::as_path).chain([Path::new(SUMMARY)]) {
        let Some(page) = pages.0.get(path) else { return Err(format!("{}: no such page", path.display())) };
        let mut text = rewritten(pages, path, page)?;
        if path == Path::new(SUMMARY) {
            // mdBook ends a list at a comment.
            text =
                text.lines().filter(|line| !line.trim().starts_with("<!--")).map(|line| format!("{line}\n")).collect();
        }
        write_file(&sources.join(place(path)), text.as_bytes())?;
        for file in page.links.iter().filter_map(|link| link.destination(path)) {
            if !pages.0.contains_key(&file) && root().join(&file).is_file() {
                write_file(&sources.join(place(&file)), &crate::read_bytes(&file)?)?;
            }
        }
    }
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the path in the book of a file of the project. mdBook renames pages `README.md`, but not the links to them.
fn place(path: &Path) -> PathBuf {
    let place = path.strip_prefix(DOCS).map_or_else(|_| Path::new(REPOSITORY).join(path), Path::to_owned);
    if place.ends_with("README.md") { place.with_file_name("index.md") } else { place }
}

/// Returns a page with links to the places in the book. Links to folders and to the summary become plain text.
pub(super) fn rewritten(pages: &Pages, path: &Path, page: &Page) -> Result<String, Failed> {
    let (mut text, mut end) = (String::new(), 0);
    for link in &page.links {
        text.push_str(&page.text[end..link.range.start]);
        text.push_str(&rewritten_link(pages, path, link, &page.text[link.range.clone()])?);
        end = link.range.end;
    }
    text.push_str(&page.text[end..]);
    Ok(text)
}

fn rewritten_link(pages: &Pages, path: &Path, link: &Link, written: &str) -> Result<String, Failed> {
    let (Some((target, anchor)), Some(to)) = (link.parts(), link.destination(path)) else {
        return Ok(written.to_owned());
    };
    if target.is_empty() {
        return Ok(written.to_owned());
    }
    let Some((label, _)) = written.rsplit_once(&format!("]({}", link.target)) else {
        return Err(format!("{}: write the link `{written}` as `[text](path)`", path.display()));
    };
    // In the book, the list of the chapters is beside each page.
    if to == Path::new(SUMMARY) || !pages.0.contains_key(&to) && root().join(&to).is_dir() {
        return Ok(label.trim_start_matches('[').to_owned());
    }
    let anchor = anchor.map_or(String::new(), |anchor| format!("#{anchor}"));
    Ok(format!("{label}]({}{anchor})", relative(&place(path), &place(&to))))
}

/// Returns the path from a page to a file.
pub(super) fn relative(from: &Path, to: &Path) -> String {
    let (mut from, mut to): (Vec<_>, Vec<_>) = (from.iter().collect(), to.iter().collect());
    from.pop();
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = core::iter::repeat_n("..".to_owned(), from.len() - common);
    let down = to.drain(common..).map(|part| part.to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}
