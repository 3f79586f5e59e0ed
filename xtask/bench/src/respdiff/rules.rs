//! Differences that are deliberate, from `rules.txt`, which describes its form.

use std::collections::BTreeSet;
use std::path::Path;

use crate::replay::explained::matches;
use xtask::Failed;

/// Path of the file in the project. It is read at each run, so that a new rule needs no build.
const FILE: &str = "xtask/bench/src/respdiff/rules.txt";
/// Prefix of a word that must be absent from a server block.
const ABSENT: char = '!';
/// Prefix of a pattern for all differences of a question together.
const TOGETHER: &str = "& ";
/// Prefix of a word that any server block of the Corefile may have.
const ANYWHERE: char = '~';

/// A pattern of a row.
pub(crate) struct Rule {
    /// Index of the row.
    row: usize,
    words: Vec<String>,
    /// In lower case, because names have letters of both cases.
    pattern: String,
    /// Number of questions with a difference that it explains.
    pub(crate) count: usize,
}

/// Row of docs/differences.md.
pub(crate) struct Row {
    /// Heading of the section.
    pub(crate) section: String,
    /// Start of the row.
    pub(crate) start: String,
    /// Path of the test that pins what Portolan does.
    pub(crate) test: String,
    /// Reason why a run may not need the rules of the row.
    pub(crate) seldom: Option<String>,
}

/// All rows with their rules.
pub(crate) struct Rules {
    pub(crate) rows: Vec<Row>,
    pub(crate) rules: Vec<Rule>,
}

/// Words of server blocks: those of the block that has a name, and those of all.
pub(crate) struct Words<'w> {
    pub(crate) own: &'w BTreeSet<String>,
    pub(crate) all: &'w BTreeSet<String>,
}

impl Rules {
    /// Parses the file.
    pub(crate) fn read() -> Result<Rules, Failed> {
        let mut rules = Rules { rows: Vec::new(), rules: Vec::new() };
        let text = String::from_utf8_lossy(&xtask::read_bytes(Path::new(FILE))?).into_owned();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            rules.read_line(line).ok_or_else(|| format!("rules.txt: `{line}` has no known form"))?;
        }
        Ok(rules)
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        if let Some(row) = line.strip_prefix("= ") {
            let (section, start) = row.split_once(" | ")?;
            self.rows.push(Row {
                section: section.to_owned(),
                start: start.to_owned(),
                test: String::new(),
                seldom: None,
            });
            return Some(());
        }
        let row = self.rows.len().checked_sub(1)?;
        if let Some(test) = line.strip_prefix("test: ") {
            test.clone_into(&mut self.rows[row].test);
        } else if let Some(reason) = line.strip_prefix("seldom: ") {
            self.rows[row].seldom = Some(reason.to_owned());
        } else {
            let (words, pattern) = line.split_once(" | ")?;
            let words = words.split(' ').filter(|word| *word != "*").map(str::to_owned).collect();
            self.rules.push(Rule { row, words, pattern: pattern.to_lowercase(), count: 0 });
        }
        Some(())
    }

    /// Returns the differences of a question that no rule explains, and the rules that explain the others. Counts those
    /// rules if they explain all differences.
    pub(crate) fn unexplained(
        &mut self,
        words: &Words,
        question: &str,
        differences: Vec<String>,
    ) -> (Vec<String>, Vec<usize>) {
        if differences.is_empty() {
            return (differences, Vec::new());
        }
        let applicable: Vec<usize> = (0..self.rules.len()).filter(|&at| self.rules[at].applies(words)).collect();
        let all = format!("{question}: {}", differences.join("; ")).to_lowercase();
        let together =
            |&&at: &&usize| self.rules[at].pattern.strip_prefix(TOGETHER).is_some_and(|pattern| matches(pattern, &all));
        if let Some(&at) = applicable.iter().find(together) {
            self.rules[at].count += 1;
            return (Vec::new(), vec![at]);
        }
        let mut used = BTreeSet::new();
        let mut left = differences;
        left.retain(|difference| {
            let text = format!("{question}: {difference}").to_lowercase();
            let rule = applicable.iter().find(|&&at| matches(&self.rules[at].pattern, &text));
            rule.map(|&at| used.insert(at)).is_none()
        });
        if left.is_empty() {
            used.iter().for_each(|&at| self.rules[at].count += 1);
        }
        (left, used.into_iter().collect())
    }

    /// Returns the rows, each with the number of questions that its rules explain.
    pub(crate) fn counts(&self) -> Vec<(&Row, usize)> {
        let count = |row| self.rules.iter().filter(|rule| rule.row == row).map(|rule| rule.count).sum();
        self.rows.iter().enumerate().map(|(at, row)| (row, count(at))).collect()
    }

    /// Returns the patterns that explained nothing and say no reason.
    pub(crate) fn unused(&self) -> Vec<String> {
        let rules = self.rules.iter().filter(|rule| rule.count == 0 && self.rows[rule.row].seldom.is_none());
        rules.map(ToString::to_string).collect()
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} | {}", self.words.join(" "), self.pattern)
    }
}

impl Rule {
    fn applies(&self, words: &Words) -> bool {
        self.words.iter().all(|word| match (word.strip_prefix(ABSENT), word.strip_prefix(ANYWHERE)) {
            (Some(absent), _) => !words.own.contains(absent),
            (_, Some(anywhere)) => words.all.contains(anywhere),
            _ => words.own.contains(word),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first cells of the rows of a section of docs/differences.md.
    fn cells(text: &str, section: &str) -> Vec<String> {
        let lines = text.lines().skip_while(|line| line.strip_prefix("## ") != Some(section)).skip(1);
        let lines = lines.take_while(|line| !line.starts_with("## "));
        lines.filter_map(|line| line.strip_prefix("| ")?.split(" | ").next().map(str::to_owned)).collect()
    }

    #[test]
    fn every_rule_names_a_row_of_the_differences_and_a_test() {
        let text = std::fs::read_to_string(xtask::root().join("docs/differences.md")).unwrap();
        let rules = Rules::read().unwrap();
        for (at, row) in rules.rows.iter().enumerate() {
            let found = cells(&text, &row.section).iter().filter(|cell| cell.starts_with(&row.start)).count();
            assert_eq!(found, 1, "{} | {}: number of rows that start with this", row.section, row.start);
            assert!(rules.rules.iter().any(|rule| rule.row == at), "{}: no rules", row.start);
            let test = xtask::root().join(&row.test);
            assert!(test.is_file(), "{}: the test `{}` does not exist", row.start, row.test);
        }
    }

    #[test]
    fn words_select_server_blocks() {
        let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect::<BTreeSet<_>>();
        let (own, all) = (words(&["file", "cache"]), words(&["file", "cache", "hosts"]));
        let words = Words { own: &own, all: &all };
        let applies = |list: &[&str]| {
            let list = list.iter().map(|&word| word.to_owned()).collect();
            Rule { row: 0, words: list, pattern: String::new(), count: 0 }.applies(&words)
        };
        assert!(applies(&["file", "~hosts", "!hosts"]));
        assert!(!applies(&["hosts"]) && !applies(&["!cache"]) && !applies(&["~acl"]));
    }
}
