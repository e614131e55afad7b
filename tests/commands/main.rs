//! Runs the commands as they are typed, and compares their answers with HTCondor's.

mod bench_workload;
mod classad_oracle;
mod complete;
mod config_safety;
mod config_seeds;
mod crds;
mod demo;
mod lint;
mod logging;
mod negotiation_oracle;
mod quota_oracle;
mod simulate;
mod simulate_compare;
mod slot_types_oracle;
mod submit;
mod transform;
