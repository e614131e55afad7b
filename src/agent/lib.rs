//! The agent of a node: it senses what the API server does not know, and does to pods what a kubelet does not do.
//!
//! | part | does |
//! | --- | --- |
//! | `containers` | reads which containers of a pod run: pure |
//! | `pods` | reads what the operator wants of the pool's pods: pure |
//! | `deciding` | decides what is done to a pod's processes: pure |
//! | `report` | decides what is reported, and when: pure |
//! | `retries` | decides how long the agent pauses after calls that fail: pure |
//! | `passes` | decides when the agent passes over the pods: pure |
//! | `node` | does to processes what was decided, and senses the node, by `cgroup`, `sense` and `benchmark` |
//! | `cron` | runs the programs whose output becomes attributes of the slots' ads |
//! | `devices` | which devices the kubelet has given to each pod |
//! | `fence` | the promise to end pods when the node is cut off: what the guard is told, and when the agent promises |
//! | `guard` | the program on the host that keeps the promise |
//! | `kubelet` | what the kubelet counts of its pods' disk |
//! | `door` | the port on which a kubelet sees that the agent is connected |
//! | `lease`, `objects` | the calls that write the Lease and the report |
//! | `watches` | the watches on the node's pods and on its report |
//! | `options` | how the agent runs |
//! | `run` | the loop around all of them |
//!
//! `docs/reference/agents.md` describes the objects by which the agent and the operator communicate.

pub mod benchmark;
mod boot;
pub mod cgroup;
mod containers;
mod cron;
mod deciding;
mod devices;
mod door;
mod fence;
mod guard;
#[cfg(test)]
mod hostile;
mod kubelet;
mod lease;
mod named;
mod node;
mod objects;
mod options;
mod passes;
mod pods;
mod regular;
pub mod report;
mod retries;
mod run;
pub mod sense;
mod watches;

pub use self::containers::Containers;
pub use self::deciding::{Act, ProcessState, next_act};
pub use self::guard::{GuardError, GuardOptions, run as run_guard};
pub use self::node::Roots;
pub use self::options::{Error, Options};
pub use self::pods::{Pod, Uid, Wanted};
pub use self::run::run;
pub use self::sense::InputPaths;
