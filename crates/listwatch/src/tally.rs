//! Number of objects in a replica, to compare with the number in the source.
//!
//! A source may lose events and still keep the watch open. The position of the watch then advances, and nothing else
//! shows that the replica differs from the source at this position. Comparing the number of objects there is cheap. It
//! detects lost additions and deletions. It does not detect lost updates, nor a loss of equally many additions and
//! deletions.

/// Number of objects at the position of a watch: those of its list, and what its events have added and removed since
/// then, whether the replica can use the objects or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// `None` if no list was counted.
    known: Option<u64>,
    question: Option<Question>,
}

/// Question to the source about a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Question {
    /// Number of objects at the position.
    known: Option<u64>,
    /// Number of objects added since the question, minus the number deleted.
    since: i64,
}

/// Outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The numbers are equal.
    Equal,
    /// Events are missing.
    Different {
        /// Number of objects that the replica knew.
        known: u64,
        /// Number of objects that the source had.
        counted: u64,
    },
    /// Nothing was known at the position, or a new list has begun since. What the source says is counted from, and
    /// events before it are not missed.
    Unknown,
}

impl Tally {
    /// Begins to count the objects of a list.
    pub const fn begin_list(&mut self) {
        *self = Tally { known: Some(0), question: None };
    }

    /// Records that the number of objects is not known.
    pub const fn forget(&mut self) {
        *self = Tally { known: None, question: None };
    }

    /// Adds objects, or removes them if the number is negative.
    pub fn add(&mut self, number: i64) {
        self.known = self.known.map(|known| known.saturating_add_signed(number));
        if let Some(question) = &mut self.question {
            question.since = question.since.saturating_add(number);
        }
    }

    /// Begins a question about the current position.
    pub const fn ask(&mut self) {
        self.question = Some(Question { known: self.known, since: 0 });
    }

    /// Ends a question with the number of objects that the source had at its position.
    pub fn answer(&mut self, counted: u64) -> Comparison {
        match self.question.take() {
            Some(Question { known: Some(known), .. }) if known == counted => Comparison::Equal,
            Some(Question { known: Some(known), .. }) => Comparison::Different { known, counted },
            Some(Question { known: None, since }) => {
                self.known = Some(counted.saturating_add_signed(since));
                Comparison::Unknown
            }
            None => Comparison::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_the_number_at_the_position_of_the_question() {
        let mut tally = Tally::default();
        tally.begin_list();
        tally.add(3);
        tally.ask();
        // What follows the question is not part of its answer.
        tally.add(-2);
        assert_eq!(tally.answer(3), Comparison::Equal);
        tally.ask();
        assert_eq!(tally.answer(2), Comparison::Different { known: 1, counted: 2 });
    }

    #[test]
    fn counts_from_the_answer_if_no_list_was_counted() {
        let mut tally = Tally::default();
        tally.ask();
        tally.add(1);
        assert_eq!(tally.answer(7), Comparison::Unknown);
        tally.ask();
        assert_eq!(tally.answer(8), Comparison::Equal);
    }

    #[test]
    fn a_list_ends_the_question_before_it() {
        let mut tally = Tally::default();
        tally.begin_list();
        tally.ask();
        tally.begin_list();
        assert_eq!(tally.answer(9), Comparison::Unknown);
        tally.ask();
        assert_eq!(tally.answer(0), Comparison::Equal);
        tally.ask();
        tally.forget();
        assert_eq!(tally.answer(9), Comparison::Unknown);
    }
}
