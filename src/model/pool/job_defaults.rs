//! The defaults for what a job does not request: `JOB_DEFAULT_REQUESTCPUS` and related knobs.
//!
//! As `condor_submit` does, the operator adds the defaults to a job's ad when the job is submitted. The job keeps these
//! defaults, whatever becomes of the configuration. They are expressions of the job's ad.
//!
//! Source: the manual, "Defaults for Partitionable Slot Sizes".

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::pool::{JobSpec, Problem, Time};
use classad::{Ad, Env, Expr};
use condor_config::{Config, Host, Reader, ValueError};

/// The attributes that have a default, and the knob that holds the default.
const KNOBS: [(&str, &str); 4] = [
    ("RequestCpus", "JOB_DEFAULT_REQUESTCPUS"),
    ("RequestMemory", "JOB_DEFAULT_REQUESTMEMORY"),
    ("RequestDisk", "JOB_DEFAULT_REQUESTDISK"),
    ("JobLeaseDuration", "JOB_DEFAULT_LEASE_DURATION"),
];

/// The largest amount that a default may give: more than any machine has, but far from where sums overflow.
const MOST: f64 = 1e15;

/// The least amount that a request may be; none if the attribute is no request.
fn least(attribute: &str) -> Option<f64> {
    match attribute {
        "RequestCpus" | "RequestMemory" => Some(1.0),
        "RequestDisk" => Some(0.0),
        _ => None,
    }
}

/// Defaults for what a job does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobDefaults {
    /// Attributes with their default expressions.
    attributes: Vec<(&'static str, Expr)>,
}

/// HTCondor's own defaults: one object for all jobs that have no others.
static OWN: LazyLock<Arc<JobDefaults>> = LazyLock::new(|| {
    let reading = Reader::new(Host::none()).subsystem("SCHEDD").read(&[]);
    Arc::new(JobDefaults::read(&reading.config).unwrap_or_default())
});

impl JobDefaults {
    /// HTCondor's own defaults: 1 CPU; 128 MiB; 1 GiB of disk, or a quarter more than the job's input files; a lease of
    /// 40 minutes.
    pub fn own() -> Arc<Self> {
        Arc::clone(&OWN)
    }

