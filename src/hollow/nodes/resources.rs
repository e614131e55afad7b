//! Resource amounts as kubelet and scheduler count them: integers by name. CPU is in millicores; all other resources
//! are in base units.
//!
//! Quantities round up, as `Quantity.MilliValue` and `Quantity.Value` do.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// CPU, in millicores.
pub const CPU: &str = "cpu";
/// Memory, in bytes.
pub const MEMORY: &str = "memory";
/// Local disk, in bytes.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// The number of pods that a node admits. Only a node's allocatable has it; no pod requests it.
pub const PODS: &str = "pods";

/// A text that is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "resource {resource}: {text:?} is not a quantity: write a number with an optional suffix like 500m, 2 or 4Gi"
)]
pub struct QuantityError {
    /// The resource whose amount could not be read.
    pub resource: String,
    /// The text of the amount.
    pub text: String,
}

/// Amounts by resource name. In sums an absent name counts as zero; [`Resources::contains`] tells the two apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources(BTreeMap<String, i64>);

impl Resources {
    /// Reads a Kubernetes resource list.
    pub fn parse(list: &BTreeMap<String, Quantity>) -> Result<Self, QuantityError> {
        let amount = |(name, quantity): (&String, &Quantity)| match amount_of(name, &quantity.0) {
            Some(value) => Ok((name.clone(), value)),
            None => Err(QuantityError { resource: name.clone(), text: quantity.0.clone() }),
        };
        list.iter().map(amount).collect::<Result<_, _>>().map(Self)
    }

    /// The amount of `name`, zero when absent.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Whether `name` is listed, even if its amount is zero.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sets the amount of `name`.
    pub fn set(&mut self, name: &str, amount: i64) {
        self.0.insert(name.to_owned(), amount);
    }

    /// Adds `other`, name by name. Sums stop at the limits of 64 bits.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.get(name).saturating_add(*amount);
            self.0.insert(name.clone(), sum);
        }
    }

    /// Raises each amount to the amount of `other`, if that is larger.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.get(name).max(*amount);
            self.0.insert(name.clone(), most);
        }
    }

    /// All names and amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// These amounts as a Kubernetes resource list.
    pub fn to_quantities(&self) -> BTreeMap<String, Quantity> {
        let text = |name: &str, amount: i64| match name {
            CPU if amount % 1000 != 0 => format!("{amount}m"),
            CPU => (amount / 1000).to_string(),
            MEMORY | EPHEMERAL_STORAGE if amount > 0 && amount % 1024 == 0 => format!("{}Ki", amount / 1024),
            _ => amount.to_string(),
        };
        self.iter().map(|(name, amount)| (name.to_owned(), Quantity(text(name, amount)))).collect()
    }
}

impl<const N: usize> From<[(&str, i64); N]> for Resources {
    fn from(pairs: [(&str, i64); N]) -> Self {
        Self(pairs.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect())
    }
}

/// The amounts that a pod requests of its node: the sum over its containers, or the request of an init container
/// together with the sidecars that run beside it, whichever is larger; plus the overhead of its runtime class. A
/// missing request defaults to the limit, as in the API server.
pub fn pod_requests(spec: &PodSpec) -> Result<Resources, QuantityError> {
    let mut total = Resources::default();
    for container in &spec.containers {
        total.add(&container_requests(container)?);
    }
    let mut sidecars = Resources::default();
    let mut init_peak = Resources::default();
    for container in spec.init_containers.iter().flatten() {
        let mut need = container_requests(container)?;
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&need);
            total.add(&need);
            init_peak.raise_to(&sidecars);
        } else {
            need.add(&sidecars);
            init_peak.raise_to(&need);
        }
    }
    total.raise_to(&init_peak);
    if let Some(overhead) = &spec.overhead {
        total.add(&Resources::parse(overhead)?);
    }
    Ok(total)
}

fn container_requests(container: &Container) -> Result<Resources, QuantityError> {
    let Some(resources) = &container.resources else { return Ok(Resources::default()) };
    let mut list = resources.limits.clone().unwrap_or_default();
    list.extend(resources.requests.clone().unwrap_or_default());
    Resources::parse(&list)
}

/// An amount in the unit in which the resource is counted. An amount that does not fit into 64 bits becomes the nearest
/// that does. `None`: the text is not a quantity.
fn amount_of(name: &str, text: &str) -> Option<i64> {
    let quantity: kube_schema::Quantity = text.parse().ok()?;
    let amount = if name == CPU { quantity.milli() } else { quantity.units() };
    Some(i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        let cases = [
            ("cpu", "1", Some(1000)),
            ("cpu", "250m", Some(250)),
            ("cpu", "0.1", Some(100)),
            ("cpu", "1u", Some(1)),
            ("cpu", "2e3", Some(2_000_000)),
            ("memory", "1Ki", Some(1024)),
            ("memory", "1.5Gi", Some(1_610_612_736)),
            ("memory", "128974848", Some(128_974_848)),
            ("memory", "129M", Some(129_000_000)),
            ("memory", "1500m", Some(2)),
            ("memory", "-1", Some(-1)),
            ("memory", "8Ei", Some(i64::MAX)),
            ("memory", "-9Ei", Some(i64::MIN)),
            ("memory", "1E", Some(1_000_000_000_000_000_000)),
            ("memory", "", None),
            ("memory", ".", None),
            ("memory", "1-2", None),
            ("memory", "1.2.3", None),
            ("memory", "10GB", None),
            ("memory", "1e99999", None),
            ("memory", "e3", None),
        ];
        for (name, text, expected) in cases {
            assert_eq!(amount_of(name, text), expected, "{name} {text:?}");
        }
    }

    #[test]
    fn a_pod_takes_the_larger_of_containers_and_init_with_its_sidecars() {
        let spec = json!({
            "initContainers": [
                {"name": "a", "resources": {"requests": {"cpu": "1"}}},
                {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                {"name": "b", "resources": {"requests": {"cpu": "3"}}},
            ],
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                {"name": "d", "resources": {"limits": {"cpu": "500m", "nvidia.com/gpu": "2"}}},
            ],
            "overhead": {"memory": "1Mi"},
        });
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        let expected = [(CPU, 3100), (MEMORY, 1_074_790_400), ("nvidia.com/gpu", 2)];
        assert_eq!(pod_requests(&spec), Ok(Resources::from(expected)));
    }

    proptest! {
        #[test]
        fn amounts_survive_their_own_text(cpu in 0..1_000_000_i64, memory in 0..(1_i64 << 50)) {
            let amounts = Resources::from([(CPU, cpu), (MEMORY, memory)]);
            prop_assert_eq!(Resources::parse(&amounts.to_quantities()), Ok(amounts));
        }
    }
}
