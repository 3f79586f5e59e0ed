//! Kubernetes manifests as text → objects: YAML with several documents, JSON, and lists in both, with likely mistakes.
//!
//! The crate opens no file. It is apart from `kubeapi` because the parsers of so many types take long to compile.

#![allow(missing_docs, reason = "fields have the names and the meaning of the Kubernetes API")]

mod fields;
mod kinds;
mod mesh;
mod mistakes;
mod model;
mod parse;
mod port;

pub use mesh::MeshManifest;
pub use model::*;
pub use parse::*;
pub use port::*;
