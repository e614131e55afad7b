//! What a job asks for that does not say: `JOB_DEFAULT_REQUESTCPUS` and its kin.
//!
//! Source: the manual, "Defaults for Partitionable Slot Sizes".

use super::fault::Fault;
use crate::classad::{Ad, Expr};
use crate::config::Config;

/// The requests of jobs that make none.
#[derive(Clone, Debug, PartialEq)]
pub struct JobDefaults {
    /// The attribute and its expression.
    requests: Vec<(&'static str, Expr)>,
}

impl JobDefaults {
    /// Reads `JOB_DEFAULT_REQUESTCPUS`, `JOB_DEFAULT_REQUESTMEMORY` and `JOB_DEFAULT_REQUESTDISK`, which have defaults of
    /// their own: 1, 128 (MiB), and 1 GiB or a quarter more than the job's input files (KiB).
    ///
    /// # Errors
    /// What is no expression.
    pub fn read(config: &Config) -> Result<Self, Vec<Fault>> {
        let (mut requests, mut faults) = (Vec::new(), Vec::new());
        for attribute in ["RequestCpus", "RequestMemory", "RequestDisk"] {
            let knob = format!("JOB_DEFAULT_{}", attribute.to_ascii_uppercase());
            match config.expr(&knob) {
                Ok(expr) => requests.extend(expr.map(|expr| (attribute, expr))),
                Err(error) => faults.push(Fault::of_value(&knob, &error)),
            }
        }
        if faults.is_empty() { Ok(Self { requests }) } else { Err(faults) }
    }

    /// Gives a job the requests that it does not make.
    pub fn fill(&self, job: &mut Ad) {
        // What condor_submit counts, and what the default for disk looks at: pods bring no files from where they are made.
        if !job.contains("TransferInputSizeMB") {
            job.set("TransferInputSizeMB", 0);
        }
        for (attribute, expr) in &self.requests {
            if !job.contains(attribute) {
                job.insert(*attribute, expr.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classad::{Env, Value};
    use crate::config::{Host, Reader, Source};

    fn filled(text: &str, job: &str) -> [Value; 3] {
        let source = Source::block("policy", text);
        let config = Reader::new(Host::none()).subsystem("SCHEDD").read(&[source]).into_config().unwrap();
        let mut job = Ad::parse_long(job).unwrap();
        JobDefaults::read(&config).unwrap().fill(&mut job);
        ["RequestCpus", "RequestMemory", "RequestDisk"].map(|name| job.eval_attr(name, None, &Env::at(0)))
    }

    #[test]
    fn jobs_that_ask_for_nothing_get_defaults() {
        let defaults = [Value::Int(1), Value::Int(128), Value::Real(1_048_576.0)];
        let [cpus, memory, disk] = filled("", "Owner = \"alice\"");
        assert_eq!([cpus, memory, Value::Real(disk.as_number().unwrap())], defaults);
        assert_eq!(filled("", "TransferInputSizeMB = 1999")[2].as_number(), Some(2_560_000.0));
        assert_eq!(filled("", "RequestMemory = 7")[1], Value::Int(7));
        let text = "JOB_DEFAULT_REQUESTMEMORY = ifThenElse(MemoryUsage =!= UNDEFINED, MemoryUsage, 1)\n";
        assert_eq!(filled(text, "MemoryUsage = 300")[1], Value::Int(300));
        assert_eq!(filled(text, "")[1], Value::Int(1));
    }
}
