//! Parser for manifest files: YAML with several documents, JSON, and lists in both.
//!
//! YAML is parsed by serde-saphyr. It is maintained, and kube already depends on it for kubeconfigs.

use std::borrow::Cow;

use cluster::Kind;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use serde_saphyr::{Localizer, Location, Spanned, UserMessageFormatter};

use super::mesh::MeshManifest;
use super::mistakes;
use super::model::{EndpointSlice, Endpoints, Head, Namespace, Pod, Service, ServiceImport, Text};

/// Maximum number of nodes and of events in one YAML document. A list of a hundred thousand objects has fewer.
const YAML_MAX: usize = 20_000_000;
/// Maximum number of warnings per file to keep, since a template may repeat one mistake for each object.
const WARNINGS_MAX: usize = 10;

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

/// Content of a file.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) manifests: Vec<Manifest>,
    /// Likely mistakes. The rest of the file is valid.
    pub(crate) warnings: Vec<ManifestError>,
    /// Number of further warnings.
    pub(crate) more_warnings: usize,
}

/// Error or likely mistake in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ManifestError {
    /// Line number in the file, starting at 1.
    pub(crate) line: usize,
    /// Description on one line, without a line number.
    pub(crate) text: String,
}

impl core::fmt::Display for ManifestError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "{}: {}", self.line, self.text)
    }
}

impl core::error::Error for ManifestError {}

/// Parses a file of YAML documents and skips those of other kinds.
///
/// # Errors
/// The first error in the file.
pub(crate) fn yaml(text: &str) -> Result<Parsed, ManifestError> {
    let mut parsed = Parsed::default();
    for (first_line, text) in documents(text) {
        let document = Document { text, first_line };
        let Some(head) = document.read::<Option<Head>>()? else { continue };
        let Known::List(kind) = Known::of(&head) else {
            parsed.add(&head, &document)?;
            continue;
        };
        let list: List<Spanned<Value>> = document.read()?;
        for item in list.items.unwrap_or_default() {
            let item = Item { value: item.value, line: document.line(line_of(item.referenced)) };
            parsed.add(&item.read::<Head>()?.of(kind), &item)?;
        }
    }
    Ok(parsed)
}

/// Parses a file of concatenated JSON objects.
///
/// # Errors
/// The first error in the file.
pub(crate) fn json(text: &str) -> Result<Parsed, ManifestError> {
    let mut parsed = Parsed::default();
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    while let Some(document) = documents.next() {
        let object = document.map_err(|error| ManifestError { line: error.line(), text: without_place(&error) })?.get();
        let begin = documents.byte_offset() - object.len();
        parsed.add_json(&Json { text, begin, object }, "")?;
    }
    Ok(parsed)
}

impl Parsed {
    fn add(&mut self, head: &Head, object: &impl Source) -> Result<(), ManifestError> {
        let manifest = match Known::of(head) {
            Known::Namespace => Manifest::Namespace(object.read()?),
            Known::Service => {
                let service = object.read()?;
                mistakes::of_service(&service).for_each(|(line, text)| self.warn(object, line, text));
                Manifest::Service(service)
            }
            Known::EndpointSlice => Manifest::EndpointSlice(object.read()?),
            Known::Endpoints => Manifest::Endpoints(object.read()?),
            Known::Pod => Manifest::Pod(object.read()?),
            Known::ServiceImport => Manifest::ServiceImport(object.read()?),
            Known::Mesh(kind) => Manifest::Mesh(
                MeshManifest::new(kind, object.read()?)
                    .map_err(|error| ManifestError { line: object.line(0), text: without_place(&error) })?,
            ),
            // A list inside a list is not valid in Kubernetes.
            Known::List(_) => return Ok(()),
            Known::Other => {
                if let Some(text) = mistakes::of_head(head) {
                    self.warn(object, head.kind.line, text);
                }
                return Ok(());
            }
        };
        self.manifests.push(manifest);
        Ok(())
    }

