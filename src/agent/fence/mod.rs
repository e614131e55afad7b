//! The agent's side of its promise to end pods when the node is cut off.
//!
//! | part | does |
//! | --- | --- |
//! | `permit` | the files by which the agent and the guard communicate: pure |
//! | `keeper` | decides what the permit says, and whether the agent may promise: pure |
//! | `directory` | reads and writes the files |
//! | `shell` | calls the keeper with what the node shows |
//!
//! The guard ([`crate::guard`]) keeps the promise. `docs/reference/agents.md` has the argument.

pub(crate) mod directory;
pub(crate) mod keeper;
pub(crate) mod permit;
mod shell;

pub(crate) use self::keeper::Listed;
pub(crate) use self::shell::Fence;
