//! The cluster that the plugin reads from: connects to the API server, lists, reads and writes objects.

mod error;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::Write;
use std::path::PathBuf;

use api::HTCJob;
use clap::Args;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{
    DeleteParams, GetParams, ListParams, LogParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ObjectList, Request, Status};
use kube::{Api, Client, Config, Resource};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use self::error::{is_missing, not_created, refusal};
use answers::{Decode, Item, chain};
use controller::proxy;

use crate::warnings;

pub use self::error::Error;
pub(crate) use self::error::Patience;

/// The most objects of a page, which is one answer of the API server.
const PAGE: u32 = 500;

/// The options that choose the cluster, as kubectl has them.
#[derive(Args, Debug, Default)]
pub struct Connection {
    /// The kubeconfig file [default: that of KUBECONFIG, or else ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context [default: the current one]
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
}

impl Connection {
    /// The options as words of a command line.
    pub fn words(&self) -> Vec<OsString> {
        let file = self.kubeconfig.iter().flat_map(|file| ["--kubeconfig".into(), file.clone().into()]);
        let context = self.context.iter().flat_map(|name| ["--context".into(), name.into()]);
        file.chain(context).collect()
    }
}

/// A cluster, ready to list objects.
pub struct Cluster {
    client: Client,
    server: String,
    /// The context's namespace.
    pub namespace: String,
}

/// Returns the objects that can be decoded. The others are named on standard error: a table that lacks them would
/// mislead.
fn readable<K: Resource<DynamicType = ()>>(found: Vec<Item<K>>) -> Vec<K> {
    found.into_iter().filter_map(decoded).collect()
}

/// Returns an object if it can be decoded, and else names it on standard error.
pub(crate) fn decoded<K: Resource<DynamicType = ()>>(item: Item<K>) -> Option<K> {
    let (metadata, object) = item.into_parts();
    let explain = |why: &_| {
        let name: Vec<String> = metadata.namespace.into_iter().chain(metadata.name).collect();
        // Nobody may be there to read it.
        let _ = writeln!(
            std::io::stderr(),
            "kubectl slotwright: {} {} cannot be read: {why}",
            K::kind(&()),
            name.join("/")
        );
    };
    object.inspect_err(explain).ok()
}

/// The answer of a Service behind the API server's proxy.
pub enum Proxied {
    /// The body of a good answer.
    Body(Vec<u8>),
    /// A refusal or failure, of the Service or of the API server.
    Refused {
        /// The status of the answer.
        status: u16,
        /// The headers of the answer.
        headers: http::HeaderMap,
        /// The text of the answer.
        message: String,
    },
}

impl Cluster {
    /// Reads the kubeconfig. If there is none and no option names one, the pod's service account is used. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// [`Error::NoCluster`] when there is no usable kubeconfig; [`Error::Proxy`] when the proxy cannot be used.
    pub async fn connect(connection: &Connection) -> Result<Self, Error> {
        let mut config = config(connection).await?;
        // A person waits for the answer: an error now is better than minutes of retries.
        config.default_retry = false;
        let (server, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| Error::NoCluster(chain(&error)))?;
        let client = warnings::telling(client);
        Ok(Self { client, server, namespace })
    }

    /// A cluster behind this client.
    #[cfg(test)]
    pub(crate) fn behind(client: Client) -> Self {
        Self { client, server: "http://test.example".to_owned(), namespace: "ns".to_owned() }
    }

    /// All objects of a kind, in one namespace or in the whole cluster. Those that cannot be decoded are left out, and named
    /// to the user.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn list<K>(&self, namespace: Option<&str>) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Debug,
    {
        let Some(namespace) = namespace else { return self.list_all().await };
        let api = Api::<Item<K>>::namespaced(self.client.clone(), namespace);
        let found = self.pages::<K, K>(async |params| api.list(params).await).await?;
        Ok(readable(found))
    }

    /// All objects of a kind in the whole cluster, as [`Cluster::list`].
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn list_all<K>(&self) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = ()> + Clone + Decode<Of = K>,
    {
        let api = Api::<Item<K>>::all(self.client.clone());
        let found = self.pages::<K, K>(async |params| api.list(params).await).await?;
        Ok(readable(found))
    }

    /// The objects of a namespace, or the one of this name in it, with those that cannot be decoded.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn items<K>(&self, namespace: &str, name: Option<&str>) -> Result<Vec<Item<K>>, Error>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Debug,
    {
        let api = Api::<Item<K>>::namespaced(self.client.clone(), namespace);
        let only = name.map(|name| format!("metadata.name={name}"));
        self.pages::<K, K>(async |params| match &only {
            Some(only) => api.list(&params.clone().fields(only)).await,
            None => api.list(params).await,
        })
        .await
    }

