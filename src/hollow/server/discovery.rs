//! Discovery: groups, versions and resources, in the old and in the aggregated form; and the OpenAPI documents.

use std::sync::Arc;

use serde_json::{Value, json};

use kube_schema::{ResourceDoc, openapi_v2, openapi_v3, openapi_v3_index};

use super::api::Api;
use super::resource::Resource;

/// The content type of aggregated discovery, in requests and answers.
pub(super) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The answer to `/version`.
pub(super) fn version() -> Value {
    json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0+slotwright-hollow", "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": "hollow/embedded"})
}

/// The review resources: group, kind, plural, and whether they are namespaced. Clients can only create them, and the
/// server does not store them.
const REVIEWS: [(&str, &str, &str, bool); 4] = [
    ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false),
    ("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false),
    ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", false),
    ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", false),
];

/// The kind of a review resource; `None` if there is none of this group and plural.
pub(super) fn review_kind(group: &str, plural: &str) -> Option<&'static str> {
    REVIEWS.iter().find(|(g, _, p, _)| *g == group && *p == plural).map(|(_, kind, _, _)| *kind)
}

/// A group with its versions, preferred first, and the resources of each.
struct Group {
    name: String,
    versions: Vec<(String, Vec<Arc<Resource>>)>,
}

fn groups(api: &Api) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for res in api.registry.all() {
        let at = groups.iter().position(|g| g.name == res.group).unwrap_or_else(|| {
            groups.push(Group { name: res.group.clone(), versions: Vec::new() });
            groups.len() - 1
        });
        let Some(group) = groups.get_mut(at) else { continue };
        match group.versions.iter_mut().find(|(v, _)| *v == res.version) {
            Some((_, resources)) => resources.push(res),
            None => group.versions.push((res.version.clone(), vec![res])),
        }
    }
    for name in ["authorization.k8s.io", "authentication.k8s.io"] {
        groups.push(Group { name: name.to_owned(), versions: vec![("v1".to_owned(), Vec::new())] });
    }
    groups
}

fn legacy_group(group: &Group) -> Value {
    let version = |v: &str| json!({"groupVersion": format!("{}/{v}", group.name), "version": v});
    let versions: Vec<Value> = group.versions.iter().map(|(v, _)| version(v)).collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

/// The answer to `/api` in the old form.
pub(super) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]})
}

/// The answer to `/apis` in the old form.
pub(super) fn group_list(api: &Api) -> Value {
    let groups: Vec<Value> = groups(api).iter().filter(|g| !g.name.is_empty()).map(legacy_group).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// The answer to `/apis/<group>`; `None` if no such group is served.
pub(super) fn group(api: &Api, name: &str) -> Option<Value> {
    let groups = groups(api);
    let mut body = legacy_group(groups.iter().find(|g| g.name == name)?);
    super::json::set(&mut body, &["kind"], "APIGroup");
    super::json::set(&mut body, &["apiVersion"], "v1");
    Some(body)
}

/// Group, version and kind of the objects that a subresource reads and writes, and its verbs.
fn subresource_type(res: &Resource, name: &str) -> (String, String, String, &'static [&'static str]) {
    let owned = |g: &str, v: &str, k: &str| (g.to_owned(), v.to_owned(), k.to_owned());
    let ((group, version, kind), verbs): (_, &[&str]) = match name {
        "binding" => (owned("", "v1", "Binding"), &["create"]),
        "eviction" => (owned("policy", "v1", "Eviction"), &["create"]),
        "scale" => (owned("autoscaling", "v1", "Scale"), &["get", "patch", "update"]),
        "log" => (owned("", "v1", "Pod"), &["get"]),
        "finalize" => (owned("", "v1", "Namespace"), &["update"]),
        _ => (owned(&res.group, &res.version, &res.kind), &["get", "patch", "update"]),
    };
    (group, version, kind, verbs)
}

