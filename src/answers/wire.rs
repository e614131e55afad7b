//! Calls whose answers are read as [`Item`]s. kube's own calls that send an object answer with the type of that object; an
//! [`Item`] is for reading only.

use http::HeaderValue;
use http::header::ACCEPT;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::{ObjectList, Request};
use kube::{Api, Resource};
use serde::Serialize;

use crate::decode::{Decode, Item, Parts};

type Answer<T> = Result<Item<T>, kube::Error>;

/// The form of an answer that has nothing of an object but its metadata.
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");

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

/// Creates an object, and returns the metadata of the object that the API server made. The server sends no more than that.
///
/// # Errors
/// When the API server refuses the call, or does not answer.
pub async fn make_for_metadata<T: Decode<Of: Resource> + Clone>(
    api: &Api<Item<T>>,
    params: &PostParams,
    object: &impl Serialize,
) -> Result<ObjectMeta, kube::Error> {
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let request = Request::new(api.resource_url()).create(params, body).map_err(kube::Error::BuildRequest)?;
    for_metadata(api, request).await
}

/// Patches an object, and returns the metadata of the patched object. The API server sends no more than that.
///
/// # Errors
/// When the API server refuses the call, or does not answer.
pub async fn patch_for_metadata<T: Decode<Of: Resource> + Clone>(
    api: &Api<Item<T>>,
    name: &str,
    params: &PatchParams,
    patch: &Patch<impl Serialize>,
) -> Result<ObjectMeta, kube::Error> {
    let request = Request::new(api.resource_url()).patch(name, params, patch);
    for_metadata(api, request.map_err(kube::Error::BuildRequest)?).await
}

async fn for_metadata<T: Decode<Of: Resource> + Clone>(
    api: &Api<Item<T>>,
    mut request: http::Request<Vec<u8>>,
) -> Result<ObjectMeta, kube::Error> {
    request.headers_mut().insert(ACCEPT, METADATA);
    let item: Item<MetadataAlone> = api.clone().into_client().request(request).await?;
    Ok(item.into_parts().0)
}

/// What is read of an object of which the caller wants the metadata alone.
struct MetadataAlone;

impl Decode for MetadataAlone {
    type Of = ();

    fn decode(_: &Parts<'_>) -> Result<Self, serde_json::Error> {
        Ok(Self)
    }
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
