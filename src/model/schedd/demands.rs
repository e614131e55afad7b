//! The demands of a job on its devices: `RequireGPUs`, and the clauses of Requirements that compare it to a slot's devices.
//!
//! Source: `condor_submit` 25.14.1, whose answers `tests/oracle/devices.json` keeps; the manual, condor_submit,
//! `require_gpus` and `gpus_minimum_capability`.

use super::submit::quoted;
use crate::pool::{GPUS, NODE_RESOURCES, Problem, Request, ResourceName, classad_name};
use classad::{Ad, Expr};

/// The properties that each GPU of a job must have. The fields are the submit commands of these names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuDemands {
    /// `require_gpus`: an expression over a GPU's properties.
    pub require: Option<String>,
    /// `gpus_minimum_capability`.
    pub minimum_capability: Option<f64>,
    /// `gpus_maximum_capability`.
    pub maximum_capability: Option<f64>,
    /// `gpus_minimum_memory`, MiB.
    pub minimum_memory_mib: Option<i64>,
    /// `gpus_minimum_runtime`: `12.1`, or 12010 as `condor_gpu_discovery` writes it.
    pub minimum_runtime: Option<String>,
}

const REQUIRE: &str = "RequireGPUs";

impl GpuDemands {
    /// Puts `RequireGPUs`, and the attributes that it refers to, into a job's ad. The ad must already have the job's requests and
    /// attributes.
    pub(super) fn put_into(&self, ad: &mut Ad, problems: &mut Vec<Problem>) {
        if *self == Self::default() {
            return;
        }
        if !ad.contains("RequestGPUs") {
            let message =
                "the job asks for no GPUs; set spec.requests.gpus, or say nothing of what they must be";
            problems.push(problem("InvalidRequest", "spec.requests", message));
        }
        if ad.contains(REQUIRE) {
            let message = "spec.attributes says RequireGPUs too; say it in one place";
            problems.push(problem("SaidTwice", "spec.requests.requireGpus", message));
            return;
        }
        let said = super::submit::expression("spec.requests.requireGpus", self.require.as_deref(), problems);
        let asks = |property: &str| {
            said.as_ref().is_some_and(|said| {
                let names = said.references();
                let all = names.bare.iter().chain(&names.my).chain(&names.target);
                all.into_iter().any(|name| name.as_str().eq_ignore_ascii_case(property))
            })
        };
        if let (Some(least), Some(most)) = (self.minimum_capability, self.maximum_capability)
            && least > most
            && !asks("Capability")
        {
            let message = format!(
                "{least} is more than spec.requests.gpusMaximumCapability, {most}, so that no GPU has both"
            );
            problems.push(problem("InvalidRequest", "spec.requests.gpusMinimumCapability", &message));
        }
        let mut clauses: Vec<String> = said.iter().map(|said| format!("({said})")).collect();
        for (attribute, bound, property, relation) in self.bounds(problems) {
            ad.insert(attribute, bound);
            // If the user's expression reads the property, no clause is added for it.
            if !asks(property) {
                clauses.push(format!("{property} {relation} {attribute}"));
            }
        }
        // The text always parses: it is made of an expression that was parsed and of names.
        ad.insert(REQUIRE, Expr::parse(&clauses.join(" && ")).unwrap_or_else(|_| Expr::literal(false)));
    }

    /// For each bound: the job's attribute, its value, the property that it bounds, and the operator that compares the two.
    fn bounds(&self, problems: &mut Vec<Problem>) -> Vec<(&'static str, Expr, &'static str, &'static str)> {
        let runtime = self.minimum_runtime.as_deref().and_then(|text| {
            let version = runtime(text);
            if version.is_none() {
                let message = format!("{text} is no version of CUDA; write 12.1 or 12010");
                problems.push(problem("InvalidRequest", "spec.requests.gpusMinimumRuntime", &message));
            }
            version
        });
        let rows = [
            ("GPUsMinCapability", self.minimum_capability.map(Expr::literal), "Capability", ">="),
            ("GPUsMaxCapability", self.maximum_capability.map(Expr::literal), "Capability", "<="),
            ("GPUsMinMemory", self.minimum_memory_mib.map(Expr::literal), "GlobalMemoryMb", ">="),
            ("GPUsMinRuntime", runtime.map(Expr::literal), "MaxSupportedVersion", ">="),
        ];
        let set = rows.into_iter().filter_map(|(name, bound, property, relation)| {
            bound.map(|bound| (name, bound, property, relation))
        });
        set.collect()
    }
}

