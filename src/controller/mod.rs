//! Kubernetes I/O: watches into events, effects into API calls, leader election. Holds no policy.

pub mod translate;
