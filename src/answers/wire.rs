//! Calls whose answers are read as [`Item`]s. kube's own calls that send an object answer with the type of that object; an
//! [`Item`] is for reading only.

use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::{ObjectList, Request};
use kube::{Api, Resource};
use serde::Serialize;

use crate::decode::{Decode, Item};

type Answer<T> = Result<Item<T>, kube::Error>;

/// Creates an object.
///
/// # Errors
/// When the API server refuses the call, or does not answer.
pub async fn make<T: Decode<Of: Resource> + Clone>(
    api: &Api<Item<T>>,
    params: &PostParams,
    object: &impl Serialize,
) -> Answer<T> {
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let request = Request::new(api.resource_url()).create(params, body).map_err(kube::Error::BuildRequest)?;
    api.clone().into_client().request(request).await
}

/// Lists the metadata of objects.
///
/// # Errors
/// When the API server refuses the call, or does not answer.
pub async fn list_metadata<T: Decode<Of: Resource> + Clone>(
    api: &Api<Item<T>>,
    params: &ListParams,
) -> Result<ObjectList<Item<T>>, kube::Error> {
    let request =
        Request::new(api.resource_url()).list_metadata(params).map_err(kube::Error::BuildRequest)?;
    api.clone().into_client().request(request).await
}

/// Replaces the object of this name.
///
/// # Errors
/// When the API server refuses the call, or does not answer.
pub async fn replace<T: Decode<Of: Resource> + Clone>(
    api: &Api<Item<T>>,
    name: &str,
    object: &impl Serialize,
) -> Answer<T> {
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let params = PostParams::default();
    let request = Request::new(api.resource_url()).replace(name, &params, body);
    api.clone().into_client().request(request.map_err(kube::Error::BuildRequest)?).await
}

/// Deletes an object. Returns the object as it is then, or else the API server's status, which has no metadata. kube's
/// own call fails if the object nests deeply, although the object is deleted.
///
/// # Errors
/// When the API server refuses the call, or does not answer.
pub async fn remove<T: Decode<Of: Resource> + Clone>(
    api: &Api<Item<T>>,
    name: &str,
    params: &DeleteParams,
) -> Answer<T> {
    let request = Request::new(api.resource_url()).delete(name, params).map_err(kube::Error::BuildRequest)?;
    api.clone().into_client().request(request).await
}
