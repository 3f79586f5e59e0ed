//! Answers AXFR with several messages of one record each, as *transfer* does.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Continuation, Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::{MessageBuf, Owner, Section, Type};

pub static MANIFEST: Manifest<u8> =
    Manifest::new("stream", "answers in several messages", || 0, build).arguments("stream COUNT", |count, args| {
        *count = args.number(1..=u8::MAX)?;
        Ok(())
    });

fn build(counts: Vec<u8>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(counts.into_iter().next().map(|count| Part::new(Stream(count), Hooks::DOWN)))
}

struct Stream(u8);

impl Plugin for Stream {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        if query.qtype != Type::AXFR {
            return Verdict::Pass;
        }
        response.set_authoritative(true);
        push(&mut response.message, 1);
        response.continue_with(Box::new(Left { next: 2, count: self.0 }));
        Verdict::Done
    }
}

struct Left {
    next: u8,
    count: u8,
}

impl Continuation for Left {
    fn next(&mut self, message: &mut MessageBuf) -> bool {
        let is_there = self.next <= self.count;
        if is_there {
            push(message, self.next);
            self.next += 1;
        }
        is_there
    }
}

fn push(message: &mut MessageBuf, number: u8) {
    message.push_a(Section::Answer, Owner::Question, 60, [192, 0, 2, number].into());
}
