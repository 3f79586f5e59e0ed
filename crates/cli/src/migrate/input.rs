//! Input of `portolan migrate`: Corefiles, plain or in ConfigMaps, and the configuration of the kube-dns pod.

use std::collections::BTreeMap;
use std::path::Path;

use compat::migrate::{Note, NoteKind, PodError};
use serde_json::Value;

use super::container::{arguments, is_exechealthz};
use super::questions::documents;
use crate::command_error::CommandError;
use process::configuration::Part;

/// Keys of the ConfigMap of kube-dns.
const KUBE_DNS_KEYS: [&str; 3] = ["stubDomains", "upstreamNameservers", "federations"];

/// ConfigMap of the user on AKS, K3s and Gardener, and the endings of its keys that the Corefile imports.
const CUSTOM: &str = "coredns-custom";
const IMPORTED: [&str; 2] = [".override", ".server"];

/// Configuration found in all input files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Input {
    /// Corefiles: name and text.
    pub(crate) corefiles: Vec<(String, String)>,
    /// Data of the ConfigMap of kube-dns.
    pub(super) data: BTreeMap<String, String>,
    /// File of the ConfigMap of kube-dns.
    data_file: Option<String>,
    /// Arguments of the containers of kube-dns.
    pub(super) containers: Vec<Vec<String>>,
    /// File of these containers.
    containers_file: Option<String>,
    /// Parts of a Corefile in the ConfigMap of the user of a managed cluster.
    pub(crate) parts: Vec<Part>,
    /// Notes about keys and containers that are ignored.
    pub(crate) notes: Vec<Note>,
}

impl Input {
    /// Adds a file: manifests in YAML or JSON, or else a Corefile.
    ///
    /// # Errors
    /// Fails if the file is empty or its manifests have no DNS configuration.
    pub(crate) fn add(&mut self, path: &Path, text: String) -> Result<(), CommandError> {
        let name = path.display().to_string();
        if text.trim().is_empty() {
            return Err(CommandError::Empty(name));
        }
        let Some(objects) = documents(&text) else {
            self.corefiles.push((name, text));
            return Ok(());
        };
        let known = objects.iter().filter(|object| self.take(&name, object)).count();
        if known == 0 {
            let wrong = objects.iter().find_map(misspelt_key);
            return Err(
                wrong.map_or(CommandError::NoConfiguration(name.clone()), |key| CommandError::WrongKey(name, key))
            );
        }
        Ok(())
    }

    /// Returns the file that has the part of the configuration that is wrong.
    pub(super) fn origin(&self, error: &PodError) -> Option<String> {
        match error {
            PodError::Flags(_) => self.containers_file.clone(),
            PodError::ConfigMap(_) => self.data_file.clone(),
        }
    }

    fn take(&mut self, file: &str, object: &Value) -> bool {
        match object["kind"].as_str() {
            Some("ConfigMap") => self.read_config_map(file, object),
            Some("Deployment" | "DaemonSet" | "ReplicationController") => {
                self.read_pod(file, &object["spec"]["template"]["spec"])
            }
            Some("Pod") => self.read_pod(file, &object["spec"]),
            _ => false,
        }
    }

    fn read_config_map(&mut self, file: &str, object: &Value) -> bool {
        let Some(data) = object["data"].as_object() else {
            return object["metadata"]["name"] == "kube-dns";
        };
        let name = object["metadata"]["name"].as_str().unwrap_or("ConfigMap");
        if name == CUSTOM {
            return self.read_parts(file, data);
        }
        let (mut known, mut others) = (false, Vec::new());
        for (key, value) in data {
            let Some(text) = value.as_str() else { continue };
            if key == "Corefile" || key == "Corefile.base" {
                self.corefiles.push((format!("{file}:{name}/{key}"), text.to_owned()));
                known = true;
            } else if KUBE_DNS_KEYS.contains(&key.as_str()) {
                self.data.insert(key.clone(), text.to_owned());
                self.data_file = Some(file.to_owned());
                known = true;
            } else {
                others.push(passed_over(format!("key `{key}` of the ConfigMap `{name}` is passed over")));
            }
        }
        if known {
            self.notes.extend(others);
        }
        known
    }

    /// Adds the keys of the ConfigMap of the user. Returns false without any that is imported.
    fn read_parts(&mut self, file: &str, data: &serde_json::Map<String, Value>) -> bool {
        let before = self.parts.len();
        for (key, value) in data {
            let Some(text) = value.as_str() else { continue };
            if IMPORTED.iter().any(|ending| key.ends_with(ending)) {
                let path = format!("{file}:{CUSTOM}/{key}").into();
                self.parts.push(Part { path, text: text.to_owned() });
            } else {
                let [first, second] = IMPORTED;
                let text = format!(
                    "key `{key}` of the ConfigMap `{CUSTOM}` is not imported: it ends neither in `{first}` nor in \
                     `{second}`"
                );
                self.notes.push(passed_over(text));
            }
        }
        self.parts.len() > before
    }

