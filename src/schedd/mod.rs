//! The schedd's part: procs of a cluster, their order, claims and activation.
