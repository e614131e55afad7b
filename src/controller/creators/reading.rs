//! Asks the API server whether the admission policies that stamp jobs are in force.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use tokio::time::timeout;

use super::stamp::Standing;
use answers::{Item, Pauses};

/// The kinds of the objects, with the plurals that addresses have. All four objects have the same name.
const KINDS: [(&str, &str); 4] = [
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
];

/// How long the API server may take for all answers together.
const LIMIT: Duration = Duration::from_secs(20);

const GROUP: &str = "admissionregistration.k8s.io";

/// The question whether policies are in force.
#[derive(Clone)]
pub(super) struct Question {
    name: Arc<str>,
    client: Client,
    pauses: Pauses,
}

impl Question {
    /// Whether the policies of this name are in force.
    pub(super) fn new(name: Arc<str>, client: Client, pauses: Pauses) -> Self {
        Self { name, client, pauses }
    }

    /// The policies' name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Asks until the API server answers. If the API server refuses, because the operator may not get the policies, they count as not in
    /// force.
    pub(super) async fn ask(mut self) -> Standing {
        loop {
            match timeout(LIMIT, self.answer()).await {
                Ok(Ok(standing)) => return standing,
                Ok(Err(error)) => tracing::warn!(
                    error = %answers::chain(&error),
                    policies = &*self.name,
                    "the API server has not said whether the admission policies that stamp jobs are in force; new jobs wait"
                ),
                Err(_) => tracing::warn!(
                    policies = &*self.name,
                    "the API server has not said for {LIMIT:?} whether the admission policies that stamp jobs are in force; new jobs wait"
                ),
            }
            if let Some(pause) = self.pauses.next() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    async fn answer(&self) -> Result<Standing, kube::Error> {
        let mut found = Vec::new();
        for (kind, plural) in KINDS {
            match self.get(kind, plural).await {
                Ok(object) => found.push((kind, object)),
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    return Ok(Standing::Not(format!(
                        "the operator may not get the {kind} {}: {}",
                        self.name, status.message
                    )));
                }
                Err(error) => return Err(error),
            }
        }
        let found = found.iter().map(|(kind, object)| (*kind, object.as_ref()));
        Ok(Standing::of(&self.name, found))
    }

    /// The metadata of one of the objects, if the object is there.
    async fn get(&self, kind: &str, plural: &str) -> Result<Option<ObjectMeta>, kube::Error> {
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{GROUP}/v1"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let api = Api::<Item<DynamicObject>>::all_with(self.client.clone(), &resource);
        Ok(api.get_opt(&self.name).await?.map(|object| object.metadata().clone()))
    }
}
