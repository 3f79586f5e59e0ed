//! Text whose hash tells versions of a Corefile apart: the same as CoreDNS's, so that the log line and the metric of
//! *reload* show the same value for the same file.
//!
//! CoreDNS hashes the JSON that Go makes of its tokens: for each server block the keys, and by directive, sorted, each
//! word with its file and line. Words of the main file have no file; those of imported files have its absolute path.
//!
//! ```text
//! [{"Keys":[".:53"],"Tokens":{"errors":[{"File":"","Line":2,"Text":"errors"}]}}]
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::{Corefile, Directive, ServerBlock, Span};

impl Corefile {
    /// The tokens as JSON, line numbers included: the same text for two versions of a file whose edits (blanks,
    /// comments) leave each token on its line. `absolute` makes the path of an imported file absolute.
    #[must_use]
    pub fn fingerprint_text(&self, absolute: &dyn Fn(&Path) -> PathBuf) -> String {
        let mut print = Fingerprint { corefile: self, absolute, text: "[".to_owned() };
        for (at, block) in self.blocks.iter().enumerate() {
            print.text.push_str(if at == 0 { "" } else { "," });
            print.block(block);
        }
        print.text + "]"
    }
}

struct Fingerprint<'a> {
    corefile: &'a Corefile,
    absolute: &'a dyn Fn(&Path) -> PathBuf,
    text: String,
}

impl<'a> Fingerprint<'a> {
    fn block(&mut self, block: &'a ServerBlock) {
        self.text.push_str("{\"Keys\":[");
        for (at, key) in block.keys.iter().enumerate() {
            self.text.push_str(if at == 0 { "" } else { "," });
            quote(&mut self.text, &key.text);
        }
        self.text.push_str("],\"Tokens\":{");
        let mut by_name: BTreeMap<&str, Vec<&Directive>> = BTreeMap::new();
        for directive in &block.directives {
            by_name.entry(&directive.name.text).or_default().push(directive);
        }
        for (at, (name, directives)) in by_name.into_iter().enumerate() {
            self.text.push_str(if at == 0 { "" } else { "," });
            quote(&mut self.text, name);
            self.text.push_str(":[");
            directives.into_iter().for_each(|directive| self.directive(directive));
            // Each token ends with a comma.
            self.text.pop();
            self.text.push(']');
        }
        self.text.push_str("}}");
    }

    fn directive(&mut self, directive: &Directive) {
        self.token(&directive.name.text, directive.name.span);
        directive.args.iter().for_each(|word| self.token(&word.text, word.span));
        let Some(block) = &directive.block else { return };
        self.token("{", block.open);
        block.lines.iter().flat_map(|line| &line.words).for_each(|word| self.token(&word.text, word.span));
        self.token("}", block.close);
    }

    fn token(&mut self, text: &str, span: Span) {
        let sources = &self.corefile.sources;
        let is_main = sources.first() == Some(span.file);
        let file = if is_main { PathBuf::new() } else { (self.absolute)(sources.name(span.file)) };
        self.text.push_str("{\"File\":");
        quote(&mut self.text, &file.to_string_lossy());
        let _ = write!(self.text, ",\"Line\":{},\"Text\":", sources.line(span));
        quote(&mut self.text, text);
        self.text.push_str("},");
    }
}

/// A JSON string as Go's `encoding/json` writes it: characters that matter to HTML and JavaScript are escaped too.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