    /// The metadata of all objects of a kind in the whole cluster, as far as they can be read.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn list_metadata<K>(&self) -> Result<Vec<ObjectMeta>, Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let url = Api::<K>::all(self.client.clone()).resource_url().to_owned();
        let found = self
            .pages::<K, IgnoredAny>(async |params| {
                let request =
                    Request::new(url.as_str()).list_metadata(params).map_err(kube::Error::BuildRequest)?;
                self.client.request(request).await
            })
            .await?;
        Ok(found.into_iter().map(|item| item.metadata().clone()).collect())
    }

    /// The API server's address.
    pub fn server(&self) -> &str {
        self.server.trim_end_matches('/')
    }

    /// The metadata of the objects of a kind that have a label, and fields as a field selector says, in one namespace or in the
    /// whole cluster.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn list_some_metadata<K>(
        &self,
        namespace: Option<&str>,
        label: &str,
        fields: &str,
    ) -> Result<Vec<ObjectMeta>, Error>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Debug,
    {
        let url = K::url_path(&(), namespace);
        let found = self
            .pages::<K, IgnoredAny>(async |params| {
                let params = params.clone().labels(label).fields(fields);
                let request =
                    Request::new(url.as_str()).list_metadata(&params).map_err(kube::Error::BuildRequest)?;
                self.client.request(request).await
            })
            .await?;
        Ok(found.into_iter().map(|item| item.metadata().clone()).collect())
    }

    /// The objects of a kind that have labels, as a label selector says, in one namespace or in the whole cluster.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn list_some<K>(&self, namespace: Option<&str>, labels: &str) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = ()> + Clone + Decode,
    {
        let url = K::url_path(&(), namespace);
        let found = self
            .pages::<K, K>(async |params| {
                let params = params.clone().labels(labels);
                let request = Request::new(url.as_str()).list(&params).map_err(kube::Error::BuildRequest)?;
                self.client.request(request).await
            })
            .await?;
        Ok(readable(found))
    }

    /// Lists objects as [`pages`] does.
    async fn pages<K, T>(
        &self,
        page: impl AsyncFn(&ListParams) -> kube::Result<ObjectList<Item<T>>>,
    ) -> Result<Vec<Item<T>>, Error>
    where
        K: Resource<DynamicType = ()>,
        T: Clone,
    {
        pages(page).await.map_err(|error| self.explain::<K>(error))
    }

    /// Creates an HTCJob, and returns it as the API server stored it.
    ///
    /// # Errors
    /// When the API server refuses; [`Error::MaybeCreated`] when it does not answer, or fails: the job may be there.
    pub async fn create(&self, namespace: &str, job: &Value) -> Result<Value, Error> {
        let failed = |error: kube::Error| not_created(namespace, &self.server, &error);
        // As kubectl asks for: the API server refuses fields that it does not know, and would drop. kube has no parameter for that.
        let url = format!("{}?fieldValidation=Strict", HTCJob::url_path(&(), Some(namespace)));
        let request = http::Request::post(url).header(CONTENT_TYPE, "application/json");
        let unmade =
            |error| failed(kube::Error::BuildRequest(kube::core::request::Error::BuildRequest(error)));
        let request = request.body(job.to_string().into_bytes()).map_err(unmade)?;
        self.client.request(request).await.map_err(failed)
    }

    /// Changes an object by a merge patch. A patch that names a version changes this version only.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses; [`Error::Contended`] if the object has another version by now;
    /// [`Error::Missing`] if there is no such object.
    pub async fn merge<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<(), Error> {
        let params =
            PatchParams { field_manager: Some("kubectl-slotwright".to_owned()), ..PatchParams::default() };
        let request = Request::new(K::url_path(&(), namespace)).patch(name, &params, &Patch::Merge(patch));
        self.write::<K>("change", name, request).await.map(drop)
    }

    /// Creates an object, in a namespace or of the whole cluster, and returns it as the API server stored it.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn make<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        object: &Value,
    ) -> Result<Value, Error> {
        let name = ["/metadata/name", "/metadata/generateName"].into_iter().find_map(|at| object.pointer(at));
        let name = name.and_then(Value::as_str).unwrap_or_default();
        let request = Request::new(K::url_path(&(), namespace));
        let request = request.create(&PostParams::default(), object.to_string().into_bytes());
        self.write::<K>("create", name, request).await
    }

    /// Deletes the object of this uid, in a namespace or of the whole cluster.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses; [`Error::Contended`] if another object has the name by now;
    /// [`Error::Missing`] if there is no such object.
    pub async fn remove<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
        uid: &str,
    ) -> Result<(), Error> {
        let only = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let how = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
        let request = Request::new(K::url_path(&(), namespace)).delete(name, &how);
        self.write::<K>("delete", name, request).await.map(drop)
    }

    async fn write<K: Resource<DynamicType = ()>>(
        &self,
        verb: &'static str,
        name: &str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, Error> {
        let object = format!("{} {name}", K::kind(&()));
        let refused = |error: kube::Error| match error {
            kube::Error::Api(status) if status.code == 403 => {
                Error::Denied { verb, object: object.clone(), message: status.message.clone() }
            }
            kube::Error::Api(status) if is_missing(&status, name) => {
                Error::Missing { object: object.clone() }
            }
            kube::Error::Api(status) if status.reason == "Conflict" => {
                Error::Contended { verb, object: object.clone() }
            }
            kube::Error::Api(status) => {
                Error::NotWritten { verb, object: object.clone(), message: status.message.clone() }
            }
            other => {
                let message = format!("{}: {}", self.server, chain(&other));
                Error::NotWritten { verb, object: object.clone(), message }
            }
        };
        let request = request.map_err(kube::Error::BuildRequest).map_err(refused)?;
        self.client.request::<Value>(request).await.map_err(refused)
    }

    /// The log of a pod's container, as far as its node keeps the log; with `lines`, the last so many lines. A log need
    /// not be text. The API server refuses to choose among several containers: `container` may be `None` for a pod with
    /// one.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn log(
        &self,
        (namespace, pod): (&str, &str),
        container: Option<String>,
        lines: Option<i64>,
    ) -> Result<Vec<u8>, Error> {
        let failed = |message: String| Error::NoLog { pod: format!("{namespace}/{pod}"), message };
        let lost = |error: kube::Error| failed(format!("{}: {}", self.server(), chain(&error)));
        let wanted = LogParams { container, tail_lines: lines, ..LogParams::default() };
        let request = Request::new(Pod::url_path(&(), Some(namespace))).logs(pod, &wanted);
        let request = request.map_err(|error| failed(error.to_string()))?.map(Into::into);
        let (parts, body) = self.client.send(request).await.map_err(lost)?.into_parts();
        let body = body.collect_bytes().await.map_err(lost)?;
        if parts.status.is_success() { Ok(body.to_vec()) } else { Err(failed(said(&body))) }
    }

    /// Reads an HTCJob.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses; [`Error::Missing`] if there is no such job.
    pub async fn read(&self, namespace: &str, name: &str) -> Result<Value, Error> {
        let request = Request::new(HTCJob::url_path(&(), Some(namespace))).get(name, &GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest);
        let answer = match request {
            Ok(request) => self.client.request(request).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| match error {
            kube::Error::Api(status) if is_missing(&status, name) => {
                Error::Missing { object: format!("HTCJob {namespace}/{name}") }
            }
            error => self.explain::<HTCJob>(error),
        })
    }

    /// Asks a Service, through the API server's proxy: its namespace, its name and the name of its port. The API server asks
    /// whether the user may; the Service is not told who the user is.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn proxied(
        &self,
        (namespace, service, port): (&str, &str, &str),
        path: &str,
        header: Option<(&str, &str)>,
    ) -> Result<Proxied, Error> {
        let failed = |message: String| Error::NoHistory { server: self.server().to_owned(), message };
        let url = format!("/api/v1/namespaces/{namespace}/services/{service}:{port}/proxy/{path}");
        let mut request = http::Request::get(url);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let request = request.body(Vec::new().into()).map_err(|error| failed(error.to_string()))?;
        let answer = self.client.send(request).await.map_err(|error| failed(chain(&error)))?;
        let (parts, body) = answer.into_parts();
        let body = body.collect_bytes().await.map_err(|error| failed(chain(&error)))?;
        if parts.status.is_success() {
            return Ok(Proxied::Body(body.to_vec()));
        }
        Ok(Proxied::Refused { status: parts.status.as_u16(), headers: parts.headers, message: said(&body) })
    }

    /// A text in a Secret.
    ///
    /// # Errors
    /// When the user may not read the Secret, or the Secret has no such key.
    pub async fn secret(&self, namespace: &str, name: &str, key: &str) -> Result<String, Error> {
        let failed = |why: String| {
            let message = format!("its token is in Secret {namespace}/{name}: {why}");
            Error::NoHistory { server: self.server().to_owned(), message }
        };
        let secrets = Api::<Item<Secret>>::namespaced(self.client.clone(), namespace);
        let secret = secrets.get(name).await.map_err(|error| failed(chain(&error)))?;
        let secret = secret.object().map_err(|error| failed(error.to_string()))?;
        let found = secret.data.unwrap_or_default().remove(key);
        let bytes = found.ok_or_else(|| failed(format!("there is no key {key}")))?.0;
        String::from_utf8(bytes).map(|text| text.trim().to_owned()).map_err(|error| failed(error.to_string()))
    }

    fn explain<K: Resource<DynamicType = ()>>(&self, error: kube::Error) -> Error {
        let (plural, group) = (K::plural(&()), K::group(&()));
        let resource = if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") };
        match error {
            kube::Error::Api(status) => refusal(resource, &status),
            other => Error::NoAnswer { resource, server: self.server.clone(), message: chain(&other) },
        }
    }
}

