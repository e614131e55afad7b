//! Chooses the proxy, if any, that requests to the API server go through.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;
use kube::config::Kubeconfig;

/// Sets the proxy that kubectl would use: that of the kubeconfig's cluster, or else that of the environment, unless
/// `NO_PROXY` excepts the API server or the API server is on this host.
///
/// `kube` asks `NO_PROXY` about the proxy's own address, and so goes through a proxy where kubectl does not. `context` is
/// the kubeconfig's context, by default its current one; `variable` reads a variable of the environment. Without a kubeconfig
/// the operator runs in the cluster, and nothing is changed.
pub fn choose(
    config: &mut Config,
    kubeconfig: Option<&Kubeconfig>,
    context: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) {
    let Some(kubeconfig) = kubeconfig else { return };
    let chosen = named(kubeconfig, context).or_else(|| of_environment(&config.cluster_url, variable));
    config.proxy_url = chosen.and_then(|proxy| with_scheme(&proxy).parse().ok());
}

/// The `proxy-url` of the context's cluster.
fn named(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let wanted = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|entry| entry.name == wanted)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|entry| entry.name == context.cluster)?.cluster.as_ref()?;
    cluster.proxy_url.clone().filter(|proxy| !proxy.is_empty())
}

fn of_environment(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set = |names: [&str; 2]| names.into_iter().filter_map(&variable).find(|value| !value.is_empty());
    let names = match server.scheme_str() {
        Some("http") => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    };
    let proxy = set(names).filter(|_| !is_here(server))?;
    let excepted = set(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let matcher = Matcher::builder().http(proxy.clone()).https(proxy.clone()).no(excepted).build();
    matcher.intercept(server).map(|_| proxy)
}

/// Whether the server is on this host. Nobody uses a proxy for such a server.
fn is_here(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// A proxy's address may stand without its scheme, as in `proxy.example:3128`.
fn with_scheme(proxy: &str) -> String {
    if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(server: &str, of_cluster: &str, environment: &[(&str, &str)]) -> Option<String> {
        let mut config = Config::new(server.parse().unwrap());
        config.proxy_url = Some("http://kube.example:1".parse().unwrap());
        let kubeconfig = Kubeconfig::from_yaml(&format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: b, user: c}}}}]\n\
             clusters: [{{name: b, cluster: {{server: \"{server}\", proxy-url: \"{of_cluster}\"}}}}]\n"
        ))
        .unwrap();
        let variable = |wanted: &str| {
            environment.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        };
        choose(&mut config, Some(&kubeconfig), None, variable);
        config.proxy_url.map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_proxy_is_that_of_kubectl() {
        let (server, proxy) = ("https://k8s.example:6443", ("HTTPS_PROXY", "http://u:p@proxy.example:3128"));
        let through = Some("http://u:p@proxy.example:3128/");
        for (server, of_cluster, environment, expected) in [
            (server, "", vec![], None),
            (server, "", vec![proxy], through),
            (server, "", vec![("https_proxy", "proxy.example:3128")], Some("http://proxy.example:3128/")),
            (server, "", vec![proxy, ("NO_PROXY", "proxy.example")], through),
            (server, "", vec![proxy, ("NO_PROXY", "localhost, .example")], None),
            (server, "", vec![proxy, ("no_proxy", "k8s.example")], None),
            (server, "", vec![proxy, ("NO_PROXY", "*")], None),
            (server, "", vec![("HTTP_PROXY", "http://proxy.example")], None),
            (server, "http://named.example", vec![proxy, ("NO_PROXY", "*")], Some("http://named.example/")),
            ("https://10.1.2.3", "", vec![proxy, ("NO_PROXY", "10.0.0.0/8")], None),
            ("https://127.0.0.1:6443", "", vec![proxy], None),
            ("https://[::1]:6443", "", vec![proxy], None),
            (
                "http://k8s.example",
                "",
                vec![("HTTP_PROXY", "http://proxy.example")],
                Some("http://proxy.example/"),
            ),
        ] {
            let found = chosen(server, of_cluster, &environment);
            assert_eq!(found.as_deref(), expected, "{server} {of_cluster} {environment:?}");
        }
    }
}