/// The clauses of Requirements that demand what the job requests besides CPUs, memory and disk:
/// `TARGET.<R> >= Request<R>`, or, if the job requires properties of its devices, a count of the free devices that have
/// them. The job must demand this itself, because the slot's Requirements ignore resources that the machine does not
/// have.
///
/// A job that names a Kubernetes resource also needs a machine on which `<R>` counts that resource.
pub(super) fn clauses(ad: &Ad, request: &Request) -> Vec<String> {
    let gpus = (request.gpus > 0).then(|| (GPUS.to_owned(), None));
    let others = request.extended.iter().filter(|(_, amount)| **amount > 0);
    let others = others.map(|(resource, _)| (classad_name(resource), Some(resource)));
    let mut wanted: Vec<_> = gpus.into_iter().chain(others).collect();
    wanted.sort();
    let clause = |(name, resource): &(String, Option<&ResourceName>)| {
        let enough = if ad.contains(&format!("Require{name}")) {
            format!("(countMatches(MY.Require{name}, TARGET.Available{name}) >= Request{name})")
        } else {
            format!("TARGET.{name} >= Request{name}")
        };
        match resource {
            // A name without a domain is the name of a MACHINE_RESOURCE_<name>, in upper or lower case.
            Some(resource) => {
                let same = if resource.contains('/') { "=?=" } else { "==" };
                let resource = quoted(resource, '"');
                format!("{enough} && TARGET.{NODE_RESOURCES}.{name} {same} \"{resource}\"")
            }
            None => enough,
        }
    };
    wanted.iter().map(clause).collect()
}

/// Reads a version of CUDA as an integer, major * 1000 + minor * 10: `12.1` is 12010. A number greater than 1000 is taken as such
/// an integer already.
fn runtime(text: &str) -> Option<i64> {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    let number = |text: &str| text.parse::<u16>().ok().map(i64::from);
    let (major, minor) = (number(major)?, number(minor)?);
    if major > 1000 {
        return (!text.contains('.')).then_some(major);
    }
    Some(major * 1000 + minor * 10)
}

