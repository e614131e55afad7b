//! The requests of a job: request_cpus and the others, and the demands on each GPU.

use classad::Expr;
use condor_config::{Variable, amount};

use super::policy::operand;
use super::{GivenValue, Job, Outcome};

const MIB: i64 = 1 << 20;
const KIB: i64 = 1 << 10;

/// The command that was likely meant by a request of a resource of this name, which no machine has of itself.
fn meant(resource: &str) -> Option<&'static str> {
    match resource {
        "mem" | "ram" => return Some("request_memory"),
        "core" | "cores" | "ncpus" => return Some("request_cpus"),
        "memory_max" | "max_memory" => return Some("retry_request_memory_max"),
        "memory_increase" => return Some("retry_request_memory_increase"),
        "memory_retry" => return Some("retry_request_memory"),
        "disk_max" | "max_disk" | "disk_retry" => return Some("retry_request_disk"),
        _ => {}
    }
    let allowed = if resource.len() < 6 { 1 } else { 2 };
    let of_every_machine = [
        ("memory", "request_memory"),
        ("disk", "request_disk"),
        ("cpus", "request_cpus"),
        ("gpus", "request_gpus"),
    ];
    let is_unit = |known: &str| {
        let unit = resource.strip_prefix(known).and_then(|rest| rest.strip_prefix('_'));
        unit.is_some_and(|unit| ["kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"].contains(&unit))
    };
    let mut commands = of_every_machine.into_iter();
    let meant =
        commands.find(|(known, _)| is_unit(known) || strsim::osa_distance(known, resource) <= allowed);
    meant.map(|(_, command)| command)
}

