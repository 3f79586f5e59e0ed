//! Section of the changelog for a version.

use crate::Failed;

/// Title of the changes that no release has yet.
const UNRELEASED: &str = "Unreleased";

/// Returns the text of the section `## VERSION`, or of `## Unreleased` for a version with a suffix, without its title.
pub(crate) fn section(changelog: &str, version: &str) -> Result<String, Failed> {
    let title = if version.contains('-') { UNRELEASED } else { version };
    let mut lines = changelog.lines().skip_while(|line| !is_title(line, title));
    if lines.next().is_none() {
        return Err(format!("CHANGELOG.md has no section `## {title}`; rename `## {UNRELEASED}` for a release"));
    }
    let text: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let text = text.join("\n").trim().to_owned();
    if text.is_empty() { Err(format!("section `## {title}` of CHANGELOG.md is empty")) } else { Ok(text + "\n") }
}

/// Returns true for `## 1.2.3`, `## [1.2.3]` and both with a date after ` - `.
fn is_title(line: &str, title: &str) -> bool {
    let Some(rest) = line.strip_prefix("## ") else { return false };
    let name = rest.split(" - ").next().unwrap_or_default();
    name.trim().trim_start_matches('[').trim_end_matches(']') == title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_section_of_a_version() {
        let changelog =
            "# Changelog\n\n## Unreleased\n\n- new\n\n## [1.2.0] - 2026-01-02\n\n### Added\n\n- old\n\n## 1.1.0\n";
        let message = |version| section(changelog, version).unwrap_err();
        assert_eq!(section(changelog, "1.2.0").unwrap(), "### Added\n\n- old\n");
        assert_eq!(section(changelog, "1.3.0-rc.1").unwrap(), "- new\n");
        assert!(message("1.3.0").contains("no section `## 1.3.0`"));
        assert!(message("1.1.0").contains("empty"));
        assert!(message("1.2").contains("no section"));
    }
}
