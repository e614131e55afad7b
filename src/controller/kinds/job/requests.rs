//! The resources that a job requests, and what each of its GPUs must be.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::convert::ceil_units;
use crate::kinds::node::NOT_OFFERED;
use api::Requests;
use model::pool::{Problem, Request, Unsaid};
use model::schedd::GpuDemands;

fn amount(field: &str, quantity: &Quantity, unit: i64, problems: &mut Vec<Problem>) -> i64 {
    match ceil_units(quantity, unit) {
        // Rounded up, a few bytes less than none would be none.
        Ok(0) if quantity.0.trim_start().starts_with('-') => -1,
        Ok(amount) => amount,
        Err(error) => {
            problems.push(invalid_request(field.to_owned(), error.to_string()));
            1
        }
    }
}

pub(super) const fn invalid_request(field: String, message: String) -> Problem {
    Problem { reason: "InvalidRequest", field, message }
}

/// Whether slots may have a resource of this name. Nodes offer no huge pages, no places for volumes, and nothing of Kubernetes' own domain.
pub(super) fn is_offered(name: &str) -> bool {
    !NOT_OFFERED.iter().any(|beginning| name.starts_with(beginning))
}

/// Why no node can have a resource of this name; `None` if a node can. Where only the pool counts a resource, its name needs no domain.
fn no_resource(name: &str) -> Option<String> {
    let elsewhere = match name {
        "cpu" => "spec.requests.cpus",
        "memory" => "spec.requests.memory",
        "ephemeral-storage" | "storage" => "spec.requests.disk",
        "pods" => return Some("is no resource to ask for: each proc is one pod; leave it out".to_owned()),
        _ if !is_offered(name) => {
            return Some("is a resource that no slot has; leave it out".to_owned());
        }
        _ => {
            let part = |text: &str| {
                let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
                text.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && text.ends_with(|c: char| c.is_ascii_alphanumeric())
                    && text.chars().all(inner)
            };
            let fits = name.split('/').all(part) && name.matches('/').count() <= 1;
            let text = "is no name of a resource; such names read nvidia.com/gpu, or squid for one that MACHINE_RESOURCE_squid declares";
            return (!fits).then(|| text.to_owned());
        }
    };
    Some(format!("is no extended resource; say it in {elsewhere}"))
}

pub(super) fn gpu_demands(requests: &Requests, problems: &mut Vec<Problem>) -> GpuDemands {
    GpuDemands {
        require: requests.require_gpus.clone(),
        minimum_capability: requests.gpus_minimum_capability,
        maximum_capability: requests.gpus_maximum_capability,
        minimum_memory_mib: requests
            .gpus_minimum_memory
            .as_ref()
            .map(|quantity| amount("spec.requests.gpusMinimumMemory", quantity, 1 << 20, problems)),
        minimum_runtime: requests.gpus_minimum_runtime.clone(),
    }
}

pub(super) fn requests(requests: &Requests, problems: &mut Vec<Problem>) -> Request {
    let wrong = requests.resources.keys().filter_map(|name| Some((name, no_resource(name)?)));
    problems
        .extend(wrong.map(|(name, why)| invalid_request(format!("spec.requests.resources[{name}]"), why)));
    let mut amount = |field: &str, quantity: Option<&Quantity>, unit| {
        quantity.map_or(0, |quantity| amount(field, quantity, unit, problems))
    };
    Request {
        unsaid: Unsaid {
            cpus: requests.cpus.is_none(),
            memory: requests.memory.is_none(),
            disk: requests.disk.is_none(),
        },
        cpus: requests.cpus.unwrap_or_default(),
        memory_mib: amount("spec.requests.memory", requests.memory.as_ref(), 1 << 20),
        disk_kib: amount("spec.requests.disk", requests.disk.as_ref(), 1 << 10),
        gpus: requests.gpus,
        extended: requests
            .resources
            .iter()
            .map(|(name, amount)| (Arc::from(name.as_str()), *amount))
            .collect(),
    }
}
