//! Examples of documentation pages: fenced blocks, commands with their output, and the comparison of outputs.

/// Lines of `portolan status` that depend on the machine and on time: only their first word is compared.
const VOLATILE: [&str; 4] = ["Answers", "Upstreams", "Cache", "Limits"];

/// Fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// Word after the fence, such as `console`.
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// Returns the fenced blocks of a page in order. Fences are three backticks or three tildes.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let (mut all, mut fence): (Vec<Block>, Option<&str>) = (Vec::new(), None);
    for line in page.lines() {
        match fence {
            None => {
                fence = ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence));
                let kind = fence.map(|fence| line[fence.len()..].trim().to_owned());
                all.extend(kind.map(|kind| Block { kind, text: String::new() }));
            }
            Some(open) if line == open => fence = None,
            Some(_) => all.last_mut().expect("an open block").text.extend([line, "\n"]),
        }
    }
    all
}

/// Returns the commands of the `console` blocks of a page, each with the text that it prints.
pub(crate) fn console(page: &str) -> Vec<(String, String)> {
    blocks(page).iter().filter(|block| block.kind == "console").flat_map(|block| commands(&block.text)).collect()
}

/// Returns the commands of a block, each with the text that it prints.
pub(crate) fn commands(block: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push((command.to_owned(), String::new())),
            (None, Some((_, printed))) => printed.extend([line, "\n"]),
            (None, None) => panic!("output without a command: {line}"),
        }
    }
    all
}

/// Returns true if a text matches a pattern, in which `*` is any text. Blanks may differ.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (words(pattern), words(text));
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let found = if is_last { rest.ends_with(part).then(|| rest.len() - part.len()) } else { rest.find(part) };
        let Some(start) = found else { return false };
        rest = &rest[start + part.len()..];
    }
    rest.is_empty()
}

/// Joins the words of a text with single blanks.
pub(crate) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the lines of a text without what differs between runs.
pub(crate) fn normalized(text: &str) -> Vec<String> {
    text.lines().map(normalized_line).collect()
}

fn normalized_line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    if let Some(first) = words.first().filter(|first| VOLATILE.contains(first)) {
        return (*first).to_owned();
    }
    let mut all: Vec<String> = Vec::new();
    for word in words {
        let word = match all.last().map(String::as_str) {
            Some("host" | "sha") => "X".to_owned(),
            Some("N") if ["µs", "ms", "s"].contains(&word) => "s".to_owned(),
            _ => without_numbers(word),
        };
        all.push(word);
    }
    all.join(" ")
}

/// Replaces numbers, addresses and times in a word by `N`.
fn without_numbers(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some(start) = rest.find(digits) {
        let number = &rest[start..];
        let end =
            number.find(|letter: char| !letter.is_ascii_digit() && !".:".contains(letter)).unwrap_or(number.len());
        let end = number[..end].trim_end_matches(['.', ':']).len();
        text.push_str(&rest[..start]);
        text.push('N');
        rest = &number[end..];
    }
    text + rest
}

fn digits(letter: char) -> bool {
    letter.is_ascii_digit()
}
