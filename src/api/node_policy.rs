//! `NodePolicy`: the startd's configuration for the nodes that it selects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pod_template::pod_template;
use super::schema;

/// The owner's policy for some nodes. Nodes that no policy selects are offered with HTCondor's defaults. Where several
/// select a node, the one with the greatest precedence counts, then the first by name.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[kube(
    group = "slotwright.dev",
    version = "v1alpha1",
    kind = "NodePolicy",
    plural = "nodepolicies",
    singular = "nodepolicy",
    shortname = "npol",
    category = "slotwright",
    doc = "The owner's policy for some nodes: the startd's configuration.",
    status = "NodePolicyStatus",
    derive = "PartialEq",
    printcolumn(name = "Precedence", type_ = "integer", json_path = ".spec.precedence"),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodes",
        description = "Nodes that it governs."
    ),
    printcolumn(
        name = "Start",
        type_ = "string",
        json_path = ".spec.start",
        priority = 1,
        description = "The field start. Empty if START is in the configuration text."
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].reason"
    ),
    printcolumn(
        name = "Applied",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"FullyApplied\")].reason",
        description = "Whether everything that the text says is acted on."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Overlaps",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Overlaps\")].status",
        priority = 1,
        description = "Whether another NodePolicy gets in this one's way."
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].message",
        priority = 1,
        description = "That the policy is in force, or its errors."
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NodePolicySpec {
    /// Which nodes, by their labels. Unset means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub node_selector: Option<LabelSelector>,
    /// Which policy counts where several select a node: the greatest.
    #[serde(default)]
    pub precedence: i32,
    /// The startd's configuration in HTCondor's own configuration language, as in a condor_config file: START,
    /// SLOT_WEIGHT, CLAIM_WORKLIFE, STARTD_ATTRS with the attributes that it names, macros, if and use. Other knobs are
    /// checked, and the condition FullyApplied names those that nothing acts on yet. If the text has errors, the condition
    /// Accepted gives line and column of each, and the last accepted spec stays in force. Give a knob here or by a field
    /// below, not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub config: Option<String>,
    /// START: a ClassAd expression that a job must make true to run on these nodes. MY is the slot, TARGET the job. Unset
    /// means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub start: Option<String>,
    /// The time zone of ClockMin and ClockDay, by its name in the IANA database, such as Europe/Zurich. Unset means UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: Option<String>,
    /// SLOT_WEIGHT: a ClassAd expression for what a slot costs its user. Unset means Cpus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub slot_weight: Option<String>,
    /// CLAIM_WORKLIFE, in seconds: for how long a claim may start more procs of its submitter. Negative means without a
    /// limit. Unset means 1200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_worklife_seconds: Option<i64>,
    /// STARTD_ATTRS: more attributes of the slots' ads, attribute name to ClassAd expression. A string needs its own
    /// quotes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 1024,
        "additionalProperties" = { "type": "string", "maxLength": 65536 }
    ))]
    pub attributes: BTreeMap<String, String>,
    /// Pods that run in slots that nobody has claimed. A slot runs one only if config has ENABLE_BACKFILL = true and
    /// START_BACKFILL is true of the slot. EVICT_BACKFILL, a match, the owner or a drain ends the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<PolicyBackfill>,
    /// Taints that the pool's pods tolerate. A node with another taint of effect NoSchedule or NoExecute offers nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tolerations: Vec<PolicyToleration>,
    /// Whether a cordoned node is drained gracefully until it is uncordoned. Without this field a cordon keeps new pods
    /// away and evicts nobody, as in Kubernetes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drain_cordoned: bool,
}

/// Backfill work, for which HTCondor has the BOINC client.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct PolicyBackfill {
    /// The namespace in which the pods run. It must exist.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// A pod template, as in a Job. The first container gets the resources of the slot that nobody has claimed, less what
    /// other containers request. The operator sets nodeName, and, if the template gives none, priorityClassName: pods of
    /// slotwright-backfill may be preempted for any other pod. With restartPolicy Always, the default, the kubelet
    /// restarts a container that ends; otherwise the operator makes another pod after a while.
    #[schemars(schema_with = "pod_template")]
    pub template: serde_json::Value,
}

/// A toleration that every pod on these nodes gets.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct PolicyToleration {
    /// The taint's key; empty for every taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub key: Option<String>,
    /// The taint's value; unset for any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// The taint's effect; unset for any effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^(NoSchedule|PreferNoSchedule|NoExecute)?$"))]
    pub effect: Option<String>,
}

/// Whether the policy is in force, and on how many nodes.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePolicyStatus {
    /// The metadata.generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many nodes the policy governs.
    #[serde(default)]
    pub nodes: i64,
    /// The spec in force, as JSON: the last one that was accepted. An operator that starts reads it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_spec: Option<String>,
    /// Accepted and FullyApplied; and Overlaps, if there are several NodePolicies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
