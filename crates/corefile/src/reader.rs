//! Stream of the words of a Corefile, with all imports expanded.
//!
//! The reader has a stack of texts. An `import` pushes the imported texts. When they have been read, reading continues
//! after the `import`. The reader also substitutes variables, and limits how much text a small file can expand to.

use std::rc::Rc;

use crate::complaints::{self, Problems};
use crate::environment::{Endless, Substituted, substitute};
use crate::lex::{Kind, Word};
use crate::{FileId, Loader, Span};

/// Maximum nesting depth of imports. Real Corefiles have two levels: a file that imports a snippet.
pub(crate) const DEPTH_MAX: usize = 16;
/// Maximum number of words with all imports: as many as the largest Corefile has at eight bytes per word.
pub(crate) const WORDS_MAX: usize = 1 << 19;
/// Maximum length of all those words in bytes: four times the largest Corefile.
const BYTES_MAX: usize = 16 << 20;
/// Quotes of word processors, which people paste into Corefiles.
const TYPOGRAPHIC_QUOTES: [char; 6] = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}', '\u{201a}'];

/// Origin of an imported text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    File(FileId),
    Snippet(String),
}

/// Text to insert for an `import`.
#[derive(Clone)]
pub(crate) struct Text {
    pub(crate) origin: Origin,
    pub(crate) words: Rc<[Word]>,
}

/// Reason why a text cannot be inserted.
pub(crate) enum Runaway {
    /// The text is already being read. Contains the texts from its `import` to this one.
    Loop(Vec<Origin>),
    /// Imports are nested too deeply.
    TooDeep,
}

/// Properties of the next word, before it is taken.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    pub(crate) starts_line: bool,
}

pub(crate) struct Reader<'a> {
    pub(crate) loader: &'a dyn Loader,
    pub(crate) problems: Problems,
    /// Kind of the word taken last.
    pub(crate) previous: Kind,
    /// True if a diagnostic already explains why the text ends here: a limit was reached or a block is open.
    pub(crate) end_reported: bool,
    frames: Vec<Frame>,
    words_left: usize,
    bytes_left: usize,
}

struct Frame {
    text: Text,
    next: usize,
    depth: usize,
}

impl Frame {
    fn ahead(&self) -> Option<Ahead> {
        let word = self.text.words.get(self.next)?;
        Some(Ahead { kind: word.kind, span: word.token.span, starts_line: word.starts_line || self.next == 0 })
    }

    /// Returns true if reading has started. Texts that wait on the stack have not started.
    fn is_begun(&self) -> bool {
        self.next > 0
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(loader: &'a dyn Loader) -> Self {
        Reader {
            loader,
            problems: Problems::default(),
            previous: Kind::Plain,
            end_reported: false,
            frames: Vec::new(),
            words_left: WORDS_MAX,
            bytes_left: BYTES_MAX,
        }
    }

    /// Returns the next word, on any line.
    pub(crate) fn peek(&mut self) -> Option<Ahead> {
        while self.frames.last().is_some_and(|frame| frame.ahead().is_none()) {
            self.frames.pop();
        }
        self.frames.last()?.ahead()
    }

    /// Returns the next word if it is on the line of the word taken last.
    pub(crate) fn peek_on_line(&self) -> Option<Ahead> {
        self.frames.last()?.ahead().filter(|ahead| !ahead.starts_line)
    }

    /// Takes the next word and substitutes its variables.
    pub(crate) fn take(&mut self) -> Option<Word> {
        let mut word = self.take_as_written()?;
        let written = word.token.text.len();
        if word.token.text.contains(TYPOGRAPHIC_QUOTES) {
            self.problems.push(complaints::typographic_quote(word.token.span));
        }
        word.token.text = match substitute(word.token.text, self.loader) {
            Ok(Substituted { text, unset }) => {
                if let Some(name) = unset {
                    self.problems.push(complaints::unset_variable(word.token.span, &name));
                }
                text
            }
            Err(Endless(name)) => {
                self.problems.push(complaints::endless_variable(word.token.span, &name));
                format!("{{${name}}}")
            }
        };
        self.charge(word.token.text.len().saturating_sub(written), word.token.span);
        Some(word)
    }

    /// Takes the next word without substituting variables, as snippets store it.
    pub(crate) fn take_as_written(&mut self) -> Option<Word> {
        let Ahead { kind, span, .. } = self.peek()?;
        let frame = self.frames.last_mut()?;
        let word = frame.text.words.get(frame.next)?.clone();
        frame.next += 1;
        self.previous = kind;
        self.words_left = self.words_left.saturating_sub(1);
        self.charge(word.token.text.len(), span);
        Some(word)
    }

    /// Returns the words of the block that starts with the next word, without its braces. Returns `None` if it is not
    /// closed.
    pub(crate) fn balanced_words(&mut self) -> Option<Vec<Word>> {
        self.take_as_written()?;
        let (mut words, mut depth) = (Vec::new(), 1);
        loop {
            let word = self.take_as_written()?;
            match word.kind {
                Kind::Open => depth += 1,
                Kind::Close => depth -= 1,
                Kind::Import | Kind::Plain => {}
            }
            if depth == 0 {
                return Some(words);
            }
            words.push(word);
        }
    }

    /// Skips the block that starts with the next word.
    pub(crate) fn skip_block(&mut self) {
        let _ = self.balanced_words();
    }

    /// Inserts texts before the rest. The first of them is read first.
    pub(crate) fn splice(&mut self, texts: Vec<Text>) -> Result<(), Runaway> {
        let depth = self.frames.last().map_or(0, |frame| frame.depth + 1);
        if depth > DEPTH_MAX {
            return Err(Runaway::TooDeep);
        }
        let active: Vec<_> =
            self.frames.iter().filter(|frame| frame.is_begun()).map(|frame| &frame.text.origin).collect();
        for Text { origin, .. } in &texts {
            if let Some(first) = active.iter().position(|&begun| begun == origin) {
                let chain = active[first..].iter().copied().chain([origin]);
                return Err(Runaway::Loop(chain.cloned().collect()));
            }
        }
        let frames = texts.into_iter().rev().map(|text| Frame { text, next: 0, depth });
        self.frames.extend(frames);
        Ok(())
    }

    fn charge(&mut self, bytes: usize, span: Span) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if !self.end_reported && (self.words_left == 0 || self.bytes_left == 0) {
            self.problems.push(complaints::too_much_text(span));
            self.frames.clear();
            self.end_reported = true;
        }
    }
}