    fn warn(&mut self, object: &impl Source, line: usize, text: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(ManifestError { line: object.line(line), text });
        } else {
            self.more_warnings += 1;
        }
    }

    /// Adds an object. `kind` is the item kind of the enclosing list.
    fn add_json(&mut self, json: &Json<'_>, kind: &str) -> Result<(), ManifestError> {
        let head = json.read::<Head>()?.of(kind);
        let Known::List(kind) = Known::of(&head) else { return self.add(&head, json) };
        let list: List<&RawValue> = serde_json::from_str(json.object).map_err(|error| json.error(&error))?;
        for item in list.items.unwrap_or_default() {
            let begin = json.begin + (item.get().as_ptr() as usize - json.object.as_ptr() as usize);
            self.add_json(&Json { begin, object: item.get(), ..*json }, kind)?;
        }
        Ok(())
    }
}

/// Object in a file.
trait Source {
    fn read<T: DeserializeOwned>(&self) -> Result<T, ManifestError>;

    /// Converts a line of the object to a line of the file. For 0, an unknown line, returns the first line of the
    /// object.
    fn line(&self, line: usize) -> usize;
}

/// YAML document.
struct Document<'a> {
    text: &'a str,
    first_line: usize,
}

impl Source for Document<'_> {
    fn read<T: DeserializeOwned>(&self) -> Result<T, ManifestError> {
        read_yaml(self.text).map_err(|error| ManifestError {
            line: self.line(error.location().map_or(0, line_of)),
            text: one_line(&without_lines(&error)),
        })
    }

    fn line(&self, line: usize) -> usize {
        self.first_line + line.max(1) - 1
    }
}

/// Item of a list in a YAML document.
struct Item {
    value: Value,
    line: usize,
}

impl Source for Item {
    fn read<T: DeserializeOwned>(&self) -> Result<T, ManifestError> {
        T::deserialize(&self.value).map_err(|error| ManifestError { line: self.line, text: error.to_string() })
    }

    fn line(&self, _: usize) -> usize {
        self.line
    }
}

/// JSON object that starts at byte `begin` of `text`.
#[derive(Clone, Copy)]
struct Json<'a> {
    text: &'a str,
    begin: usize,
    object: &'a str,
}

impl Json<'_> {
    fn error(&self, error: &serde_json::Error) -> ManifestError {
        ManifestError { line: self.line(error.line()), text: without_place(error) }
    }
}

impl Source for Json<'_> {
    fn read<T: DeserializeOwned>(&self) -> Result<T, ManifestError> {
        serde_json::from_str(self.object).map_err(|error| self.error(&error))
    }

    fn line(&self, line: usize) -> usize {
        let before = self.text.as_bytes().get(..self.begin).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + line.max(1)
    }
}

fn read_yaml<T: DeserializeOwned>(document: &str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: YAML_MAX, max_nodes: YAML_MAX },
        with_snippet: false,
        // Only `true` and `false` are booleans (YAML 1.2): the value of a label may be `y`.
        strict_booleans: true,
        emit_comments: false,
    };
    serde_saphyr::from_str_with_options(document, options)
}

/// Returns the message of serde-saphyr without its line numbers, which are relative to the document instead of the
/// file.
fn without_lines(error: &serde_saphyr::Error) -> String {
    struct WithoutLines;

    impl Localizer for WithoutLines {
        fn attach_location<'a>(&self, message: Cow<'a, str>, _: Location) -> Cow<'a, str> {
            message
        }

        fn alias_used_at(&self, _: Location) -> String {
            String::new()
        }

        fn alias_defined_at(&self, _: Location) -> String {
            String::new()
        }
    }

    error.render_with_formatter(&UserMessageFormatter.with_localizer(&WithoutLines))
}

fn line_of(location: Location) -> usize {
    usize::try_from(location.line()).unwrap_or_default()
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
        match (head.api_version.as_str(), head.kind.text.as_str()) {
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
        if !self.kind.text.is_empty() || kind.is_empty() {
            return self;
        }
        let kind = Text { text: kind.to_owned(), line: 0 };
        Head { api_version: mistakes::api_version(&kind.text).to_owned(), kind }
    }
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
