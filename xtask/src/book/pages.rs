//! Markdown pages of the project with their links and anchors, and the check of both.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::normalized;
use crate::{Failed, root, tidy};

/// Folder of the documentation.
pub(super) const DOCS: &str = "docs";
/// List of the chapters, in `docs`.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// Markdown page.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) links: Vec<Link>,
    anchors: BTreeSet<String>,
}

/// Link in a page.
pub(super) struct Link {
    /// Position of the whole link in bytes.
    pub(super) range: Range<usize>,
    /// Destination as it is written.
    pub(super) target: String,
}

/// Pages by their paths in the project.
pub(super) struct Pages(pub(super) BTreeMap<PathBuf, Page>);

/// Reads all Markdown files of the project.
pub(super) fn read_all() -> Result<Pages, Failed> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut pages = BTreeMap::new();
    for path in tidy::files()?.into_iter().filter(is_page) {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        pages.insert(path, Page::parse(text));
    }
    Ok(Pages(pages))
}

impl Page {
    pub(super) fn parse(text: String) -> Page {
        let (mut links, mut anchors) = (Vec::new(), BTreeSet::new());
        let mut heading: Option<String> = None;
        for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    if let Some(title) = heading.take() {
                        add_anchor(&mut anchors, &title);
                    }
                }
                Event::Text(part) | Event::Code(part) => {
                    if let Some(title) = &mut heading {
                        title.push_str(&part);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. }) => links.push(Link { range, target: dest_url.to_string() }),
                _ => {}
            }
        }
        Page { text, links, anchors }
    }
}

/// Adds the anchor of a heading. A second heading with the same words gets the suffix `-1`.
fn add_anchor(anchors: &mut BTreeSet<String>, title: &str) {
    let anchor = slug(title);
    let mut numbered = (1..).map(|number| format!("{anchor}-{number}"));
    let free = core::iter::once(anchor.clone()).chain(&mut numbered).find(|anchor| !anchors.contains(anchor));
    anchors.extend(free);
}

/// Returns the anchor that GitHub and mdBook give to a heading.
fn slug(title: &str) -> String {
    let kept = title.trim().chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

impl Link {
    /// Returns the path and the anchor of a link within the project.
    pub(super) fn parts(&self) -> Option<(&str, Option<&str>)> {
        if self.target.contains("://") || self.target.starts_with("mailto:") {
            return None;
        }
        Some(self.target.split_once('#').map_or((&*self.target, None), |(path, anchor)| (path, Some(anchor))))
    }

    /// Returns the path that a link of a page leads to, from the root of the project.
    pub(super) fn destination(&self, page: &Path) -> Option<PathBuf> {
        match self.parts()? {
            ("", _) => Some(page.to_owned()),
            (path, _) => normalized(&page.parent()?.join(path)),
        }
    }
}

impl Pages {
    /// Checks all links, and that the summary has all pages of the documentation.
    pub(super) fn check(&self) -> Result<(), Failed> {
        let mut wrong = Vec::new();
        let chapters: BTreeSet<PathBuf> = self.chapters().into_iter().collect();
        for (path, page) in &self.0 {
            for link in &page.links {
                let place = || format!("{}:{}", path.display(), line(&page.text, link.range.start));
                wrong.extend(self.problem(path, link).map(|what| format!("{}: {what}", place())));
                let is_other =
                    |to: &PathBuf| self.0.contains_key(to) && !chapters.contains(to) && to != Path::new(SUMMARY);
                let linked = link.destination(path).filter(is_other);
                if let Some(to) = linked.filter(|_| chapters.contains(path)) {
                    wrong.push(format!("{}: `{}` is not a chapter: add it to {SUMMARY}", place(), to.display()));
                }
            }
        }
        let is_chapter = |path: &&PathBuf| path.starts_with(DOCS) && !path.ends_with(SUMMARY);
        let missing = self.0.keys().filter(is_chapter).filter(|path| !chapters.contains(*path));
        wrong.extend(missing.map(|path| format!("{SUMMARY}: `{}` is missing", path.display())));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// Returns the pages that the summary lists.
    pub(super) fn chapters(&self) -> Vec<PathBuf> {
        let summary = Path::new(SUMMARY);
        let links = self.0.get(summary).map_or(&[][..], |page| &page.links);
        links.iter().filter_map(|link| link.destination(summary)).collect()
    }

    fn problem(&self, path: &Path, link: &Link) -> Option<String> {
        let (_, anchor) = link.parts()?;
        let Some(to) = link.destination(path) else {
            return Some(format!("`{}` leaves the project", link.target));
        };
        let Some(page) = self.0.get(&to) else {
            let exists = root().join(&to).exists();
            return (!exists).then(|| format!("`{}` does not exist", link.target));
        };
        let anchor = anchor.filter(|anchor| !page.anchors.contains(*anchor))?;
        Some(format!("`{}`: the page has no heading `#{anchor}`", link.target))
    }
}

/// Returns the line number of a position.
fn line(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}
