//! Words of a file as they are written: without substituted variables and imports, also where the text is no valid
//! Corefile.

use crate::lex::Lexer;
use crate::{FileId, Sources, Token};

/// Returns the words of a file, in lines. A brace is a word. A quoted word that spans lines belongs to the line of its
/// start.
#[must_use]
pub fn lines_of_words(sources: &Sources, file: FileId) -> Vec<Vec<Token>> {
    let mut lines: Vec<Vec<Token>> = Vec::new();
    for word in Lexer::new(file, sources.text(file)) {
        match lines.last_mut().filter(|_| !word.starts_line) {
            Some(line) => line.push(word.token),
            None => lines.push(vec![word.token]),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn splits_files_into_lines_of_words() {
        let mut sources = Sources::default();
        let file = sources.add(Path::new("f"), "a { # b\n\n c \"d\ne\" f\ng \"h i".to_owned());
        let lines = lines_of_words(&sources, file);
        let texts: Vec<Vec<&str>> = lines.iter().map(|line| line.iter().map(|word| &*word.text).collect()).collect();
        assert_eq!(texts, [vec!["a", "{"], vec!["c", "d\ne", "f"], vec!["g", "h i"]]);
        assert_eq!(sources.slice(lines[2][1].span), "\"h i");
        assert_eq!(sources.ids().collect::<Vec<_>>(), [file]);
    }
}
