//! Permissions of the server at the API server, as access reviews show them.

use cluster::{Kind, Request, Source};
use doctor::{Access, Facts, Known, Unknown};
use serde_json::{Value, json};

use super::api::Api;
use crate::rbac;
use futures_util::future::join_all;
use process::local::is_pod;

/// Maximum number of reviews: two verbs for each kind in eight namespaces.
const REVIEWS_MAX: usize = 96;
/// Verbs that the server needs.
const VERBS: [&str; 2] = ["list", "watch"];
/// Paths of reviews: of the own permissions, and of those of another user.
const OWN: (&str, &str) = ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "SelfSubjectAccessReview");
const OTHER: (&str, &str) = ("/apis/authorization.k8s.io/v1/subjectaccessreviews", "SubjectAccessReview");

/// User whose permissions are reviewed.
enum Subject {
    /// User of this process: the server runs in the same Pod.
    Own,
    /// Service account: namespace and name.
    Account(String, String),
}

/// Asks the API server if the server may do what its Corefile needs.
pub(super) async fn rights(api: &Api, facts: &Facts, requests: &Known<Vec<Request>>) -> Known<Vec<Access>> {
    let requests = requests.as_ref().map_err(Clone::clone)?;
    let needed = needed(requests)?;
    let subject = subject(facts)?;
    if needed.len() > REVIEWS_MAX {
        return Err(Unknown::new(format!(
            "the Corefile needs more than {REVIEWS_MAX} permissions; `portolan check --rbac` lists them"
        )));
    }
    let reviews = needed.into_iter().map(|access| review(api, &subject, access));
    join_all(reviews).await.into_iter().collect()
}

/// Returns the permissions that requests need.
fn needed(requests: &[Request]) -> Known<Vec<Access>> {
    let of_account = requests.iter().filter(|request| request.source == Source::InCluster);
    let specs: Vec<_> = of_account.map(Request::watches).collect();
    if specs.is_empty() {
        return Err(Unknown::inapplicable("the Corefile uses no service account"));
    }
    let mut all: Vec<Access> = Vec::new();
    for watch in specs.iter().flat_map(|spec| &spec.watches) {
        // The server works without the right to read its own Namespace objects.
        if watch.kind == Kind::Namespace && watch.namespace.is_some() {
            continue;
        }
        let (group, resource) = rbac::resource(watch.kind);
        for verb in VERBS {
            let access = Access {
                user: String::new(),
                verb,
                group: group.to_owned(),
                resource: resource.to_owned(),
                namespace: watch.namespace.as_deref().unwrap_or_default().to_owned(),
                allowed: false,
            };
            if !all.contains(&access) {
                all.push(access);
            }
        }
    }
    Ok(all)
}

fn subject(facts: &Facts) -> Known<Subject> {
    if facts.server.is_ok() && is_pod() {
        return Ok(Subject::Own);
    }
    let workload = facts.dns()?.workload()?;
    let account = workload.template.spec.service_account_name.as_str();
    let account = if account.is_empty() { "default" } else { account };
    Ok(Subject::Account(workload.metadata.namespace.clone(), account.to_owned()))
}

async fn review(api: &Api, subject: &Subject, access: Access) -> Known<Access> {
    let (path, kind) = if matches!(subject, Subject::Own) { OWN } else { OTHER };
    let Access { verb, group, resource, namespace, .. } = &access;
    let attributes = json!({ "verb": verb, "group": group, "resource": resource, "namespace": namespace });
    let mut spec = json!({ "resourceAttributes": attributes });
    let user = match subject {
        Subject::Own => "the service account of this Pod".to_owned(),
        Subject::Account(namespace, name) => {
            let user = format!("system:serviceaccount:{namespace}:{name}");
            spec["user"] = user.as_str().into();
            spec["groups"] = groups(namespace);
            user
        }
    };
    let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec });
    let answer = api.review(path, &review).await?;
    let missing = || Unknown::new("the answer to an access review has no `allowed`");
    let allowed = answer["status"]["allowed"].as_bool().ok_or_else(missing)?;
    Ok(Access { user, allowed, ..access })
}

/// Returns the groups of a service account, which roles can be bound to.
fn groups(namespace: &str) -> Value {
    json!(["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_each_right_once_and_only_of_the_service_account() {
        let other = Request::new(Source::Endpoint { url: "http://10.0.0.1".to_owned(), tls: None });
        assert!(needed(std::slice::from_ref(&other)).is_err());
        let own = Request::new(Source::InCluster);
        let all = needed(&[own.clone(), other, own]).unwrap();
        let names: Vec<_> = all.iter().map(|access| (access.verb, access.resource.as_str())).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        assert!(names.contains(&("watch", "endpointslices")), "{names:?}");
    }
}
