//! Labels, annotations, finalizers and field managers that the operator puts on objects.

/// On a pod and a Slot: the uid of the HTCJob it works for.
pub const JOB_UID: &str = "slotwright.dev/job-uid";
/// On a pod and a Slot: the name of the HTCJob it works for.
pub const JOB_NAME: &str = "slotwright.dev/job-name";
/// On a pod: the proc's number within its job.
pub const PROC: &str = "slotwright.dev/proc";
/// On a pod, as annotation: the slot that it runs in, or does backfill work for, by HTCondor's name, such as `slot1_3@node7`.
pub const SLOT: &str = "slotwright.dev/slot";
/// On a pod: `"true"` on one that does backfill work in a slot that nobody has claimed.
pub const BACKFILL: &str = "slotwright.dev/backfill";
/// On a backfill pod, as annotation: by which pods of one template are told from those of another.
pub const BACKFILL_TEMPLATE: &str = "slotwright.dev/backfill-template";
/// The `PriorityClass` of backfill pods whose template names none. The chart makes it: the scheduler lets every pod of greater
/// priority have their place.
pub const BACKFILL_PRIORITY: &str = "slotwright-backfill";
/// On a Slot and a `PartitionableSlot`: the node that it was carved from.
pub const NODE: &str = "slotwright.dev/node";
/// On a pod, as annotation: the id of the claim under which it was activated.
pub const CLAIM: &str = "slotwright.dev/claim";
/// On a pod, as annotation: `HTCondor`'s `ClusterId.ProcId`.
pub const JOB_ID: &str = "slotwright.dev/job-id";
/// On a pod, as annotation: `"true"` while the agent of its node is to hold its processes still. Written by the operator.
pub const SUSPEND: &str = "slotwright.dev/suspend";
/// On a pod, as annotation: `"true"` asks the agent of its node to kill its processes: the kubelet has not within
/// KILLING_TIMEOUT. Written by the operator.
pub const KILL: &str = "slotwright.dev/kill";
/// On a pod, as annotation: the lease of its claim in seconds. An agent that promises to ends the pod once it could not
/// renew its own Lease for so long.
pub const LEASE_SECONDS: &str = "slotwright.dev/lease-seconds";
/// On the Lease of an agent, as annotation: `"true"` where the agent promises that.
pub const FENCES: &str = "slotwright.dev/fences-claims";
/// With this begins what an agent leaves as the termination message of a container that it ends so.
pub const FENCED: &str = "slotwright.dev/fenced";
/// On a pod: held until the pod's end is recorded in its HTCJob, so that no end is lost.
pub const TRACKING_FINALIZER: &str = "slotwright.dev/tracking";
/// On an HTCJob: held until its pods have ended and its claims are released.
pub const JOB_FINALIZER: &str = "slotwright.dev/release-claims";
/// The name of the Lease in `kube-node-lease` by which the agent of a node says that it lives begins with this; the rest is
/// the node's name.
pub const AGENT_LEASE_PREFIX: &str = "slotwright-agent-";
/// The field manager of everything the operator writes.
pub const FIELD_MANAGER: &str = "slotwright";
/// The field manager of status writes (old servers do not separate managers by subresource).
pub const STATUS_MANAGER: &str = "slotwright-status";
