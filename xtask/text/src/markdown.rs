//! Generated blocks in pages that are written by hand.

use std::path::Path;

use xtask::{Failed, root};

/// Reads a file of the project, or one with an absolute path.
pub(crate) fn read(path: &Path) -> Result<String, Failed> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{}: {error}", path.display()))
}

/// Replaces the block between `<!-- NAME -->` and `<!-- /NAME -->`.
pub(crate) fn with_block(text: &str, name: &str, block: &str) -> Result<String, Failed> {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let missing =
        || format!("block `{}` … `{close}` is missing; add both lines where the block belongs", open.trim_end());
    let (before, rest) = text.split_once(&open).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&close).ok_or_else(missing)?;
    Ok(format!("{before}{open}\n{}\n{close}{after}", block.trim_end().to_owned() + "\n"))
}

/// Escapes text for a table cell.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_a_block_between_its_markers() {
        let text = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n";
        assert_eq!(with_block(text, "x", "new\n"), Ok("a\n<!-- x -->\n\nnew\n\n<!-- /x -->\nb\n".to_owned()));
        assert!(with_block(text, "y", "new").is_err());
    }
}
