//! Parser for manifest files: YAML with several documents, JSON, and lists in both.
//!
//! YAML is parsed by serde-saphyr. It is maintained, and kube already depends on it for kubeconfigs.

use cluster::Kind;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::mesh::MeshManifest;
use super::model::{EndpointSlice, Endpoints, Head, Namespace, Pod, Service, ServiceImport};

/// Maximum number of nodes and of events in one YAML document. A list of a hundred thousand objects has fewer.
const YAML_MAX: usize = 20_000_000;

/// Object of a kind that answers depend on.
#[derive(Clone, Debug)]
pub(crate) enum Manifest {
    Namespace(Namespace),
    Service(Service),
    EndpointSlice(EndpointSlice),
    Endpoints(Endpoints),
    Pod(Pod),
    ServiceImport(ServiceImport),
    Mesh(MeshManifest),
}

/// Syntax or type error in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Line number, starting at 1.
    pub(crate) line: usize,
    /// Description on one line.
    pub(crate) text: String,
}

/// Parses a file of YAML documents and skips those of other kinds.
///
/// # Errors
/// The first error in the file.
pub(crate) fn yaml(text: &str) -> Result<Vec<Manifest>, Problem> {
    let mut manifests = Vec::new();
    for (first_line, document) in documents(text) {
        let problem = |error: &serde_saphyr::Error| {
            let line = error.location().map_or(1, |location| usize::try_from(location.line()).unwrap_or(1));
            Problem { line: first_line + line.max(1) - 1, text: one_line(&error.without_snippet().to_string()) }
        };
        if let Some(head) = read_yaml::<Option<Head>>(document).map_err(|error| problem(&error))? {
            let read = Yaml { document, first_line };
            read.object(&head, &mut manifests).map_err(|error| match error {
                YamlError::Yaml(error) => problem(&error),
                YamlError::Item(problem) => problem,
            })?;
        }
    }
    Ok(manifests)
}

/// Parses a file of concatenated JSON objects.
///
/// # Errors
/// The first error in the file.
pub(crate) fn json(text: &str) -> Result<Vec<Manifest>, Problem> {
    let mut manifests = Vec::new();
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    while let Some(document) = documents.next() {
        let document = document.map_err(|error| Problem { line: error.line(), text: without_place(&error) })?;
        let begin = documents.byte_offset() - document.get().len();
        json_object(text, begin, document.get(), "", &mut manifests)?;
    }
    Ok(manifests)
}

/// YAML document.
struct Yaml<'a> {
    document: &'a str,
    first_line: usize,
}

enum YamlError {
    Yaml(serde_saphyr::Error),
    Item(Problem),
}

impl From<serde_saphyr::Error> for YamlError {
    fn from(error: serde_saphyr::Error) -> YamlError {
        YamlError::Yaml(error)
    }
}

impl Yaml<'_> {
    fn object(&self, head: &Head, manifests: &mut Vec<Manifest>) -> Result<(), YamlError> {
        match Known::of(head) {
            Known::Namespace => manifests.push(Manifest::Namespace(read_yaml(self.document)?)),
            Known::Service => manifests.push(Manifest::Service(read_yaml(self.document)?)),
            Known::EndpointSlice => manifests.push(Manifest::EndpointSlice(read_yaml(self.document)?)),
            Known::Endpoints => manifests.push(Manifest::Endpoints(read_yaml(self.document)?)),
            Known::Pod => manifests.push(Manifest::Pod(read_yaml(self.document)?)),
            Known::ServiceImport => manifests.push(Manifest::ServiceImport(read_yaml(self.document)?)),
            Known::Mesh(kind) => manifests.push(Manifest::Mesh(self.of_mesh(kind)?)),
            Known::List(kind) => self.list(kind, manifests)?,
            Known::Other => {}
        }
        Ok(())
    }

    fn of_mesh(&self, kind: Kind) -> Result<MeshManifest, YamlError> {
        let problem = |error: serde_json::Error| Problem { line: self.first_line, text: error.to_string() };
        MeshManifest::new(kind, read_yaml(self.document)?).map_err(|error| YamlError::Item(problem(error)))
    }

    fn list(&self, kind: &str, manifests: &mut Vec<Manifest>) -> Result<(), YamlError> {
        let list: List<Value> = read_yaml(self.document)?;
        for (at, item) in list.items.unwrap_or_default().into_iter().enumerate() {
            let problem = |error: serde_json::Error| {
                let text = format!("item {} of the list: {error}", at + 1);
                YamlError::Item(Problem { line: self.first_line, text })
            };
            let head = Head::deserialize(&item).map_err(problem)?;
            value(&head.of(kind), item, manifests).map_err(problem)?;
        }
        Ok(())
    }
}

fn read_yaml<'a, T: Deserialize<'a>>(document: &'a str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: YAML_MAX, max_nodes: YAML_MAX },
        with_snippet: false,
        // Only `true` and `false` are booleans (YAML 1.2): the value of a label may be `y`.
        strict_booleans: true,
        emit_comments: false,
    };
    serde_saphyr::from_str_with_options(document, options)
}

/// List of objects, with or without a type.
#[derive(Deserialize)]
struct List<T> {
    items: Option<Vec<T>>,
}

