//! Which upstream is asked, what it is asked, and whether it is well: as values and decisions, without a socket, a clock
//! or a runtime. Whoever has those asks [`Attempts`] what to do next and says what came of it.

mod attempts;
mod health;
mod policy;
mod query;
mod reply;
mod target;

pub use attempts::{Attempts, Limits, Next, Verdict};
pub use health::Health;
pub use policy::Policy;
pub use query::{answered_with, outgoing, probe};
pub use reply::{Reply, readable};
pub use target::{Protocol, Target, TargetError, Unlisted, nameservers};
