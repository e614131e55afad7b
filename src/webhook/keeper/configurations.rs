//! The webhook's configurations, into which the authority of the certificate is written.

use std::fmt::Debug;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Failed, call};

/// The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration of one name.
pub(super) struct Configurations {
    validating: Api<ValidatingWebhookConfiguration>,
    mutating: Api<MutatingWebhookConfiguration>,
    name: String,
}

impl Configurations {
    /// The configurations of this name.
    pub(super) fn new(client: Client, name: &str) -> Self {
        Self { validating: Api::all(client.clone()), mutating: Api::all(client), name: name.to_owned() }
    }

    /// Writes the authorities into the configurations, unless they are there. Nothing else in a configuration changes. One of the two
    /// configurations may be missing.
    pub(super) async fn announce(&self, authorities: &str) -> Result<(), Failed> {
        let validating = |found: &ValidatingWebhookConfiguration| {
            let webhooks = found.webhooks.iter().flatten();
            bundle_patch(webhooks.map(|webhook| (webhook.name.as_str(), &webhook.client_config)), authorities)
        };
        let mutating = |found: &MutatingWebhookConfiguration| {
            let webhooks = found.webhooks.iter().flatten();
            bundle_patch(webhooks.map(|webhook| (webhook.name.as_str(), &webhook.client_config)), authorities)
        };
        let found = [
            self.announce_in(&self.validating, validating).await?,
            self.announce_in(&self.mutating, mutating).await?,
        ];
        if found == [false, false] {
            return Err(Failed::NoConfiguration(self.name.clone()));
        }
        Ok(())
    }

    /// Writes what `patch` says into one configuration. Returns whether there is such a configuration.
    async fn announce_in<K>(
        &self,
        configurations: &Api<K>,
        patch: impl Fn(&K) -> Option<Value>,
    ) -> Result<bool, Failed>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let name = &self.name;
        let what = format!("{} {name}", K::kind(&()));
        let Some(found) = call(what.clone(), configurations.get_opt(name)).await? else { return Ok(false) };
        if let Some(patch) = patch(&found) {
            call(what, configurations.patch(name, &PatchParams::default(), &Patch::Strategic(patch))).await?;
        }
        Ok(true)
    }
}

/// A strategic merge patch that writes the authorities into each webhook of a configuration, and nothing else. `None` if
/// they are there.
fn bundle_patch<'a>(
    webhooks: impl Iterator<Item = (&'a str, &'a WebhookClientConfig)>,
    authorities: &str,
) -> Option<Value> {
    let bundle = ByteString(authorities.as_bytes().to_vec());
    let stale = webhooks.filter(|(_, config)| config.ca_bundle.as_ref() != Some(&bundle));
    // The API server merges the list by the webhooks' names.
    let stale: Vec<Value> =
        stale.map(|(name, _)| json!({"name": name, "clientConfig": {"caBundle": bundle}})).collect();
    (!stale.is_empty()).then(|| json!({"webhooks": stale}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bundle_of_webhooks_that_lack_it_is_written() {
        let bundle = |text: &str| ByteString(text.as_bytes().to_vec());
        let of = |webhooks: Value| -> ValidatingWebhookConfiguration {
            serde_json::from_value(json!({"metadata": {"name": "slotwright"}, "webhooks": webhooks})).unwrap()
        };
        let webhook = |name: &str, has: Option<&str>| {
            json!({"name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                   "clientConfig": {"service": {"name": "s", "namespace": "n"}, "caBundle": has.map(bundle)}})
        };
        let (new, old, none) = (webhook("a", Some("new")), webhook("b", Some("old")), webhook("c", None));
        let to = |name: &str| json!({"name": name, "clientConfig": {"caBundle": bundle("new")}});
        for (webhooks, written) in [
            (json!([]), None),
            (json!([new]), None),
            (json!([new, old, none]), Some(json!({"webhooks": [to("b"), to("c")]}))),
        ] {
            let found = of(webhooks);
            let found = found
                .webhooks
                .iter()
                .flatten()
                .map(|webhook| (webhook.name.as_str(), &webhook.client_config));
            assert_eq!(bundle_patch(found, "new"), written);
        }
    }
}