/// The answer to `/api/v1` or `/apis/<group>/<version>`; `None` if no such version is served.
pub(super) fn resource_list(api: &Api, group: &str, version: &str) -> Option<Value> {
    let found = groups(api).into_iter().find(|g| g.name == group)?;
    let (_, resources) = found.versions.into_iter().find(|(v, _)| v == version)?;
    let mut list: Vec<Value> = Vec::new();
    for res in &resources {
        list.push(json!({"name": res.plural, "singularName": res.singular, "namespaced": res.namespaced,
            "kind": res.kind, "verbs": VERBS, "shortNames": res.short_names, "categories": res.categories}));
        for name in res.subresources() {
            let (group, version, kind, verbs) = subresource_type(res, name);
            list.push(json!({"name": format!("{}/{name}", res.plural), "singularName": "",
                "namespaced": res.namespaced, "kind": kind, "group": group, "version": version, "verbs": verbs}));
        }
    }
    for (_, kind, plural, namespaced) in REVIEWS.iter().filter(|r| r.0 == group) {
        list.push(json!({"name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced,
            "kind": kind, "verbs": ["create"]}));
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}),
    )
}

/// The answer to `/api` (`core`) or `/apis` in the aggregated form.
pub(super) fn aggregated(api: &Api, core: bool) -> Value {
    let items: Vec<Value> = groups(api)
        .iter()
        .filter(|g| g.name.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|(version, resources)| {
                    let mut list: Vec<Value> = resources.iter().map(aggregated_resource).collect();
                    list.extend(REVIEWS.iter().filter(|r| r.0 == group.name).map(aggregated_review));
                    json!({"version": version, "freshness": "Current", "resources": list})
                })
                .collect();
            let meta = if core { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": meta, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn scope(namespaced: bool) -> &'static str {
    if namespaced { "Namespaced" } else { "Cluster" }
}

fn aggregated_resource(res: &Arc<Resource>) -> Value {
    let subresources: Vec<Value> = res
        .subresources()
        .into_iter()
        .map(|name| {
            let (group, version, kind, verbs) = subresource_type(res, name);
            json!({"subresource": name, "verbs": verbs,
                "responseKind": {"group": group, "version": version, "kind": kind}})
        })
        .collect();
    json!({"resource": res.plural, "singularResource": res.singular, "scope": scope(res.namespaced),
        "responseKind": {"group": res.group, "version": res.version, "kind": res.kind}, "verbs": VERBS,
        "shortNames": res.short_names, "categories": res.categories, "subresources": subresources})
}

fn aggregated_review((group, kind, plural, namespaced): &(&str, &str, &str, bool)) -> Value {
    json!({"resource": plural, "singularResource": kind.to_lowercase(), "scope": scope(*namespaced),
        "responseKind": {"group": group, "version": "v1", "kind": kind}, "verbs": ["create"]})
}

/// The OpenAPI document that a client asks for.
pub(super) enum Document<'a> {
    V2,
    /// The list of the version 3 documents.
    Index,
    /// The version 3 document of this group and version.
    V3(&'a str, &'a str),
}

/// An OpenAPI document of the served resources; `None` if the document's group and version are not served.
pub(super) fn openapi(api: &Api, document: &Document<'_>) -> Option<Value> {
    let all = api.registry.all();
    let subresources: Vec<Vec<&'static str>> = all.iter().map(|r| r.subresources()).collect();
    let docs: Vec<ResourceDoc<'_>> = all
        .iter()
        .zip(&subresources)
        .map(|(res, subresources)| ResourceDoc {
            group: &res.group,
            version: &res.version,
            kind: &res.kind,
            plural: &res.plural,
            namespaced: res.namespaced,
            subresources,
            schema: res.custom.as_ref().and_then(|c| c.raw_schema.as_ref()),
        })
        .collect();
    Some(match document {
        Document::V2 => openapi_v2(&docs),
        Document::Index => openapi_v3_index(&docs),
        Document::V3(group, version) => {
            docs.iter().find(|d| d.group == *group && d.version == *version)?;
            openapi_v3(group, version, &docs)
        }
    })
}
