//! Applies manifests as `kubectl apply --server-side -f DIR` does: files in the order of their names, one object
//! after another. An object that is refused does not stop the others.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::{fs, iter};

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, ValidationDirective};
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::scene::Key;

/// kubectl's field manager for server-side apply.
const MANAGER: &str = "kubectl";

/// The project's own examples, so that the demo runs anywhere. `tests/demo.rs` holds the list to the directory.
pub const EMBEDDED: &[(&str, &str)] = &[
    ("00-namespaces.yaml", include_str!("../../../examples/00-namespaces.yaml")),
    ("10-groupquotas.yaml", include_str!("../../../examples/10-groupquotas.yaml")),
    ("15-submitters.yaml", include_str!("../../../examples/15-submitters.yaml")),
    ("20-negotiator.yaml", include_str!("../../../examples/20-negotiator.yaml")),
    ("25-nodepolicy.yaml", include_str!("../../../examples/25-nodepolicy.yaml")),
    ("26-nodepolicy-config.yaml", include_str!("../../../examples/26-nodepolicy-config.yaml")),
    ("27-submitpolicy.yaml", include_str!("../../../examples/27-submitpolicy.yaml")),
    ("29-hello.yaml", include_str!("../../../examples/29-hello.yaml")),
    ("30-pi-sweep.yaml", include_str!("../../../examples/30-pi-sweep.yaml")),
    ("31-priorities.yaml", include_str!("../../../examples/31-priorities.yaml")),
    ("32-gpu-training.yaml", include_str!("../../../examples/32-gpu-training.yaml")),
    ("33-assembly.yaml", include_str!("../../../examples/33-assembly.yaml")),
    ("34-higgs.yaml", include_str!("../../../examples/34-higgs.yaml")),
    ("35-neutrino.yaml", include_str!("../../../examples/35-neutrino.yaml")),
    ("36-arm64.yaml", include_str!("../../../examples/36-arm64.yaml")),
];

/// A file of manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The file's name.
    pub name: String,
    /// Its YAML.
    pub text: String,
}

/// The YAML files of a directory, in the order of names.
///
/// # Errors
/// When the directory or a file cannot be read.
pub fn read_dir(dir: &Path) -> io::Result<Vec<Manifest>> {
    let named =
        |error: io::Error, path: &Path| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| named(error, dir))? {
        let path = entry?.path();
        let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        if is_yaml && path.is_file() {
            let text = fs::read_to_string(&path).map_err(|error| named(error, &path))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(Manifest { name, text });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The manifests of `dir`. Without `dir`, those of `./examples` if there are any, or else the embedded ones.
///
/// # Errors
/// When a directory or file cannot be read, or `dir` has no YAML files.
pub fn find(dir: Option<&Path>) -> io::Result<Vec<Manifest>> {
    if let Some(dir) = dir {
        let found = read_dir(dir)?;
        if found.is_empty() {
            let message = format!("{}: there are no .yaml files in this directory", dir.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        return Ok(found);
    }
    let beside = Path::new("examples");
    let found = if beside.is_dir() { read_dir(beside)? } else { Vec::new() };
    if !found.is_empty() {
        return Ok(found);
    }
    Ok(EMBEDDED
        .iter()
        .map(|(name, text)| Manifest { name: (*name).to_owned(), text: (*text).to_owned() })
        .collect())
}

/// The outcome of applying the objects of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The HTCJobs that the API server took.
    pub jobs: Vec<Key>,
    /// All objects that the API server took, as kubectl names them: `htcjob/pi-sweep`.
    pub taken: Vec<String>,
    /// The objects that the API server refused, and why.
    pub refused: Vec<String>,
}

/// Applies manifests, and remembers which resource serves each kind.
pub struct Applier {
    client: Client,
    kinds: BTreeMap<String, (ApiResource, ApiCapabilities)>,
}

impl Applier {
    /// An applier that has applied nothing yet.
    pub fn new(client: Client) -> Self {
        Self { client, kinds: BTreeMap::new() }
    }

    /// Applies the objects of a file. An object that is refused is noted in the result, and the next one is applied.
    pub async fn apply(&mut self, file: &Manifest) -> Applied {
        let mut applied = Applied::default();
        let objects: Vec<Value> = match serde_saphyr::from_multiple(&file.text) {
            Ok(objects) => objects,
            Err(error) => {
                applied.refused.push(format!("{}: {error}", file.name));
                return applied;
            }
        };
        for (number, object) in iter::zip(1.., objects).filter(|(_, object)| !object.is_null()) {
            let place = format!("{}, document {number}", file.name);
            match serde_json::from_value::<DynamicObject>(object) {
                Ok(object) => self.one(object, &place, &mut applied).await,
                Err(error) => applied.refused.push(format!("{place}: {error}")),
            }
        }
        applied
    }

    async fn one(&mut self, object: DynamicObject, place: &str, applied: &mut Applied) {
        let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
        let name = object.name_any();
        match self.send(&object).await {
            Ok(taken) => {
                applied.taken.push(format!("{}/{name}", kind.to_lowercase()));
                if kind == "HTCJob" {
                    applied.jobs.push(Key { namespace: taken.namespace().unwrap_or_default(), name });
                }
            }
            Err(error) => {
                let why = match error {
                    kube::Error::Api(status) => status.message.clone(),
                    other => other.to_string(),
                };
                applied.refused.push(format!("{place}, {kind} {name}: {why}"));
            }
        }
    }

    async fn send(&mut self, object: &DynamicObject) -> kube::Result<DynamicObject> {
        let types = object.types.clone().unwrap_or_default();
        let key = format!("{} {}", types.api_version, types.kind);
        if !self.kinds.contains_key(&key) {
            let kind = GroupVersionKind::try_from(&types).map_err(|error| {
                kube::Error::Discovery(kube::error::DiscoveryError::InvalidGroupVersion(error.to_string()))
            })?;
            let found = pinned_kind(&self.client, &kind).await?;
            self.kinds.insert(key.clone(), found);
        }
        let Some((resource, capabilities)) = self.kinds.get(&key) else {
            return Err(kube::Error::Discovery(kube::error::DiscoveryError::MissingKind(key)));
        };
        let api: Api<DynamicObject> = match (capabilities.scope == Scope::Namespaced, object.namespace()) {
            (false, _) => Api::all_with(self.client.clone(), resource),
            (true, Some(namespace)) => Api::namespaced_with(self.client.clone(), &namespace, resource),
            (true, None) => Api::default_namespaced_with(self.client.clone(), resource),
        };
        let mut params = PatchParams::apply(MANAGER);
        params.field_validation = Some(ValidationDirective::Strict);
        api.patch(&object.name_any(), &params, &Patch::Apply(object)).await
    }
}
