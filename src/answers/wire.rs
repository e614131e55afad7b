//! Calls whose answers are read as [`Item`]s. kube's own calls that send an object answer with the type of that object; an
//! [`Item`] is for reading only.

use http::header::ACCEPT;
use http::{HeaderValue, Uri};
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

/// Sends a write of which the caller wants the metadata alone. Nobody reads the warnings about unknown fields that such an answer could
/// have, and to look for unknown fields the API server decodes an object in a slower way.
async fn for_metadata<T: Decode<Of: Resource> + Clone>(
    api: &Api<Item<T>>,
    mut request: http::Request<Vec<u8>>,
) -> Result<ObjectMeta, kube::Error> {
    request.headers_mut().insert(ACCEPT, METADATA);
    *request.uri_mut() = without_field_validation(request.uri()).map_err(kube::Error::HttpError)?;
    let item: Item<MetadataAlone> = api.clone().into_client().request(request).await?;
    Ok(item.into_parts().0)
}

/// The address of a write, with the parameter by which the API server drops unknown fields and says nothing.
fn without_field_validation(uri: &Uri) -> Result<Uri, http::Error> {
    let separator = if uri.query().is_some() { '&' } else { '?' };
    Ok(format!("{uri}{separator}fieldValidation=Ignore").parse()?)
}

/// An object of which the caller wants the metadata alone: nothing else is decoded.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_for_its_metadata_asks_for_no_warnings() {
        for (uri, asks) in [
            ("/api/v1/namespaces/a/pods?", "/api/v1/namespaces/a/pods?&fieldValidation=Ignore"),
            ("/api/v1/pods", "/api/v1/pods?fieldValidation=Ignore"),
            ("/api/v1/pods?&fieldManager=m", "/api/v1/pods?&fieldManager=m&fieldValidation=Ignore"),
        ] {
            assert_eq!(without_field_validation(&uri.parse().unwrap()).unwrap(), asks);
        }
    }
}