    /// Reads `JOB_DEFAULT_REQUESTCPUS`, `JOB_DEFAULT_REQUESTMEMORY` (MiB without a unit), `JOB_DEFAULT_REQUESTDISK` (KiB without a
    /// unit) and `JOB_DEFAULT_LEASE_DURATION` (seconds). A knob that the text does not set has HTCondor's own default; a knob
    /// that the text sets to nothing gives no default.
    ///
    /// # Errors
    /// The knobs whose value is no expression, or a constant that is no amount.
    pub fn read(config: &Config) -> Result<Self, Vec<ValueError>> {
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for (attribute, knob) in KNOBS {
            let read = match least(attribute) {
                Some(least) => config.amount(knob, least),
                None => config.expr(knob),
            };
            match read {
                Ok(expr) => all.extend(expr.map(|expr| (attribute, expr))),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(Self { attributes: all }) } else { Err(faults) }
    }

    /// The defaults in the form in which the job's status records them: each attribute's expression as text.
    pub fn record(&self) -> BTreeMap<String, String> {
        self.attributes.iter().map(|(attribute, expr)| ((*attribute).to_owned(), expr.to_string())).collect()
    }

    /// Reads a record. `None` if the record was not made by [`JobDefaults::record`].
    pub fn recall(record: &BTreeMap<String, String>) -> Option<Self> {
        let read = |(name, text): (&String, &String)| {
            let (attribute, _) = KNOBS.iter().find(|(attribute, _)| attribute == name)?;
            Some((*attribute, Expr::parse(text).ok()?))
        };
        let attributes: Vec<_> = record.iter().map(read).collect::<Option<_>>()?;
        (!record.is_empty()).then_some(Self { attributes })
    }

    /// Adds the defaults to a job's ad, and computes what the job then requests.
    ///
    /// # Errors
    /// A default that does not evaluate to an amount.
    pub fn complete(&self, spec: &mut JobSpec, submitted: Time) -> Result<(), Vec<Problem>> {
        self.fill(&mut spec.ad);
        let env = Env::at(submitted.secs());
        let unsaid = std::mem::take(&mut spec.request.unsaid);
        let mut problems = Vec::new();
        let rows = [
            (unsaid.cpus, "Cpus", &mut spec.request.cpus),
            (unsaid.memory, "Memory", &mut spec.request.memory_mib),
            (unsaid.disk, "Disk", &mut spec.request.disk_kib),
        ];
        for (_, resource, amount) in rows.into_iter().filter(|(unsaid, ..)| *unsaid) {
            let attribute = format!("Request{resource}");
            let (value, least) =
                (spec.ad.eval_attr(&attribute, None, &env), least(&attribute).unwrap_or_default());
            match value.as_number().map(f64::ceil).filter(|found| (least..=MOST).contains(found)) {
                #[allow(clippy::cast_possible_truncation, reason = "it is whole and far below 2^53")]
                Some(found) => *amount = found as i64,
                None => problems.push(Problem {
                    reason: "InvalidDefault",
                    field: format!("spec.requests.{}", resource.to_ascii_lowercase()),
                    message: format!(
                        "is not said, and JOB_DEFAULT_REQUEST{} makes it {value}, which is no amount of at least \
                         {least}; say it here, or have the SubmitPolicy corrected and submit the job again",
                        resource.to_ascii_uppercase()
                    ),
                }),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Adds the attributes that the ad does not have.
    fn fill(&self, job: &mut Ad) {
        // `condor_submit` sums up the job's input files, and the default for disk reads the sum. Pods bring no files
        // from where they are submitted.
        if !job.contains("RequestDisk") && !job.contains("TransferInputSizeMB") {
            job.set("TransferInputSizeMB", 0);
        }
        for (attribute, expr) in &self.attributes {
            if !job.contains(attribute) {
                job.insert(*attribute, expr.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit;
    use crate::pool::{Request, Unsaid};
    use classad::Value;
    use condor_config::Source;

    fn defaults(text: &str) -> JobDefaults {
        let source = Source::block("policy", text);
        let config = Reader::new(Host::none()).subsystem("SCHEDD").read(&[source]).into_config().unwrap();
        JobDefaults::read(&config).unwrap()
    }

    fn job(ad: &str) -> JobSpec {
        let ad = Ad::parse_long(ad).unwrap();
        let unsaid = |name: &str| !ad.contains(name);
        let unsaid = Unsaid {
            cpus: unsaid("RequestCpus"),
            memory: unsaid("RequestMemory"),
            disk: unsaid("RequestDisk"),
        };
        kit::job(ad, Request { unsaid, ..Request::default() })
    }

    fn completed(text: &str, ad: &str) -> (Request, [Value; 4]) {
        let mut spec = job(ad);
        defaults(text).complete(&mut spec, Time::default()).unwrap();
        let values = KNOBS.map(|(name, _)| spec.ad.eval_attr(name, None, &Env::at(0)));
        (spec.request, values)
    }

    #[test]
    fn jobs_that_ask_for_nothing_get_defaults() {
        let (request, values) = completed("", "Owner = \"alice\"");
        assert_eq!((request.cpus, request.memory_mib, request.disk_kib), (1, 128, 1 << 20));
        assert_eq!(request.unsaid, Unsaid::default());
        assert_eq!(
            [&values[0], &values[1], &values[3]],
            [&Value::Int(1), &Value::Int(128), &Value::Int(2400)]
        );
        let (request, _) = completed("", "TransferInputSizeMB = 1999");
        assert_eq!(request.disk_kib, 2_560_000);
    }

    /// condor_submit 25: a default for memory or disk is read as request_memory and request_disk are.
    #[test]
    fn a_default_may_have_a_unit() {
        let text = "JOB_DEFAULT_REQUESTMEMORY = 2GB\nJOB_DEFAULT_REQUESTDISK = 1.5 M\n";
        let (request, values) = completed(text, "Owner = \"alice\"");
        assert_eq!((request.memory_mib, request.disk_kib), (2048, 1536));
        assert_eq!(values[1], Value::Int(2048));
    }

    #[test]
    fn what_a_job_says_itself_stays() {
        let (request, values) = completed("", "RequestMemory = 7\nJobLeaseDuration = 60");
        assert_eq!((&values[1], &values[3], request.cpus), (&Value::Int(7), &Value::Int(60), 1));
    }

    /// "Defaults for Partitionable Slot Sizes": the manual's default for memory looks at the job's ad.
    #[test]
    fn defaults_are_expressions_of_the_job() {
        let text = "JOB_DEFAULT_REQUESTMEMORY = ifThenElse(MemoryUsage =!= UNDEFINED, MemoryUsage, 1)\n\
                    JOB_DEFAULT_REQUESTCPUS = 2\nJOB_DEFAULT_REQUESTDISK = DiskUsage ?: 10.5\n";
        let amounts = |ad| {
            let (request, _) = completed(text, ad);
            (request.cpus, request.memory_mib, request.disk_kib)
        };
        assert_eq!(amounts("MemoryUsage = 300\nDiskUsage = 70"), (2, 300, 70));
        assert_eq!(amounts("Owner = \"alice\""), (2, 1, 11));
    }

    #[test]
    fn a_default_that_is_no_amount_is_told_to_the_job() {
        let mut spec = job("RequestDisk = 5");
        let text = "JOB_DEFAULT_REQUESTCPUS = Threads ?: 0\nJOB_DEFAULT_REQUESTMEMORY =\n";
        let problems = defaults(text).complete(&mut spec, Time::default()).unwrap_err();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "spec.requests.cpus: is not said, and JOB_DEFAULT_REQUESTCPUS makes it 0, which is no amount of at least 1; \
                 say it here, or have the SubmitPolicy corrected and submit the job again",
                "spec.requests.memory: is not said, and JOB_DEFAULT_REQUESTMEMORY makes it undefined, which is no amount of \
                 at least 1; say it here, or have the SubmitPolicy corrected and submit the job again",
            ]
        );
    }

    #[test]
    fn a_record_recalls_what_it_is_of() {
        for text in ["", "JOB_DEFAULT_REQUESTMEMORY = MemoryUsage ?: 64\nJOB_DEFAULT_REQUESTDISK =\n"] {
            let mut before = defaults(text);
            let mut after = JobDefaults::recall(&before.record()).unwrap();
            before.attributes.sort_by_key(|(name, _)| *name);
            after.attributes.sort_by_key(|(name, _)| *name);
            assert_eq!(before, after);
        }
        let strange = |name: &str, text: &str| BTreeMap::from([(name.to_owned(), text.to_owned())]);
        for record in [BTreeMap::new(), strange("Owner", "\"root\""), strange("RequestCpus", "1 +")] {
            assert_eq!(JobDefaults::recall(&record), None, "{record:?}");
        }
    }
}
