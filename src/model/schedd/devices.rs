//! Explains why no device of a machine meets `RequireGPUs`: names the best device, and what that device lacks.

use super::nearest::shown;
use crate::pool::units::counted;
use crate::pool::{GPUS, Machine, classad_name};
use classad::{Ad, Env, Expr, Value, explain_match};

/// The attributes of a job that bound the properties of GPUs, and the fields that set them.
const FIELDS: [(&str, &str); 4] = [
    ("GPUsMinCapability", "spec.requests.gpusMinimumCapability"),
    ("GPUsMaxCapability", "spec.requests.gpusMaximumCapability"),
    ("GPUsMinMemory", "spec.requests.gpusMinimumMemory"),
    ("GPUsMinRuntime", "spec.requests.gpusMinimumRuntime"),
];

/// The field of the job that no device of the machine meets, and what the best device has instead. `None` if the job
/// has no `RequireGPUs`.
pub(super) fn lack(job: &Ad, machine: &Machine, env: &Env) -> Option<(&'static str, String)> {
    let require = job.get("RequireGPUs")?;
    let mut asking = job.clone();
    asking.insert("Requirements", require.clone());
    let here = machine.devices.iter().filter(|(resource, _)| classad_name(resource) == GPUS);
    let devices: Vec<&Ad> =
        here.flat_map(|(_, devices)| devices.iter().map(|device| &device.properties)).collect();
    if devices.is_empty() {
        return Some(("spec.requests.requireGpus", "has no GPU whose properties are known".to_owned()));
    }
    let failed = |device: &Ad| -> Vec<String> {
        let report = explain_match(&asking, device, env).my;
        report.failed().map(|clause| clause.text.clone()).collect()
    };
    let number = |device: &Ad, name: &str| device.eval_attr(name, None, env).as_number().unwrap_or(0.0);
    let better = |a: &&&Ad, b: &&&Ad| {
        let capable = number(a, "Capability").total_cmp(&number(b, "Capability"));
        let large = number(a, "GlobalMemoryMb").total_cmp(&number(b, "GlobalMemoryMb"));
        failed(b).len().cmp(&failed(a).len()).then(capable).then(large)
    };
    let best = devices.iter().max_by(better)?;
    let clauses = failed(best);
    let Some(first) = clauses.first() else {
        let alike = devices.iter().filter(|device| failed(device).is_empty()).count();
        let asked = job.eval_attr("RequestGPUs", None, env).as_int().unwrap_or(1);
        let alike = counted(u64::try_from(alike).unwrap_or(u64::MAX), "GPU");
        let text =
            format!("has {alike} that meets {}, and the job asks for {asked}", shown(&require.to_string()));
        return Some(("spec.requests.requireGpus", text));
    };
    let bound = FIELDS.iter().find(|(attribute, _)| first.contains(attribute));
    let field = bound.map_or("spec.requests.requireGpus", |(_, field)| field);
    let wanted = match bound {
        Some((attribute, _)) => first.replace(attribute, &job.eval_attr(attribute, None, env).to_string()),
        None => first.clone(),
    };
    let name = match best.eval_attr("DeviceName", None, env) {
        Value::Str(name) => format!("a {name}"),
        _ => "a GPU".to_owned(),
    };
    Some((
        field,
        format!(
            "has as its best GPU {name} with {}, and does not meet {}",
            properties(first, best, env),
            shown(&wanted)
        ),
    ))
}

/// The properties of a device that a clause reads.
fn properties(clause: &str, device: &Ad, env: &Env) -> String {
    let Ok(expr) = Expr::parse(clause) else { return "other properties".to_owned() };
    let names = expr.references();
    let all = names
        .bare
        .iter()
        .chain(&names.target)
        .filter(|name| FIELDS.iter().all(|(known, _)| *known != name.as_str()));
    let found: Vec<String> = all
        .map(|name| match device.eval_attr(name.as_str(), None, env) {
            Value::Undefined => format!("no {name}"),
            value => format!("{name} {}", shown(&value.to_string())),
        })
        .collect();
    if found.is_empty() { "other properties".to_owned() } else { found.join(", ") }
}
