//! Parser for manifest files: YAML with several documents, JSON, and lists in both.
//!
//! YAML is parsed by serde-saphyr. It is maintained, and kube already depends on it for kubeconfigs. Objects are read
//! with the crate `dynserde`, since there are many types and nobody waits for them.

use std::borrow::Cow;

use cluster::Kind;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use serde_saphyr::{Localizer, Location, Spanned, UserMessageFormatter};

use super::fields::FieldTree;
use super::kinds::{self, Document as Known, KindRow, ManifestKind};
use super::mesh::MeshManifest;
use super::mistakes::{self, Mistake};
use super::model::{EndpointSlice, Endpoints, Head, Metadata, Namespace, Pod, Service, ServiceImport, Text};

/// Maximum number of nodes and of events in one YAML document. A list of a hundred thousand objects has fewer.
const YAML_MAX: usize = 20_000_000;
/// Maximum number of errors per file to report, and of warnings, since a template may repeat one mistake for each
/// object.
const FINDINGS_MAX: usize = 10;

/// Object of a kind that answers depend on.
#[derive(Clone, Debug)]
pub enum Manifest {
    Namespace(Namespace),
    Service(Service),
    EndpointSlice(EndpointSlice),
    Endpoints(Endpoints),
    Pod(Pod),
    ServiceImport(ServiceImport),
    Mesh(MeshManifest),
}

impl Manifest {
    /// Returns the name of the kind and the metadata.
    pub fn identity(&self) -> (&'static str, &Metadata) {
        match self {
            Manifest::Namespace(namespace) => ("Namespace", &namespace.metadata),
            Manifest::Service(service) => ("Service", &service.metadata),
            Manifest::EndpointSlice(slice) => ("EndpointSlice", &slice.metadata),
            Manifest::Endpoints(endpoints) => ("Endpoints", &endpoints.metadata),
            Manifest::Pod(pod) => ("Pod", &pod.metadata),
            Manifest::ServiceImport(import) => ("ServiceImport", &import.metadata),
            Manifest::Mesh(manifest) if manifest.kind == Kind::WorkloadEntry => ("WorkloadEntry", &manifest.metadata),
            Manifest::Mesh(manifest) => ("ServiceEntry", &manifest.metadata),
        }
    }
}

/// Content of a file.
#[derive(Debug, Default)]
pub struct Parsed {
    pub manifests: Vec<Manifest>,
    /// Objects that cannot be read.
    pub errors: Findings,
    /// Likely mistakes in the other objects.
    pub warnings: Findings,
}

/// Errors or likely mistakes in a file, of which only the first ones are kept.
#[derive(Debug, Default)]
pub struct Findings {
    pub shown: Vec<ManifestError>,
    /// Number of further ones.
    pub more: usize,
}

impl Findings {
    fn add(&mut self, finding: ManifestError) {
        if self.shown.len() < FINDINGS_MAX {
            self.shown.push(finding);
        } else {
            self.more += 1;
        }
    }
}

/// Error or likely mistake in a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {text}")]
pub struct ManifestError {
    /// Line number in the file, starting at 1.
    pub line: usize,
    /// Description on one line, without a line number.
    pub text: String,
}

/// Parses a file of YAML documents and skips those of other kinds. An invalid document or item does not affect the
/// others.
pub fn yaml(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    for (first_line, text) in documents(text) {
        let added = parsed.add_document(&Document { text, first_line });
        parsed.note(added);
    }
    parsed
}

/// Parses a file of concatenated JSON objects. An invalid object does not affect the others, but after invalid JSON the
/// rest of the file cannot be read.
pub fn json(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    while let Some(document) = documents.next() {
        match document {
            Ok(object) => {
                let begin = documents.byte_offset() - object.get().len();
                parsed.add_json(&Json { text, begin, object: object.get() }, "");
            }
            Err(error) => parsed.errors.add(ManifestError { line: error.line(), text: without_place(&error) }),
        }
    }
    parsed
}

impl Parsed {
    fn note(&mut self, added: Result<(), ManifestError>) {
        if let Err(error) = added {
            self.errors.add(error);
        }
    }

    fn add_document(&mut self, document: &Document<'_>) -> Result<(), ManifestError> {
        let Some(head) = document.read::<Option<Head>>()? else { return Ok(()) };
        let Known::List(kind) = Known::of(&head) else { return self.add(&head, document) };
        let list: List<Spanned<Value>> = document.read()?;
        for item in list.items.unwrap_or_default() {
            let item = Item { value: item.value, line: document.line(line_of(item.referenced)) };
            let added = item.read::<Head>().and_then(|head| self.add(&head.of(kind), &item));
            self.note(added);
        }
        Ok(())
    }

