//! The ConfigMaps with the files that travel with a job.
//!
//! The ConfigMap comes first, since the job names it, and pods that find their files start at once. Once the job is there, the
//! ConfigMap becomes the job's, so that Kubernetes deletes both together. A plugin that dies in between leaves a ConfigMap that
//! nobody owns behind, and a job that has its files. If the API server refuses the job, the ConfigMap is deleted; if nobody knows whether
//! the job is there, the ConfigMap stays.

use std::io::Write;

use ::submit::manifest;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::text_at;
use crate::cluster::{Cluster, Error};

/// Creates an HTCJob, and before it the ConfigMap with its files, if it has any. Returns the HTCJob as the API server stored it.
pub(super) async fn create(
    cluster: &Cluster,
    namespace: &str,
    job: &Value,
    files: Option<&Value>,
    err: &mut dyn Write,
) -> Result<Value, Error> {
    let Some(files) = files else { return cluster.create(namespace, job).await };
    let made = cluster.make::<ConfigMap>(Some(namespace), files).await?;
    let (files, uid) = (text_at(&made, "/metadata/name"), text_at(&made, "/metadata/uid"));
    let mut job = job.clone();
    manifest::name_files(&mut job, &files);
    let created = match cluster.create(namespace, &job).await {
        Ok(created) => created,
        Err(error @ Error::MaybeCreated { .. }) => {
            // Nobody may be there to read it.
            let _ = writeln!(
                err,
                "\nWARNING: ConfigMap {files} with the files of the job stays, since the job may be there; if the job is \
                 not there, type: kubectl delete configmap -n {namespace} {files}"
            );
            return Err(error);
        }
        Err(error) => {
            // The error of the job says what matters.
            let _ = cluster.remove::<ConfigMap>(Some(namespace), &files, &uid).await;
            return Err(error);
        }
    };
    let owner = json!({
        "apiVersion": format!("{}/{}", api::GROUP, api::VERSION), "kind": "HTCJob",
        "name": text_at(&created, "/metadata/name"), "uid": text_at(&created, "/metadata/uid"),
    });
    let patch = json!({"metadata": {"ownerReferences": [owner]}});
    if let Err(error) = cluster.merge::<ConfigMap>(Some(namespace), &files, &patch).await {
        // Nobody may be there to read it.
        let _ = writeln!(
            err,
            "\nWARNING: {error}; the job has its files, but delete ConfigMap {files} yourself after the job"
        );
    }
    Ok(created)
}