fn problem(reason: &'static str, field: &str, message: &str) -> Problem {
    Problem { reason, field: field.to_owned(), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedd::{Submission, submit};

    fn submission(gpus: i64) -> Submission {
        let request = Request { cpus: 1, memory_mib: 1, disk_kib: 1, gpus, ..Request::default() };
        Submission {
            name: "job".to_owned(),
            owner: "alice".to_owned(),
            count: 1,
            request,
            ..Submission::default()
        }
    }

    fn require(text: &str) -> GpuDemands {
        GpuDemands { require: Some(text.to_owned()), ..GpuDemands::default() }
    }

    fn runtime_of(text: &str) -> GpuDemands {
        GpuDemands { minimum_runtime: Some(text.to_owned()), ..GpuDemands::default() }
    }

    fn capabilities(least: f64, most: f64) -> GpuDemands {
        GpuDemands {
            minimum_capability: Some(least),
            maximum_capability: Some(most),
            ..GpuDemands::default()
        }
    }

    #[test]
    fn what_is_wrong_names_the_field() {
        for (gpus, demands, reason, field) in [
            (0, require("Capability > 7"), "InvalidRequest", "spec.requests"),
            (1, require("Capability >"), "InvalidExpression", "spec.requests.requireGpus"),
            (1, runtime_of("11.4.2"), "InvalidRequest", "spec.requests.gpusMinimumRuntime"),
            (1, runtime_of("12010.1"), "InvalidRequest", "spec.requests.gpusMinimumRuntime"),
            (1, runtime_of("new"), "InvalidRequest", "spec.requests.gpusMinimumRuntime"),
            (1, capabilities(9.0, 7.0), "InvalidRequest", "spec.requests.gpusMinimumCapability"),
        ] {
            let problems = submit(&Submission { gpus: demands, ..submission(gpus) }).unwrap_err();
            let said: Vec<_> =
                problems.iter().map(|problem| (problem.reason, problem.field.as_str())).collect();
            assert_eq!(said, [(reason, field)]);
        }
        // A bound of a property that requireGpus reads adds no clause, so that GPUs may well match.
        let said = GpuDemands { require: Some("Capability > 7".to_owned()), ..capabilities(9.0, 7.0) };
        for demands in [capabilities(7.0, 7.0), said] {
            assert!(submit(&Submission { gpus: demands.clone(), ..submission(1) }).is_ok(), "{demands:?}");
        }
        let mut twice = Submission { gpus: require("Capability > 7"), ..submission(1) };
        twice.attributes.insert("requiregpus".to_owned(), "true".to_owned());
        assert_eq!(submit(&twice).unwrap_err().first().map(|problem| problem.reason), Some("SaidTwice"));
    }

    /// A job requests resources in `spec.requests` alone, and each resource once, so that a match and its claim use
    /// the same amounts.
    #[test]
    fn requests_are_said_once() {
        for name in
            ["RequestCpus", "requestgpus", "RequestFpga", "_cp_orig_RequestCpus", "_CP_orig_RequestDisk"]
        {
            let mut job = submission(0);
            job.attributes.insert(name.to_owned(), "1".to_owned());
            assert_eq!(submit(&job).unwrap_err()[0].reason, "ProtectedAttribute", "{name}");
        }
        for (gpus, resources, field) in [
            (1, vec!["amd.com/gpu"], "spec.requests.resources[amd.com/gpu]"),
            (0, vec!["amd.com/gpu", "nvidia.com/gpu"], "spec.requests.resources[nvidia.com/gpu]"),
            (0, vec!["a.com/fpga", "fpga"], "spec.requests.resources[fpga]"),
        ] {
            let mut job = submission(gpus);
            job.request.extended = resources.into_iter().map(|name| (name.into(), 1)).collect();
            let problems = submit(&job).unwrap_err();
            assert_eq!((problems[0].reason, problems[0].field.as_str()), ("InvalidRequest", field));
        }
    }

    #[test]
    fn attributes_are_bounded() {
        let problems = |attributes: Vec<(String, String)>| {
            let job = Submission { attributes: attributes.into_iter().collect(), ..submission(0) };
            submit(&job).err().unwrap_or_default()
        };
        let text = |length: usize| format!("\"{}\"", "a".repeat(length - 2));
        let many = |count: usize| (0..count).map(|n| (format!("A{n}"), "1".to_owned())).collect::<Vec<_>>();
        for (attributes, ok) in [
            (vec![("A".to_owned(), text(16_384))], true),
            (vec![("A".to_owned(), text(16_385))], false),
            (vec![("A".repeat(256), "1".to_owned())], true),
            (vec![("A".repeat(257), "1".to_owned())], false),
            (many(256), true),
            (many(257), false),
        ] {
            let found = problems(attributes);
            assert_eq!(found.is_empty(), ok, "{found:?}");
            assert!(found.iter().all(|problem| problem.message.len() < 300), "{found:?}");
        }
    }

    #[test]
    fn what_is_required_of_any_resource_is_asked_of_its_free_devices() {
        let mut job = submission(0);
        job.request.extended.insert("example.com/fpga".into(), 2);
        job.attributes.insert("RequireFpga".to_owned(), "Cells > 1000".to_owned());
        job.requirements = Some("TARGET.Arch == \"X86_64\"".to_owned());
        let spec = submit(&job).unwrap();
        assert_eq!(
            spec.ad.get("Requirements").unwrap().to_string(),
            "(TARGET.Arch == \"X86_64\") && (countMatches(MY.RequireFpga,TARGET.AvailableFpga) >= RequestFpga) && \
             TARGET.NodeResources.Fpga is \"example.com/fpga\""
        );
    }
}
