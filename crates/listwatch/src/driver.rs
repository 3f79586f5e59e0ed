//! Driver: performs the actions of a [`Machine`] on a [`Source`].

use core::convert::Infallible;
use core::time::Duration;

use host::Instant;

use crate::event::{Action, Event, Failure, Notice, Received, Request};
use crate::machine::{Earlier, Machine};
use crate::policy::Policy;

/// Collection that can be listed and watched.
///
/// It holds at most one response. [`Source::open`] replaces it. A source applies the objects that it reads itself, and
/// completes a list only at [`Notice::Listed`].
#[allow(async_fn_in_trait, reason = "sources run on the thread that drives them, so that no bounds are needed")]
pub trait Source {
    /// Point in the history of the collection.
    type Position: Clone;
    /// Start of a page.
    type Cursor: Clone;
    /// Error of a request.
    type Error;

    /// Sends a request and waits until the response begins.
    async fn open(&mut self, request: Request<Self::Position, Self::Cursor>) -> Result<(), Self::Error>;

    /// Reads and applies the next part of the response. Fails if nothing arrives for `silence`.
    async fn read(&mut self, silence: Duration) -> Result<Received<Self::Position, Self::Cursor>, Self::Error>;

    /// Sleeps.
    async fn sleep(&mut self, pause: Duration);

    /// Time since any fixed moment.
    fn now(&self) -> Instant;

    /// Random number from 0 to 1.
    fn jitter(&mut self) -> f64;

    /// Classifies an error.
    fn classify(&self, error: &Self::Error) -> Failure;

    /// Handles a notice. `error` is the error that caused it, or `None` if a response ended too early.
    fn notify(&mut self, notice: Notice, error: Option<&Self::Error>);
}

/// Lists and watches until dropped.
pub async fn run<S: Source>(source: &mut S, policy: Policy) -> Infallible {
    let mut machine = Machine::new(policy);
    let action = machine.start(source.now());
    drive(source, machine, action).await
}

/// Continues the watch of an earlier process whose objects are known, until dropped. If they are not complete, it
/// begins with a list that is not older than they are.
pub async fn resume<S: Source>(source: &mut S, policy: Policy, earlier: Earlier<S::Position>) -> Infallible {
    let mut machine = Machine::new(policy);
    let action = machine.resume(earlier, source.now());
    machine.take_notices().into_iter().for_each(|notice| source.notify(notice, None));
    drive(source, machine, action).await
}

type Driven<S> = Machine<<S as Source>::Position, <S as Source>::Cursor>;

async fn drive<S: Source>(
    source: &mut S,
    mut machine: Driven<S>,
    mut action: Action<S::Position, S::Cursor>,
) -> Infallible {
    loop {
        let (event, error) = perform(source, action).await;
        let jitter = source.jitter();
        let step = machine.on(event, source.now(), jitter);
        step.notices.into_iter().for_each(|notice| source.notify(notice, error.as_ref()));
        action = step.action;
    }
}

/// Event that an action led to, with the error behind it.
type Outcome<S> = (Event<<S as Source>::Position, <S as Source>::Cursor>, Option<<S as Source>::Error>);

async fn perform<S: Source>(source: &mut S, action: Action<S::Position, S::Cursor>) -> Outcome<S> {
    match action {
        Action::Open(request) => match source.open(request).await {
            Ok(()) => (Event::Opened, None),
            Err(error) => (Event::OpenFailed(source.classify(&error)), Some(error)),
        },
        Action::Read { silence } => match source.read(silence).await {
            Ok(received) => (Event::Read(received), None),
            Err(error) => (Event::ReadFailed(source.classify(&error)), Some(error)),
        },
        Action::Sleep(pause) => {
            source.sleep(pause).await;
            (Event::Woke, None)
        }
    }
}
