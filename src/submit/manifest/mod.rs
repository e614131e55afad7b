//! HTCJobs of a cluster.