/// The message of a refusal: that of its Status, or else the beginning of its text.
fn said(body: &[u8]) -> String {
    let said = serde_json::from_slice::<Status>(body).map(|status| status.message).ok();
    let said = said.filter(|said| !said.is_empty());
    said.unwrap_or_else(|| String::from_utf8_lossy(body).chars().take(500).collect())
}

/// Lists page after page, so that no single answer is large. The API server forgets the state of which it has shown the first pages,
/// after some minutes or when its store is compacted. Then all objects are listed anew, in one answer: a slow reader would
/// never come to the end of the pages.
async fn pages<T: Clone>(
    page: impl AsyncFn(&ListParams) -> kube::Result<ObjectList<T>>,
) -> kube::Result<Vec<T>> {
    let (mut found, mut params) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = match page(&params).await {
            Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                (found, params) = (Vec::new(), ListParams::default());
                continue;
            }
            page => page?,
        };
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

async fn config(connection: &Connection) -> Result<Config, Error> {
    let read = || match &connection.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let (kubeconfig, context) = (read().ok(), connection.context.as_deref());
    let variable = |name: &str| std::env::var(name).ok();
    proxy::check(kubeconfig.as_ref(), context, variable)?;
    let mut config = if connection.kubeconfig.is_none() && connection.context.is_none() {
        Config::infer().await.map_err(|error| Error::NoCluster(chain(&error)))?
    } else {
        let options =
            KubeConfigOptions { context: connection.context.clone(), ..KubeConfigOptions::default() };
        let no_cluster = |error: kube::config::KubeconfigError| Error::NoCluster(chain(&error));
        Config::from_custom_kubeconfig(read().map_err(no_cluster)?, &options).await.map_err(no_cluster)?
    };
    proxy::choose(&mut config, kubeconfig.as_ref(), context, variable)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use kube::core::{ListMeta, TypeMeta};

    use super::*;

    /// Lists from a server of two pages that has forgotten the state of the first once the second is asked for, so often.
    async fn list(expires: usize) -> (kube::Result<Vec<u32>>, Vec<(Option<u32>, Option<String>)>) {
        let asked = RefCell::new(Vec::new());
        let listed = pages(async |params: &ListParams| {
            let (limit, token) = (params.limit, params.continue_token.clone());
            asked.borrow_mut().push((limit, token.clone()));
            let is_over = asked.borrow().iter().filter(|(_, token)| token.is_some()).count() <= expires;
            let (items, next) = match (limit, token) {
                (None, _) => (vec![1, 2, 3], None),
                (Some(_), None) => (vec![1], Some("next".to_owned())),
                (Some(_), Some(_)) if is_over => {
                    return Err(kube::Error::Api(
                        Status::failure("expired", "Expired").with_code(410).boxed(),
                    ));
                }
                (Some(_), Some(_)) => (vec![2], None),
            };
            let metadata = ListMeta { continue_: next, ..ListMeta::default() };
            Ok(ObjectList { types: TypeMeta::default(), metadata, items })
        });
        let listed = listed.await;
        (listed, asked.into_inner())
    }

    #[tokio::test]
    async fn objects_are_listed_anew_in_one_answer_once_the_state_of_the_first_page_is_forgotten() {
        let (first, second) = ((Some(PAGE), None), (Some(PAGE), Some("next".to_owned())));
        let (listed, asked) = list(0).await;
        assert_eq!((listed.unwrap(), asked), (vec![1, 2], vec![first.clone(), second.clone()]));
        let (listed, asked) = list(1).await;
        assert_eq!((listed.unwrap(), asked), (vec![1, 2, 3], vec![first, second, (None, None)]));
    }

    /// As kubectl creates objects: the API server refuses a field that it does not know, such as a typo in a template.
    #[tokio::test]
    async fn a_job_is_created_strictly() {
        let service = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
            assert_eq!(request.uri().query(), Some("fieldValidation=Strict"));
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::from(b"{}".to_vec())))
        });
        let cluster = Cluster::behind(Client::new(service, "ns"));
        assert_eq!(cluster.create("ns", &serde_json::json!({})).await.unwrap(), serde_json::json!({}));
    }
}