    fn add(&mut self, head: &Head, object: &impl Source) -> Result<(), ManifestError> {
        match Known::of(head) {
            Known::Object(row) => self.add_object(row, object),
            // A list inside a list is not valid in Kubernetes.
            Known::List(_) => Ok(()),
            Known::Other => {
                if let Some(text) = mistakes::of_head(head) {
                    self.warn(object, (head.kind.line, text));
                }
                Ok(())
            }
        }
    }

    fn add_object(&mut self, row: &KindRow, object: &impl Source) -> Result<(), ManifestError> {
        let manifest = match row.kind {
            ManifestKind::Namespace => Manifest::Namespace(object.read()?),
            ManifestKind::Service => Manifest::Service(object.read()?),
            ManifestKind::EndpointSlice => Manifest::EndpointSlice(object.read()?),
            ManifestKind::Endpoints => Manifest::Endpoints(object.read()?),
            ManifestKind::Pod => Manifest::Pod(object.read()?),
            ManifestKind::ServiceImport => Manifest::ServiceImport(object.read()?),
            ManifestKind::ServiceEntry => mesh(Kind::ServiceEntry, object)?,
            ManifestKind::WorkloadEntry => mesh(Kind::WorkloadEntry, object)?,
        };
        self.find_mistakes(row, &manifest, object)?;
        self.manifests.push(manifest);
        Ok(())
    }

    fn find_mistakes(&mut self, row: &KindRow, manifest: &Manifest, object: &impl Source) -> Result<(), ManifestError> {
        object.read::<FieldTree>()?.misspelled(row.fields, &mut |line, text| self.warn(object, (line, text)));
        match manifest {
            Manifest::Service(service) => mistakes::of_service(service).for_each(|one| self.warn(object, one)),
            Manifest::EndpointSlice(slice) => mistakes::of_slice(slice).for_each(|one| self.warn(object, one)),
            Manifest::Endpoints(given) => mistakes::of_endpoints(given).for_each(|one| self.warn(object, one)),
            Manifest::Pod(pod) => mistakes::of_pod(pod).for_each(|one| self.warn(object, one)),
            Manifest::Namespace(_) | Manifest::ServiceImport(_) | Manifest::Mesh(_) => {}
        }
        Ok(())
    }

    fn warn(&mut self, object: &impl Source, (line, text): Mistake) {
        self.warnings.add(ManifestError { line: object.line(line), text });
    }

    /// Adds an object. `kind` is the item kind of the enclosing list.
    fn add_json(&mut self, json: &Json<'_>, kind: &str) {
        let added = self.try_add_json(json, kind);
        self.note(added);
    }

    fn try_add_json(&mut self, json: &Json<'_>, kind: &str) -> Result<(), ManifestError> {
        let head = json.read::<Head>()?.of(kind);
        let Known::List(kind) = Known::of(&head) else { return self.add(&head, json) };
        let list: List<&RawValue> = serde_json::from_str(json.object).map_err(|error| json.error(&error))?;
        for item in list.items.unwrap_or_default() {
            let begin = json.begin + (item.get().as_ptr() as usize - json.object.as_ptr() as usize);
            self.add_json(&Json { begin, object: item.get(), ..*json }, kind);
        }
        Ok(())
    }
}

fn mesh(kind: Kind, object: &impl Source) -> Result<Manifest, ManifestError> {
    let manifest = MeshManifest::new(kind, object.read()?);
    let manifest = manifest.map_err(|error| ManifestError { line: object.line(0), text: without_place(&error) })?;
    Ok(Manifest::Mesh(manifest))
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
        dynserde::from(&self.value).map_err(|error| ManifestError { line: self.line, text: error.to_string() })
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
        dynserde::json(self.object.as_bytes()).map_err(|error| self.error(&error))
    }

    fn line(&self, line: usize) -> usize {
        let before = &self.text.as_bytes()[..self.begin];
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
    dynserde::yaml_with(document, options)
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

impl Head {
    /// Returns the kind and version of an item in a list of this kind. Items of typed lists do not repeat them.
    fn of(self, kind: &str) -> Head {
        if !self.kind.text.is_empty() || kind.is_empty() {
            return self;
        }
        let kind = Text { text: kind.to_owned(), line: 0 };
        Head { api_version: kinds::row(&kind.text).map_or("v1", |row| row.api_version).to_owned(), kind }
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
