//! Parses URL paths.

/// The resource or object that a path below `/api` or `/apis` names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// `/healthz`, `/readyz`, `/livez` and all paths below them.
    Health,
    Metrics,
    Version,
    /// `/`: the list of paths.
    Root,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    Resources(String, String),
    OpenApiV2,
    OpenApiIndex,
    /// `/openapi/v3/api/v1`, `/openapi/v3/apis/<group>/<version>`
    OpenApi(String, String),
    Object(Target),
}

/// Parses a path; `None` if the server has nothing at it.
pub(super) fn parse(path: &str) -> Option<Route> {
    let parts: Vec<String> = path.split('/').filter(|p| !p.is_empty()).map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Some(match parts.as_slice() {
        [] => Route::Root,
        ["healthz" | "readyz" | "livez", ..] => Route::Health,
        ["metrics"] => Route::Metrics,
        ["version"] => Route::Version,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["api", version] => Route::Resources(String::new(), (*version).to_owned()),
        ["apis", group, version] => Route::Resources((*group).to_owned(), (*version).to_owned()),
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", "api", version] => Route::OpenApi(String::new(), (*version).to_owned()),
        ["openapi", "v3", "apis", group, version] => {
            Route::OpenApi((*group).to_owned(), (*version).to_owned())
        }
        ["api", version, rest @ ..] => Route::Object(target("", version, rest)?),
        ["apis", group, version, rest @ ..] => Route::Object(target(group, version, rest)?),
        _ => return None,
    })
}

fn target(group: &str, version: &str, rest: &[&str]) -> Option<Target> {
    let base = Target { group: group.to_owned(), version: version.to_owned(), ..Target::default() };
    let owned = |text: &str| Some(text.to_owned());
    let make = |resource: &str, namespace, name, subresource| Target {
        resource: resource.to_owned(),
        namespace,
        name,
        subresource,
        ..base.clone()
    };
    Some(match rest {
        ["namespaces", ns, sub @ ("status" | "finalize")] if group.is_empty() => {
            make("namespaces", None, owned(ns), owned(sub))
        }
        ["namespaces", ns, resource] => make(resource, owned(ns), None, None),
        ["namespaces", ns, resource, name] => make(resource, owned(ns), owned(name), None),
        ["namespaces", ns, resource, name, sub] => make(resource, owned(ns), owned(name), owned(sub)),
        [resource] => make(resource, None, None, None),
        [resource, name] => make(resource, None, owned(name), None),
        [resource, name, sub] => make(resource, None, owned(name), owned(sub)),
        _ => return None,
    })
}

/// Decodes percent-encoded characters. A text that is not encoded correctly stays as it is.
fn decode(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| part.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(path: &str) -> (String, String, String, String) {
        let Some(Route::Object(t)) = parse(path) else { unreachable!("{path}") };
        let text = |o: Option<String>| o.unwrap_or_default();
        (t.resource, text(t.namespace), text(t.name), text(t.subresource))
    }

    #[test]
    fn paths() {
        let is = |path: &str, want: [&str; 4]| {
            let got = object(path);
            assert_eq!([got.0.as_str(), &got.1, &got.2, &got.3], want, "{path}");
        };
        is("/api/v1/pods", ["pods", "", "", ""]);
        is("/api/v1/namespaces", ["namespaces", "", "", ""]);
        is("/api/v1/namespaces/a", ["namespaces", "", "a", ""]);
        is("/api/v1/namespaces/a/finalize", ["namespaces", "", "a", "finalize"]);
        is("/api/v1/namespaces/a/pods/p/binding", ["pods", "a", "p", "binding"]);
        is("/apis/x.io/v1/things/a%3Ab", ["things", "", "a:b", ""]);
        is("/apis/x.io/v1/things/a/status", ["things", "", "a", "status"]);
        assert_eq!(parse("/apis/apps"), Some(Route::Group("apps".into())));
        assert_eq!(parse("/openapi/v3/api/v1"), Some(Route::OpenApi(String::new(), "v1".into())));
        assert_eq!(parse("/nothing/here"), None);
        assert_eq!(parse("/api/v1/a/b/c/d/e/f"), None);
    }
}
