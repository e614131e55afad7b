//! `ConcurrencyLimit`: how much there is of a thing that jobs share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::schema;

/// How much there is of something that jobs share and no node has: licenses, connections to a database. Jobs request
/// amounts in spec.concurrencyLimits; claims never take more than there is.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "ConcurrencyLimit",
    plural = "concurrencylimits",
    singular = "concurrencylimit",
    shortname = "climit",
    category = "slotwright",
    doc = "How much there is of a thing that jobs share.",
    status = "ConcurrencyLimitStatus",
    derive = "PartialEq",
    printcolumn(name = "Limit", type_ = "number", json_path = ".spec.limit"),
    printcolumn(
        name = "OfEach",
        type_ = "number",
        json_path = ".spec.limitOfEach",
        description = "The limit of each thing of the set of this name."
    ),
    printcolumn(name = "InUse", type_ = "number", json_path = ".status.inUse"),
    printcolumn(
        name = "Claims",
        type_ = "integer",
        json_path = ".status.claims",
        description = "Claims that hold some of it."
    ),
    printcolumn(
        name = "Waiting",
        type_ = "integer",
        json_path = ".status.waiting",
        description = "Procs that wait for it."
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct ConcurrencyLimitSpec {
    /// The limit's name, or the set's, where it differs from the object's: NETWORK_A, for example, is no valid object name.
    /// The case of letters makes no difference. A name with a dot, LARGE.SWLICENSE, is one of a set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$")
    )]
    pub name: Option<String>,
    /// How much there is, in units of your own: <name>_LIMIT. Lowering it below what is in use ends no job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub limit: Option<f64>,
    /// How much there is of each limit <name>.<member> in the set of this name that has no limit of its own:
    /// CONCURRENCY_LIMIT_DEFAULT_<name>.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub limit_of_each: Option<f64>,
}

/// How much is in use.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConcurrencyLimitStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The limit's name, in lower case.
    #[serde(default)]
    pub name: String,
    /// How much of the limit claims have taken.
    #[serde(default)]
    pub in_use: f64,
    /// How many claims have taken some of the limit.
    #[serde(default)]
    pub claims: i64,
    /// Procs that waited for the limit, or for a member of the set, when the last cycle ended. Only procs whose limits do
    /// not depend on the machine are counted.
    #[serde(default)]
    pub waiting: i64,
    /// The members of a set of which some is in use, twenty at the most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub of_set: Vec<LimitInUse>,
    /// Accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// One member of a set.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitInUse {
    /// The limit's name, in lower case.
    pub name: String,
    /// How much of it claims hold.
    pub in_use: f64,
    /// How much there is.
    pub limit: f64,
}
