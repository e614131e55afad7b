//! The amounts that an HTCJob requests.

use classad::{Ad, Name, Value as ClassAdValue};
use serde_json::{Map, Value};

use super::Shared;
use crate::file::Cluster;
use crate::manifest::{Wrong, expression, written};

/// Whether the request for disk of a proc with this ad is DiskUsage, or a multiple of it, and the file does not say what DiskUsage is.
/// HTCondor's request then grows with the job, and is next to nothing at submission.
pub(in crate::manifest) fn is_of_disk_usage(cluster: &Cluster, ad: &Ad) -> bool {
    let Some(expr) = ad.get("RequestDisk").filter(|_| written(cluster, "disk_usage").is_none()) else {
        return false;
    };
    let references = expr.references();
    let mut unused = Ad::new().with("DiskUsage", 0);
    unused.chain(Some(ad.clone()));
    references.bare.iter().chain(&references.my).any(|name| name.is("DiskUsage"))
        && expr.eval(Some(&unused), None, &cluster.env).as_number() == Some(0.0)
}

impl Shared<'_> {
    /// The integer that an attribute is at submission, rounded up. `None`: there is no such attribute. A wrong value is told under the
    /// name by which the file gives the command.
    pub(super) fn integer(&self, command: &str, attribute: &str) -> Result<Option<i64>, Wrong> {
        let Some(expr) = self.ad.get(attribute) else { return Ok(None) };
        match expr.eval(Some(&self.ad), None, &self.cluster.env) {
            ClassAdValue::Int(number) => Ok(Some(number)),
            #[allow(clippy::cast_possible_truncation, reason = "the bound is checked")]
            ClassAdValue::Real(number) if number.abs() < 9e15 => Ok(Some(number.ceil() as i64)),
            // The quotes make a text of an amount.
            value
                if expr.as_literal().and_then(ClassAdValue::as_str).is_some_and(|text| {
                    text.trim_start().starts_with(|first: char| first.is_ascii_digit())
                }) =>
            {
                let name = written(self.cluster, command).map_or(command, |written| &written.name);
                let text = value.as_str().unwrap_or_default();
                let message = format!(
                    "{} is a text, and an HTCJob requests numbers: write {name} = {text}",
                    expr.to_old()
                );
                Err((command.to_owned(), message))
            }
            value => Err((
                command.to_owned(),
                format!(
                    "{} is {value} at submission: expected a number, because an HTCJob requests amounts",
                    expr.to_old()
                ),
            )),
        }
    }

    /// An amount that a job must request at least 1 of.
    fn at_least_one(&self, command: &str, attribute: &str, amount: i64, of: &str) -> Result<i64, Wrong> {
        if amount >= 1 {
            return Ok(amount);
        }
        let computed = self.ad.get(attribute).filter(|expr| expr.as_literal().is_none());
        let why = computed.map_or_else(
            || format!("asks for less than 1 {of}: write 1 or more, or leave the line out"),
            |expr| {
                let references = expr.references();
                let values = references.bare.iter().chain(&references.my).filter_map(|name: &Name| {
                    let value = self.ad.get(name.as_str())?.eval(Some(&self.ad), None, &self.cluster.env);
                    Some(format!("{} is {value}", name.as_str()))
                });
                let values = values.collect::<Vec<_>>().join(" and ");
                let place = if values.is_empty() { String::new() } else { format!(", where {values}") };
                format!(
                    "{} is {amount} at submission{place}, which is less than 1 {of}: write an amount, 1 or more, or leave the line out",
                    expr.to_old()
                )
            },
        );
        Err((command.to_owned(), why))
    }

    pub(super) fn requests(&self) -> Result<Value, Wrong> {
        let mut requests = Map::new();
        let mut insert = |field: &str, value: Value| requests.insert(field.to_owned(), value);
        if self.gives("request_cpus", "RequestCpus")
            && let Some(cpus) = self.integer("request_cpus", "RequestCpus")?
        {
            insert("cpus", self.at_least_one("request_cpus", "RequestCpus", cpus, "CPU")?.into());
        }
        if self.gives("request_memory", "RequestMemory")
            && let Some(memory) = self.integer("request_memory", "RequestMemory")?
        {
            let memory = self.at_least_one("request_memory", "RequestMemory", memory, "MiB")?;
            insert("memory", quantity(memory, "Mi"));
        }
        if self.gives("request_disk", "RequestDisk")
            && let Some(disk) = self.integer("request_disk", "RequestDisk")?
        {
            // DiskUsage is the old default of HTCondor, and 0 for a job without files: nothing is requested.
            if disk != 0 && !is_of_disk_usage(self.cluster, &self.ad) {
                insert("disk", quantity(disk, "Ki"));
            }
        }
        let gpus = self.integer("request_gpus", "RequestGPUs")?;
        if let Some(gpus) = gpus {
            insert("gpus", gpus.into());
        }
        // Conditions on GPUs are void if the job asks for none.
        if gpus.is_some_and(|gpus| gpus != 0) {
            if let Some(require) = &self.program.require_gpus {
                insert("requireGpus", expression::for_job(require).into());
            }
            for (command, attribute, field) in [
                ("gpus_minimum_capability", "GPUsMinCapability", "gpusMinimumCapability"),
                ("gpus_maximum_capability", "GPUsMaxCapability", "gpusMaximumCapability"),
            ] {
                let Some(expr) = self.ad.get(attribute) else { continue };
                let number = expr.eval(Some(&self.ad), None, &self.cluster.env).as_number();
                let number =
                    number.ok_or_else(|| (command.to_owned(), format!("{} is no number", expr.to_old())))?;
                insert(field, number.into());
            }
            if let Some(memory) = self.integer("gpus_minimum_memory", "GPUsMinMemory")? {
                insert("gpusMinimumMemory", quantity(memory, "Mi"));
            }
            if let Some(runtime) = self.integer("gpus_minimum_runtime", "GPUsMinRuntime")? {
                insert("gpusMinimumRuntime", runtime.to_string().into());
            }
        }
        let others = self.others()?;
        if !others.is_empty() {
            insert("resources", others.into());
        }
        Ok(requests.into())
    }

    /// Requests of other resources.
    fn others(&self) -> Result<Map<String, Value>, Wrong> {
        let mut others = Map::new();
        for written in &self.cluster.written {
            // `+RequestLicenses = 3` is what HTCondor makes of `request_licenses = 3`.
            let named = [8, 10].into_iter().filter_map(|length| written.name.split_at_checked(length));
            let mut named = named.filter(|(start, _)| {
                ["request_", "MY.Request"].iter().any(|known| start.eq_ignore_ascii_case(known))
            });
            let Some((_, name)) = named.next() else { continue };
            if name.is_empty()
                || ["cpus", "memory", "disk", "gpus", "cpu", "gpu"]
                    .iter()
                    .any(|known| name.eq_ignore_ascii_case(known))
            {
                continue;
            }
            if let Some(amount) =
                self.integer(&written.name, &format!("Request{name}"))?.filter(|amount| *amount > 0)
            {
                others.insert(name.to_owned(), amount.into());
            }
        }
        Ok(others)
    }
}

fn quantity(amount: i64, unit: &str) -> Value {
    let larger = match unit {
        "Ki" => "Mi",
        "Mi" => "Gi",
        _ => return format!("{amount}{unit}").into(),
    };
    if amount > 0 && amount % 1024 == 0 {
        quantity(amount / 1024, larger)
    } else {
        format!("{amount}{unit}").into()
    }
}