    /// Adds the containers of a Pod if one of them belongs to kube-dns, with a note for each one that does not.
    fn read_pod(&mut self, file: &str, pod: &Value) -> bool {
        let (mut known, mut others) = (Vec::new(), Vec::new());
        for container in pod["containers"].as_array().into_iter().flatten() {
            match arguments(container) {
                Some(words) => known.push(words),
                None if is_exechealthz(container) => others.push(dropped(container)),
                None => {
                    let name = container["name"].as_str().or(container["image"].as_str()).unwrap_or_default();
                    others.push(passed_over(format!("container `{name}` was ignored: it does not belong to kube-dns")));
                }
            }
        }
        if known.is_empty() {
            return false;
        }
        self.containers.extend(known);
        self.containers_file = Some(file.to_owned());
        self.notes.extend(others);
        true
    }
}

/// Returns the key of a ConfigMap that is `Corefile` in other letters.
fn misspelt_key(object: &Value) -> Option<String> {
    let mut keys = object["data"].as_object().filter(|_| object["kind"] == "ConfigMap")?.keys();
    keys.find(|key| key.eq_ignore_ascii_case("Corefile")).cloned()
}

/// Returns true if a text is manifests in YAML or JSON.
pub(crate) fn is_manifest(text: &str) -> bool {
    documents(text).is_some()
}

/// Returns a note about exechealthz. Its paths come from its own command line, so the note names fixed ones that
/// replace them.
fn dropped(container: &Value) -> Note {
    let name = container["name"].as_str().unwrap_or("healthz");
    let text = format!(
        "container `{name}` (exechealthz) is not needed: remove it from the Pod, and point the probes of the others at \
         `/readiness` on port 8081"
    );
    Note { kind: NoteKind::Dropped, place: String::new(), text, directive: None, since: None }
}

fn passed_over(text: String) -> Note {
    Note { kind: NoteKind::Review, place: String::new(), text, directive: None, since: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Input, String> {
        let mut input = Input::default();
        input.add(Path::new("f"), text.to_owned()).map(|()| input).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_a_corefile_as_a_file_or_in_a_config_map() {
        let text = ".:53 {\n    errors\n}\n";
        assert_eq!(read(text).map(|input| input.corefiles), Ok(vec![("f".to_owned(), text.to_owned())]));
        let map =
            "kind: ConfigMap\nmetadata: {name: coredns}\ndata:\n  Corefile: |\n    .:53 {\n        errors\n    }\n";
        let corefiles = read(map).map(|input| input.corefiles);
        assert_eq!(corefiles, Ok(vec![("f:coredns/Corefile".to_owned(), text.to_owned())]));
    }

    #[test]
    fn reads_the_parts_of_a_managed_cluster() {
        let map = "kind: ConfigMap\nmetadata: {name: coredns-custom}\ndata: {a.server: one, b.override: two, c.sever: \
                   three}\n";
        let input = read(map).expect("parts");
        let paths: Vec<&str> = input.parts.iter().filter_map(|part| part.path.to_str()).collect();
        assert_eq!(paths, ["f:coredns-custom/a.server", "f:coredns-custom/b.override"]);
        assert!(input.notes[0].text.starts_with("key `c.sever` of the ConfigMap `coredns-custom` is not imported"));
        assert!(read("kind: ConfigMap\nmetadata: {name: coredns-custom}\ndata: {c.sever: z}\n").is_err());
    }

    #[test]
    fn names_a_key_in_other_letters() {
        let said =
            read("kind: ConfigMap\nmetadata: {name: coredns}\ndata: {corefile: '.'}\n").expect_err("no Corefile");
        assert!(said.contains("the key `corefile`"), "{said}");
    }

    #[test]
    fn notes_other_keys_of_a_config_map_with_a_corefile() {
        let map =
            "kind: ConfigMap\nmetadata: {name: coredns}\ndata: {Corefile: '.', extra.server: x, more.override: z}\n";
        let notes = read(map).expect("a Corefile").notes;
        let said: Vec<String> = notes.iter().map(ToString::to_string).collect();
        let wanted = ["extra.server", "more.override"];
        assert_eq!(said, wanted.map(|key| format!("look: key `{key}` of the ConfigMap `coredns` is passed over")));
    }

    #[test]
    fn reads_the_kube_dns_pod_with_its_config_map() {
        let text = r#"
kind: ConfigMap
metadata: {name: kube-dns}
data:
  stubDomains: '{"corp.example": ["10.0.0.1"]}'
---
kind: Deployment
spec:
  template:
    spec:
      containers:
      - {image: "registry.k8s.io/dns/k8s-dns-kube-dns:1.26.7", args: ["--domain=c.local."]}
      - {image: "registry.k8s.io/dns/k8s-dns-dnsmasq-nanny:1.26.7", args: ["-v=2", "--", "-k", "--cache-size=9"]}
      - {image: other, args: ["--what"]}
"#;
        let input = read(text).expect("a pod");
        assert_eq!(input.data.len(), 1);
        assert_eq!(input.containers, [vec!["--domain=c.local."], vec!["-v=2", "--", "-k", "--cache-size=9"]]);
        let said: Vec<String> = input.notes.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["look: container `other` was ignored: it does not belong to kube-dns"]);
    }

    #[test]
    fn rejects_files_without_dns_configuration() {
        assert!(read("kind: Secret\nmetadata: {name: x}\n").is_err());
        assert_eq!(read(" \n\n"), Err("f: the file is empty".to_owned()));
        let other = "kind: Pod\nspec: {containers: [{name: web, image: nginx, args: [-g]}]}\n";
        assert!(read(other).is_err());
    }
}