/// Kind of a document.
enum Known<'a> {
    Namespace,
    Service,
    EndpointSlice,
    Endpoints,
    Pod,
    ServiceImport,
    Mesh(Kind),
    /// List with this item kind, which items without a kind of their own have. Empty for kind `List`.
    List(&'a str),
    Other,
}

impl<'a> Known<'a> {
    fn of(head: &'a Head) -> Known<'a> {
        match (head.api_version.as_str(), head.kind.as_str()) {
            ("v1", "Namespace") => Known::Namespace,
            ("v1", "Service") => Known::Service,
            ("v1", "Endpoints") => Known::Endpoints,
            ("v1", "Pod") => Known::Pod,
            ("discovery.k8s.io/v1", "EndpointSlice") => Known::EndpointSlice,
            (version, "ServiceImport") if version.starts_with("multicluster.x-k8s.io/") => Known::ServiceImport,
            (version, kind) if let Some(kind) = MeshManifest::kind(version, kind) => Known::Mesh(kind),
            (_, kind) => kind.strip_suffix("List").map_or(Known::Other, Known::List),
        }
    }
}

impl Head {
    /// Returns the kind and version of an item in a list of this kind. Items of typed lists do not repeat them.
    fn of(self, kind: &str) -> Head {
        if !self.kind.is_empty() || kind.is_empty() {
            return self;
        }
        let api_version = match kind {
            "EndpointSlice" => "discovery.k8s.io/v1",
            "ServiceImport" => "multicluster.x-k8s.io/v1alpha1",
            "ServiceEntry" | "WorkloadEntry" => "networking.istio.io/v1",
            _ => "v1",
        };
        Head { api_version: api_version.to_owned(), kind: kind.to_owned() }
    }
}

fn value(head: &Head, value: Value, manifests: &mut Vec<Manifest>) -> Result<(), serde_json::Error> {
    manifests.push(match Known::of(head) {
        Known::Namespace => Manifest::Namespace(serde_json::from_value(value)?),
        Known::Service => Manifest::Service(serde_json::from_value(value)?),
        Known::EndpointSlice => Manifest::EndpointSlice(serde_json::from_value(value)?),
        Known::Endpoints => Manifest::Endpoints(serde_json::from_value(value)?),
        Known::Pod => Manifest::Pod(serde_json::from_value(value)?),
        Known::ServiceImport => Manifest::ServiceImport(serde_json::from_value(value)?),
        Known::Mesh(kind) => Manifest::Mesh(MeshManifest::new(kind, value)?),
        // A list inside a list is not valid in Kubernetes.
        Known::List(_) | Known::Other => return Ok(()),
    });
    Ok(())
}

/// Parses an object that starts at byte `begin` of `text`. `kind` is the item kind of the enclosing list.
fn json_object(
    text: &str,
    begin: usize,
    object: &str,
    kind: &str,
    manifests: &mut Vec<Manifest>,
) -> Result<(), Problem> {
    let problem = |error: serde_json::Error| {
        let lines_before = text.as_bytes().get(..begin).unwrap_or_default().iter().filter(|octet| **octet == b'\n');
        Problem { line: lines_before.count() + error.line().max(1), text: without_place(&error) }
    };
    let head = serde_json::from_str::<Head>(object).map_err(problem)?.of(kind);
    manifests.push(match Known::of(&head) {
        Known::Namespace => Manifest::Namespace(serde_json::from_str(object).map_err(problem)?),
        Known::Service => Manifest::Service(serde_json::from_str(object).map_err(problem)?),
        Known::EndpointSlice => Manifest::EndpointSlice(serde_json::from_str(object).map_err(problem)?),
        Known::Endpoints => Manifest::Endpoints(serde_json::from_str(object).map_err(problem)?),
        Known::Pod => Manifest::Pod(serde_json::from_str(object).map_err(problem)?),
        Known::ServiceImport => Manifest::ServiceImport(serde_json::from_str(object).map_err(problem)?),
        Known::Mesh(kind) => {
            let value = serde_json::from_str(object).map_err(problem)?;
            Manifest::Mesh(MeshManifest::new(kind, value).map_err(problem)?)
        }
        Known::List(kind) => {
            let list: List<&RawValue> = serde_json::from_str(object).map_err(problem)?;
            for item in list.items.unwrap_or_default() {
                let begin = begin + (item.get().as_ptr() as usize - object.as_ptr() as usize);
                json_object(text, begin, item.get(), kind, manifests)?;
            }
            return Ok(());
        }
        Known::Other => return Ok(()),
    });
    Ok(())
}

/// Splits a text into documents, each with the number of its first line. The separator is a line `---` or `...`. In
/// manifests no other line starts with these.
fn documents(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = Some((1, text));
    std::iter::from_fn(move || {
        let (first_line, text) = rest.take()?;
        let mut length = 0;
        for (at, line) in text.split_inclusive('\n').enumerate() {
            let begin = length;
            length += line.len();
            if is_separator(line) {
                rest = Some((first_line + at + 1, &text[length..]));
                return Some((first_line, &text[..begin]));
            }
        }
        Some((first_line, text))
    })
}

fn is_separator(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.trim_start().is_empty() || rest.trim_start().starts_with('#'))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the message of serde_json without its position, which is relative to the object instead of the file.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(text, _)| text.to_owned())
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
