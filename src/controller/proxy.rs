//! Chooses the proxy, if any, that requests to the API server go through.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;
use kube::config::Kubeconfig;
use thiserror::Error;

/// A proxy whose address cannot be used. The address itself is not told: it may have a password.
#[derive(Debug, Error)]
#[error("the proxy in {0} cannot be used: give an address such as http://proxy.example:3128, or none")]
pub struct BadProxy(String);

/// Checks the addresses of proxies that `kube` reads with the kubeconfig. `kube` refuses an address that cannot be read, too, and does not
/// tell where the address stands.
///
/// # Errors
/// When such an address cannot be read.
pub fn check(
    kubeconfig: Option<&Kubeconfig>,
    context: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(), BadProxy> {
    let Some(kubeconfig) = kubeconfig else { return Ok(()) };
    let read = named(kubeconfig, context).or_else(|| set(HTTPS, variable));
    read.map_or(Ok(()), |given| given.address().map(drop))
}

/// Sets the proxy that kubectl would use: that of the kubeconfig's cluster, or else that of the environment, unless
/// `NO_PROXY` excepts the API server or the API server is on this host.
///
/// `kube` asks `NO_PROXY` about the proxy's own address, and so goes through a proxy where kubectl does not. `context` is
/// the kubeconfig's context, by default its current one; `variable` reads a variable of the environment. Without a kubeconfig
/// the operator runs in the cluster, and nothing is changed.
///
/// # Errors
/// When the address of the proxy cannot be read. Without the proxy, the requests would go another way than was asked for.
pub fn choose(
    config: &mut Config,
    kubeconfig: Option<&Kubeconfig>,
    context: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(), BadProxy> {
    let Some(kubeconfig) = kubeconfig else { return Ok(()) };
    config.proxy_url = match named(kubeconfig, context) {
        Some(named) => Some(named.address()?),
        None => of_environment(&config.cluster_url, variable)?,
    };
    Ok(())
}

/// The address of a proxy as somebody gives it.
struct ProxyAddress {
    /// The variable or the field that has the address, for messages.
    place: String,
    proxy: String,
}

impl ProxyAddress {
    /// The proxy's address, which may stand without its scheme, as in `proxy.example:3128`.
    fn address(&self) -> Result<Uri, BadProxy> {
        let Self { place, proxy } = self;
        let whole = if proxy.contains("://") { proxy.clone() } else { format!("http://{proxy}") };
        whole.parse().map_err(|_| BadProxy(place.clone()))
    }
}

/// The `proxy-url` of the context's cluster.
fn named(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<ProxyAddress> {
    let wanted = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|entry| entry.name == wanted)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|entry| entry.name == context.cluster)?.cluster.as_ref()?;
    let proxy = cluster.proxy_url.clone().filter(|proxy| !proxy.is_empty())?;
    Some(ProxyAddress { place: format!("proxy-url of the kubeconfig's cluster {}", context.cluster), proxy })
}

/// The variables with the proxy of an API server that has TLS, and of one that has none.
const HTTPS: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const HTTP: [&str; 2] = ["HTTP_PROXY", "http_proxy"];

/// The first of the variables that is set, and not empty.
fn set(names: [&str; 2], variable: impl Fn(&str) -> Option<String>) -> Option<ProxyAddress> {
    let given = |name: &str| Some(ProxyAddress { place: name.to_owned(), proxy: variable(name)? });
    names.into_iter().filter_map(given).find(|given| !given.proxy.is_empty())
}

/// The proxy of the environment, unless the server is excepted.
fn of_environment(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Uri>, BadProxy> {
    let names = if server.scheme_str() == Some("http") { HTTP } else { HTTPS };
    let Some(given) = set(names, &variable).filter(|_| !is_here(server)) else { return Ok(None) };
    let excepted = set(["NO_PROXY", "no_proxy"], &variable).map(|given| given.proxy).unwrap_or_default();
    // The matcher takes a proxy that cannot be read for no proxy. The matcher is asked about another proxy, therefore.
    let any = "http://localhost";
    let is_used = Matcher::builder().http(any).https(any).no(excepted).build().intercept(server).is_some();
    if is_used { given.address().map(Some) } else { Ok(None) }
}

/// Whether the server is on this host. Nobody uses a proxy for such a server.
fn is_here(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        server: &str,
        of_cluster: &str,
        environment: &[(&str, &str)],
    ) -> Result<Option<String>, String> {
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
        let checked = check(Some(&kubeconfig), None, variable);
        let chosen = checked.and_then(|()| choose(&mut config, Some(&kubeconfig), None, variable));
        chosen.map_err(|error| error.to_string())?;
        Ok(config.proxy_url.map(|proxy| proxy.to_string()))
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
            assert_eq!(found, Ok(expected.map(str::to_owned)), "{server} {of_cluster} {environment:?}");
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_read_is_an_error_and_its_password_is_not_told() {
        let (server, bad) = ("https://k8s.example:6443", "http://u:secret@proxy example:3128");
        let plain = "http://k8s.example:8080";
        for (server, of_cluster, environment, place) in [
            (server, bad, vec![], "proxy-url of the kubeconfig's cluster b"),
            (server, "", vec![("HTTPS_PROXY", bad)], "HTTPS_PROXY"),
            (server, "", vec![("https_proxy", bad)], "https_proxy"),
            (plain, "", vec![("HTTP_PROXY", bad)], "HTTP_PROXY"),
            (plain, "", vec![("HTTP_PROXY", ""), ("http_proxy", bad)], "http_proxy"),
        ] {
            let error = chosen(server, of_cluster, &environment).unwrap_err();
            let expected = format!(
                "the proxy in {place} cannot be used: give an address such as http://proxy.example:3128, or none"
            );
            assert_eq!(error, expected);
        }
        for environment in
            [[("HTTP_PROXY", bad), ("NO_PROXY", "*")], [("HTTP_PROXY", bad), ("NO_PROXY", ".example")]]
        {
            assert_eq!(
                chosen(plain, "", &environment),
                Ok(None),
                "a proxy that is not used: {environment:?}"
            );
        }
        assert_eq!(chosen("http://127.0.0.1:1", "", &[("HTTP_PROXY", bad)]), Ok(None), "not used");
    }
}
