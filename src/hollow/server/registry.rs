//! The served resources: the built-in ones, and those of the stored CRDs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::resource::{Resource, StorageId};

/// The resources of one CRD, and the version of the CRD object from which they were read.
#[derive(Debug)]
struct Served {
    object_version: u64,
    resources: Vec<Arc<Resource>>,
}

/// All served resources of one server.
#[derive(Debug)]
pub(super) struct Registry {
    built_in: Vec<Arc<Resource>>,
    custom: RwLock<BTreeMap<String, Served>>,
}

impl Registry {
    /// The built-in resources only.
    pub(super) fn new() -> Self {
        let built_in = super::builtin::resources().into_iter().map(Arc::new).collect();
        Self { built_in, custom: RwLock::new(BTreeMap::new()) }
    }

    /// Serves the resources of a CRD, unless those of a newer version of the CRD are served already.
    pub(super) fn serve(&self, crd: &str, object_version: u64, resources: Vec<Resource>) {
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        if custom.get(crd).is_some_and(|served| served.object_version > object_version) {
            return;
        }
        let resources = resources.into_iter().map(Arc::new).collect();
        custom.insert(crd.to_owned(), Served { object_version, resources });
    }

    /// Stops serving a CRD that was deleted.
    pub(super) fn remove(&self, crd: &str, object_version: u64) {
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        if custom.get(crd).is_some_and(|served| served.object_version < object_version) {
            custom.remove(crd);
        }
    }

    /// Every served resource: core first, then groups in order.
    pub(super) fn all(&self) -> Vec<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Arc<Resource>> = self.built_in.clone();
        all.extend(custom.values().flat_map(|served| served.resources.iter().cloned()));
        all
    }

    fn find(&self, wanted: impl Fn(&Resource) -> bool) -> Option<Arc<Resource>> {
        if let Some(found) = self.built_in.iter().find(|r| wanted(r)) {
            return Some(Arc::clone(found));
        }
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.values().flat_map(|served| served.resources.iter()).find(|r| wanted(r)).cloned()
    }

    /// The resource behind `/apis/<group>/<version>/<plural>`.
    pub(super) fn resolve(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.find(|r| r.plural == plural && r.version == version && r.group == group)
    }

    /// A resource through which the objects of a storage can be read and written, preferably in the stored version.
    pub(super) fn by_storage(&self, id: &StorageId) -> Option<Arc<Resource>> {
        self.find(|r| r.storage == *id && r.api_version() == r.storage_api_version)
            .or_else(|| self.find(|r| r.storage == *id))
    }

    /// One of the resources of a CRD; all of them share one storage.
    pub(super) fn of_crd(&self, crd: &str) -> Option<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.get(crd)?.resources.first().cloned()
    }
}
