//! The plugins of this program.

pub mod greet;
