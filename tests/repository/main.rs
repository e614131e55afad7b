//! The tree's promises about itself: the chart, the examples, dependencies, and which rooms stay pure.

mod admission_chart;
mod agent_chart;
mod answers;
mod cert_manager;
mod chart;
mod chart_values;
mod deps;
mod examples;
mod gitops;
mod links;
mod metrics_chart;
mod mutations;
mod programs;
mod purity;
mod sentences;