impl Job<'_, '_> {
    pub(super) fn set_requests(&mut self) -> Outcome {
        let names: Vec<String> = self
            .scope
            .variables()
            .map(Variable::name)
            .filter(|name| name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("request_")))
            .map(str::to_owned)
            .collect();
        for name in names {
            let resource = name.get(8..).unwrap_or_default();
            let lower = resource.to_ascii_lowercase();
            match lower.as_str() {
                "cpus" | "memory" | "disk" | "gpus" | "gpu_memory" | "gpus_memory" => {}
                "cpu" | "gpu" => self.warn_of_typo(&name)?,
                _ if resource.len() < 2 || resource.starts_with('_') => {}
                _ => {
                    if let Some(given) = self.given(&name, None)? {
                        if let Some(meant) = meant(&lower) {
                            let message =
                                format!("requests a resource named {resource}: did you mean {meant}?");
                            // A unit, as in 10GB, is no expression: the guess says more than the grammar.
                            if Expr::parse_old(given.as_str()).is_err() {
                                return Err(self.fault(&given, message));
                            }
                            self.warn(&given, &name, message);
                        }
                        self.assign(&format!("Request{resource}"), &given)?;
                    }
                }
            }
        }
        self.set_cpus()?;
        self.set_gpus()?;
        self.set_disk()?;
        self.set_memory()
    }

    fn warn_of_typo(&mut self, name: &str) -> Outcome {
        if let Some(given) = self.given(name, None)? {
            self.warn(
                &given,
                name,
                format!("this is no command: did you mean {}s?", name.to_ascii_lowercase()),
            );
        }
        Ok(())
    }

    fn set_cpus(&mut self) -> Outcome {
        match self.given("request_cpus", Some("RequestCpus"))? {
            Some(given) if given.is("undefined") => {}
            Some(given) => self.assign("RequestCpus", &given)?,
            None if !self.has("RequestCpus") => self.set("RequestCpus", 1),
            None => {}
        }
        Ok(())
    }

    fn set_memory(&mut self) -> Outcome {
        let Some(given) = self.given("request_memory", Some("RequestMemory"))? else {
            // HTCondor reads its default as it reads the command, and then the retries.
            if !self.has("RequestMemory") {
                self.set("RequestMemory", 128);
                return self.set_memory_retries();
            }
            return Ok(());
        };
        let Some(found) = amount(given.as_str(), MIB, true) else {
            return self.assign_amount("RequestMemory", &given);
        };
        self.set("RequestMemory", found.units);
        if let Some(rest) = found.rest.filter(|rest| !rest.is_empty()) {
            return self.set_retry("RequestMemory", &given, MIB, Some(rest), None);
        }
        self.set_memory_retries()
    }

    /// Sets what `retry_request_memory` and its companions ask for.
    fn set_memory_retries(&mut self) -> Outcome {
        let list = self.given("retry_request_memory", None)?;
        let most = self.given("retry_request_memory_max", None)?;
        let increase = self.given("retry_request_memory_increase", None)?;
        if let Some(list) = list {
            return self.set_retry("RequestMemory", &list, MIB, Some(list.as_str()), None);
        }
        match (&most, &increase) {
            (None, None) => Ok(()),
            (Some(most), increase) => {
                self.set_retry("RequestMemory", most, MIB, Some(most.as_str()), increase.as_ref())
            }
            (None, Some(increase)) => self.set_retry("RequestMemory", increase, MIB, None, Some(increase)),
        }
    }

    fn set_disk(&mut self) -> Outcome {
        let Some(given) = self.given("request_disk", Some("RequestDisk"))? else {
            if !self.has("RequestDisk") {
                self.assign_text("RequestDisk", "MAX({ 1024,(TransferInputSizeMB + 1) * 1.25 }) * 1024")?;
            }
            return Ok(());
        };
        let Some(found) = amount(given.as_str(), KIB, true) else {
            return self.assign_amount("RequestDisk", &given);
        };
        self.set("RequestDisk", found.units);
        if let Some(rest) = found.rest.filter(|rest| !rest.is_empty()) {
            return self.set_retry("RequestDisk", &given, KIB, Some(rest), None);
        }
        match self.given("retry_request_disk", None)? {
            Some(list) => self.set_retry("RequestDisk", &list, KIB, Some(list.as_str()), None),
            None => Ok(()),
        }
    }

    fn assign_request(&mut self, attribute: &str, given: &GivenValue) -> Outcome {
        if given.is("undefined") { Ok(()) } else { self.assign(attribute, given) }
    }

    /// Assigns what is no amount: an expression.
    fn assign_amount(&mut self, attribute: &str, given: &GivenValue) -> Outcome {
        let text = given.as_str().trim();
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
        if unit.len() < text.len() && !unit.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic()) {
            return Err(self.fault(
                given,
                format!("'{text}' is no amount: the units are K, M, G and T, as in 2G, which are multiples of 1024"),
            ));
        }
        self.assign_request(attribute, given)
    }

    fn set_gpus(&mut self) -> Outcome {
        if let Some(given) = self.given("request_gpus", Some("RequestGPUs"))? {
            self.assign_request("RequestGPUs", &given)?;
        }
        if !self.has("RequestGPUs") {
            return Ok(());
        }
        for (command, attribute) in [
            ("require_gpus", "RequireGPUs"),
            ("gpus_minimum_capability", "GPUsMinCapability"),
            ("gpus_maximum_capability", "GPUsMaxCapability"),
        ] {
            if let Some(given) = self.given(command, Some(attribute))? {
                self.assign(attribute, &given)?;
            }
        }
        if let Some(given) = self.given("gpus_minimum_memory", Some("GPUsMinMemory"))? {
            match amount(given.as_str(), MIB, false) {
                Some(found) => self.set("GPUsMinMemory", found.units),
                None => self.assign("GPUsMinMemory", &given)?,
            }
        } else if let Some(given) = self.given("request_gpu_memory", Some("request_gpus_memory"))? {
            self.warn(&given, "gpu_memory", "this is no command: did you mean gpus_minimum_memory?");
        }
        if let Some(given) = self.given("gpus_minimum_runtime", Some("GPUsMinRuntime"))? {
            match runtime(given.as_str()) {
                Some(version) => self.set("GPUsMinRuntime", version),
                None => self.assign("GPUsMinRuntime", &given)?,
            }
        }
        Ok(())
    }

    /// Adds the bounds on properties of GPUs to RequireGPUs, unless the expression looks at the property itself.
    pub(super) fn set_device_requirements(&mut self) -> Outcome {
        // The cluster's RequireGPUs has the first proc's bounds already: what the user said is in the first proc's program.
        let own = self.own.get("RequireGPUs").or_else(|| self.first?.require_gpus.as_ref());
        self.program.require_gpus = own.cloned();
        if !self.has("RequestGPUs") {
            return Ok(());
        }
        let given = self.program.require_gpus.clone();
        let references = given.as_ref().map(Expr::references).unwrap_or_default();
        let names = |property: &str| {
            [&references.my, &references.bare].into_iter().flatten().any(|name| name.is(property))
        };
        let bounds: Vec<String> = [
            ("GPUsMinCapability", "Capability", ">="),
            ("GPUsMaxCapability", "Capability", "<="),
            ("GPUsMinMemory", "GlobalMemoryMb", ">="),
            ("GPUsMinRuntime", "MaxSupportedVersion", ">="),
        ]
        .into_iter()
        .filter(|(bound, property, _)| self.has(bound) && !names(property))
        .map(|(bound, property, operator)| format!("{property} {operator} {bound}"))
        .collect();
        if bounds.is_empty() {
            return Ok(());
        }
        let given = given.map(|given| operand(&given.to_old(), "&&"));
        let clauses: Vec<String> = given.into_iter().chain(bounds).collect();
        self.assign_text("RequireGPUs", &clauses.join(" && "))
    }

    /// The sizes of the executable and of the job's memory.
    pub(super) fn set_sizes(&mut self) -> Outcome {
        if self.proc < 1 {
            let command = self.string("Cmd").unwrap_or_default();
            let size = if command.is_empty() { 0 } else { self.size(&command) };
            self.set("ExecutableSize", size);
        }
        if let Some(given) = self.given("image_size", Some("ImageSize"))? {
            let size = self.kib(&given)?;
            self.set("ImageSize", size);
        } else if !self.has("ImageSize") {
            let size = self.number("ExecutableSize");
            self.set("ImageSize", size);
        }
        Ok(())
    }

    /// A size in KiB that a command gives, at least 1.
    pub(super) fn kib(&self, given: &GivenValue) -> Outcome<i64> {
        let found = amount(given.as_str(), KIB, false).map(|found| found.units).filter(|size| *size >= 1);
        found.ok_or_else(|| self.fault(given, format!("'{}' is no size of at least 1 KiB", given.as_str())))
    }

    /// The size of a file in KiB.
    pub(super) fn size(&self, name: &str) -> i64 {
        if crate::world::scheme(name).is_some() {
            return 0;
        }
        self.world.size_kib(&crate::world::World::full_path(&self.directory, name))
    }

    /// The integer that an attribute is; 0 if the attribute is something else.
    pub(super) fn number(&self, name: &str) -> i64 {
        self.get(name).and_then(Expr::as_literal).and_then(classad::Value::as_int).unwrap_or(0)
    }
}

/// A version of CUDA, such as 12.1, as the number 12010. A number above 1000 is such a number already.
fn runtime(text: &str) -> Option<i64> {
    let (major, minor) = match text.split_once('.') {
        Some((major, minor)) => (major, Some(minor.parse::<i64>().ok()?)),
        None => (text, None),
    };
    let major = major.parse::<i64>().ok().filter(|major| *major >= 0)?;
    match minor {
        None if major > 1000 => Some(major),
        None => major.checked_mul(1000),
        Some(minor) => (0..100).contains(&minor).then(|| major.checked_mul(1000)?.checked_add(minor * 10))?,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_of_cuda() {
        for (text, expected) in [
            ("12.1", Some(12010)),
            ("12", Some(12000)),
            ("12010", Some(12010)),
            ("9.0", Some(9000)),
            ("x", None),
        ] {
            assert_eq!(super::runtime(text), expected, "{text}");
        }
    }
}
