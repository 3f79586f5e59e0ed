//! Key and limits of a pool, which its connections have too.

use core::time::Duration;

use super::slots::Key;

/// Limits of pooled connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Idle time after which a connection is closed.
    pub idle_max: Duration,
    /// Age after which a connection is not reused; zero for no limit.
    pub age_max: Duration,
    /// Maximum number of idle connections; zero for no limit.
    pub kept_max: usize,
}

/// Key of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolId(pub(super) Key);
