//! `condor_prio` and `condor_qedit`: edits of queued jobs.
//!
//! All procs of an HTCJob share its spec, so that an edit is one of a whole job. An edit changes procs that have not started.

use ::submit::manifest::in_new_syntax;
use api::HTCJob;
use classad::Expr;
use model::pool::classad_name;
use model::schedd::is_protected;
use serde_json::{Map, Value, json};

use super::chosen::{Chosen, Picked};
use super::{Answer, Failure, Outcome};
use crate::cluster::{self, Cluster, Connection};
use crate::patient::{PAUSE, TRIES};

/// How condor_prio is used here.
const PRIO_USAGE: &str = "\
Usage: condor_prio [{+|-}N | -p N] [CLUSTER | CLUSTER.PROC | OWNER | -a] ...
  +N, -N, -p N   raise or lower the priority by N, or set it to N
  -a             all jobs of the namespace
A job with several procs has one priority: CLUSTER.PROC is for jobs with one proc.";

/// How a priority changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    By(i32),
    To(i32),
}

impl Change {
    fn of(self, priority: i32) -> i32 {
        match self {
            Self::By(by) => priority.saturating_add(by),
            Self::To(to) => to,
        }
    }
}

fn parse_prio(words: &[String]) -> Result<(Change, Chosen), String> {
    let (mut change, mut chosen) = (None, Chosen::default());
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let number = |text: &str| {
            text.parse::<i32>()
                .map_err(|_| format!("condor_prio: {text} is no priority: it must be a whole number"))
        };
        match word {
            "-p" => {
                change =
                    Some(Change::To(number(words.next().ok_or("condor_prio: -p requires a priority")?)?));
            }
            "-a" => chosen.all = true,
            "-n" | "-name" | "-pool" => {
                return Err(format!(
                    "condor_prio: {word} is not supported: there is one queue, the HTCJobs of the kubeconfig's cluster"
                ));
            }
            "-h" | "-help" => return Err(PRIO_USAGE.to_owned()),
            _ if word.starts_with(['+', '-']) => change = Some(Change::By(number(word)?)),
            _ => chosen.add(word),
        }
    }
    let change = change.ok_or_else(|| format!("condor_prio: no priority is given\n{PRIO_USAGE}"))?;
    if chosen.is_nothing() {
        return Err(format!("condor_prio: no job is given\n{PRIO_USAGE}"));
    }
    Ok((change, chosen))
}

pub(super) async fn prio(words: &[String], connection: &Connection) -> Outcome {
    let (change, chosen) = parse_prio(words)?;
    let cluster = Cluster::connect(connection).await?;
    for picked in whole_jobs(chosen.pick(&cluster).await?)? {
        let edited = |job: &HTCJob| Ok(json!({"priority": change.of(job.spec.priority)}));
        write(&cluster, picked.job, edited).await?;
    }
    Ok(Answer::default())
}

/// How condor_qedit is used here.
const EDIT_USAGE: &str = "\
Usage: condor_qedit {CLUSTER ... | CLUSTER.PROC ... | OWNER | -constraint EXPRESSION} ATTRIBUTE VALUE ...
       condor_qedit {CLUSTER ... | CLUSTER.PROC ... | OWNER | -constraint EXPRESSION} ATTRIBUTE=VALUE ...
A job with several procs shares its attributes: CLUSTER.PROC is for jobs with one proc.";

/// Attributes that say what has become of a job, or who it is.
const PROTECTED: &[&str] = &[
    "AcctGroupUser",
    "ClusterId",
    "CompletionDate",
    "EnteredCurrentStatus",
    "HoldReason",
    "HoldReasonCode",
    "HoldReasonSubCode",
    "JobName",
    "JobNamespace",
    "JobStatus",
    "JobUniverse",
    "MyType",
    "Owner",
    "ProcId",
    "QDate",
    "RemoteHost",
    "ServerTime",
    "TotalSubmitProcs",
    "User",
];

/// Attributes that say what the job's pods are made from. Their values follow from the job's template.
const OF_TEMPLATE: &[&str] = &[
    "Args",
    "Arguments",
    "Cmd",
    "ContainerImage",
    "DockerImage",
    "Env",
    "Environment",
    "Err",
    "In",
    "Iwd",
    "Out",
    "TransferExecutable",
    "TransferInput",
];

fn parse_edit(words: &[String]) -> Result<(Chosen, Vec<(String, String)>), String> {
    let (mut chosen, mut edits) = (Chosen::default(), Vec::new());
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-h" | "-help" => return Err(EDIT_USAGE.to_owned()),
            "-constraint" | "-const" | "-c" => {
                let text = words
                    .next()
                    .ok_or("condor_qedit: -constraint requires a ClassAd expression an argument")?;
                let wrong = |error| format!("condor_qedit: invalid constraint: {text}: {error}");
                chosen.constraint = Some(Expr::parse_old(text).map_err(wrong)?);
            }
            _ if word.starts_with('-') => {
                return Err(format!("condor_qedit: {word} is not a valid option\n{EDIT_USAGE}"));
            }
            _ if chosen.is_nothing() => chosen.add(word),
            // Further jobs. No attribute's name begins with a digit.
            _ if edits.is_empty() && tools::job_in_queue(word).is_some() => chosen.add(word),
            _ => {
                let missing = || format!("condor_qedit : expression required after attribute {word}");
                let (name, value) = match word.split_once('=') {
                    Some(both) => both,
                    None => (word, words.next().ok_or_else(missing)?),
                };
                Expr::parse_old(value)
                    .map_err(|error| format!("Update aborted, illegal value for : {name}: {error}"))?;
                edits.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
    }
    if chosen.is_nothing() {
        return Err(format!("condor_qedit : Error - there were no jobs specified.\n{EDIT_USAGE}"));
    }
    if edits.is_empty() {
        return Err(format!("condor_qedit : Error - no attributes specifed.\n{EDIT_USAGE}"));
    }
    Ok((chosen, edits))
}

pub(super) async fn qedit(words: &[String], connection: &Connection) -> Outcome {
    let (chosen, edits) = parse_edit(words)?;
    let cluster = Cluster::connect(connection).await?;
    let jobs = whole_jobs(chosen.pick(&cluster).await?)?;
    let mut procs = 0_usize;
    for picked in jobs {
        let edited = |job: &HTCJob| {
            let mut spec = Map::new();
            for (name, value) in &edits {
                edit(&mut spec, job, name, value)?;
            }
            Ok(Value::Object(spec))
        };
        write(&cluster, picked.job, edited).await?;
        procs += picked.procs;
    }
    let said =
        |(name, _): &(String, String)| format!("Set attribute \"{name}\" for {procs} matching jobs.\n");
    Ok(Answer { text: edits.iter().map(said).collect(), ..Answer::default() })
}

/// The jobs, if none is chosen in part.
fn whole_jobs(jobs: Vec<Picked>) -> Result<Vec<Picked>, Failure> {
    match jobs.iter().find(|picked| !picked.whole) {
        None => Ok(jobs),
        Some(picked) => {
            let id = picked.job.status.as_ref().and_then(|status| status.cluster_id).unwrap_or_default();
            Err(Failure(format!(
                "the procs of job {id} share their priority and attributes; edit the whole job: name {id} without a proc"
            )))
        }
    }
}

/// Makes an edit, of which `edited` gives the merge patch of the spec of a job. The edit follows from what the job says, such as its
/// priority: if somebody else writes the job meanwhile, the job is read again, and `edited` is asked again.
async fn write(
    cluster: &Cluster,
    mut job: HTCJob,
    edited: impl Fn(&HTCJob) -> Result<Value, String>,
) -> Result<(), Failure> {
    let (uid, name) = (job.metadata.uid.clone(), job.metadata.name.clone().unwrap_or_default());
    let namespace = job.metadata.namespace.clone().unwrap_or_default();
    let object = || format!("HTCJob {namespace}/{name}");
    for _ in 0..TRIES {
        let patch = patch(&job, &edited(&job)?);
        match cluster.merge::<HTCJob>(Some(&namespace), &name, &patch).await {
            Err(cluster::Error::Contended { .. }) => tokio::time::sleep(PAUSE).await,
            written => return Ok(written?),
        }
        let read = cluster.read(&namespace, &name).await?;
        job = serde_json::from_value(read)
            .map_err(|error| Failure(format!("Error: {} cannot be read: {error}", object())))?;
        if job.metadata.uid != uid {
            // The job has gone, and another has its name.
            return Err(cluster::Error::Missing { object: object() }.into());
        }
    }
    Err(cluster::Error::Contended { verb: "change", object: object() }.into())
}

/// The patch of a job whose spec is changed so. It names the job's version, so that nobody else's edit is lost.
fn patch(job: &HTCJob, spec: &Value) -> Value {
    json!({"metadata": {"resourceVersion": job.metadata.resource_version}, "spec": spec})
}

/// The object in a field, which is made if it is missing.
fn object_in<'s>(fields: &'s mut Map<String, Value>, name: &str) -> Option<&'s mut Map<String, Value>> {
    fields.entry(name).or_insert_with(|| json!({})).as_object_mut()
}

/// Refuses an attribute that nobody edits.
fn check_name(job: &HTCJob, name: &str) -> Result<(), String> {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if let Some(known) = PROTECTED.iter().find(|known| is(known)) {
        return Err(protected(known));
    }
    if !is_attribute(name) {
        return Err(format!(
            "Update aborted, illegal attribute-name specified for attribute \"{name}\".\nTransaction failed.  No attributes were set."
        ));
    }
    if OF_TEMPLATE.iter().any(|known| is(known)) {
        let object = job.metadata.name.as_deref().unwrap_or_default();
        return Err(format!(
            "{name} follows from spec.template of the job: change it there, by kubectl edit htcjob {object}\nTransaction failed.  No attributes were set."
        ));
    }
    Ok(())
}

/// Adds to a merge patch of a spec what sets an attribute of the job's ad.
fn edit(spec: &mut Map<String, Value>, job: &HTCJob, name: &str, value: &str) -> Result<(), String> {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    check_name(job, name)?;
    let literal = Expr::parse_old(value).ok().and_then(|expr| expr.as_literal().cloned());
    let number = || {
        let number = literal.as_ref().and_then(classad::Value::as_int);
        number
            .ok_or_else(|| format!("Update aborted, illegal value for : {name}: {value} is no whole number"))
    };
    let text =
        || literal.as_ref().and_then(classad::Value::as_str).map_or_else(|| value.to_owned(), str::to_owned);
    let mut request = |field: &str, amount: Value| {
        if let Some(requests) = object_in(spec, "requests") {
            requests.insert(field.to_owned(), amount);
        }
    };
    if is("RequestCpus") {
        request("cpus", json!(number()?));
    } else if is("RequestMemory") {
        request("memory", json!(format!("{}Mi", number()?)));
    } else if is("RequestDisk") {
        request("disk", json!(format!("{}Ki", number()?)));
    } else if is("RequestGPUs") {
        request("gpus", json!(number()?));
    } else if is("JobPrio") {
        spec.insert("priority".to_owned(), json!(number()?));
    } else if is("Requirements") {
        spec.insert("requirements".to_owned(), json!(in_new_syntax(value)));
    } else if is("Rank") {
        spec.insert("rank".to_owned(), json!(in_new_syntax(value)));
    } else if is("AcctGroup") || is("AccountingGroup") {
        spec.insert("accountingGroup".to_owned(), json!(text()));
    } else if is("ConcurrencyLimits") {
        let limits: Vec<String> =
            text().split([',', ' ']).filter(|limit| !limit.is_empty()).map(str::to_owned).collect();
        spec.insert("concurrencyLimits".to_owned(), json!(limits));
    } else if let Some(resource) = requested(name) {
        let known = job.spec.requests.resources.keys().find(|known| {
            known.eq_ignore_ascii_case(resource) || classad_name(known).eq_ignore_ascii_case(resource)
        });
        let resource = known.map_or_else(|| resource.to_owned(), Clone::clone);
        let amount = number()?;
        let requests = object_in(spec, "requests");
        if let Some(resources) = requests.and_then(|requests| object_in(requests, "resources")) {
            resources.insert(resource, json!(amount));
        }
    } else if is_protected(name) {
        return Err(protected(name));
    } else if let Some(attributes) = object_in(spec, "attributes") {
        // The case of a name does not matter, but two spellings of one attribute would be two keys.
        for other in job.spec.attributes.keys().filter(|other| is(other) && *other != name) {
            attributes.insert(other.clone(), Value::Null);
        }
        attributes.insert(name.to_owned(), json!(in_new_syntax(value)));
    }
    Ok(())
}

fn protected(name: &str) -> String {
    format!(
        "Update of protected attribute \"{name}\" is not allowed.\nTransaction failed.  No attributes were set."
    )
}

/// The resource that an attribute requests, such as `Fpga` for `RequestFpga`.
fn requested(attribute: &str) -> Option<&str> {
    let (start, resource) = attribute.split_at_checked("Request".len())?;
    (start.eq_ignore_ascii_case("Request") && !resource.is_empty()).then_some(resource)
}

/// Whether an attribute can have this name.
fn is_attribute(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn priorities_are_set_or_moved() {
        assert_eq!(parse_prio(&words("-p 5 12")).map(|(change, _)| change.of(3)), Ok(5));
        assert_eq!(parse_prio(&words("+5 12")).map(|(change, _)| change.of(3)), Ok(8));
        assert_eq!(parse_prio(&words("-5 ada")).map(|(change, _)| change.of(3)), Ok(-2));
        for (line, part) in [
            ("12", "no priority is given"),
            ("-p 5", "no job is given"),
            ("-p x 12", "x is no priority"),
            ("-n schedd -p 5 12", "-n is not supported"),
            ("-help", "Usage"),
        ] {
            assert!(parse_prio(&words(line)).map(|_| ()).is_err_and(|error| error.contains(part)), "{line}");
        }
    }

    /// Without the version, two who raise the priority at the same time would raise it once.
    #[test]
    fn an_edit_names_the_version_of_the_job_that_it_follows_from() {
        let job: HTCJob = serde_json::from_value(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
            "metadata": {"name": "pi", "resourceVersion": "77"}, "spec": {"template": {}},
        }))
        .unwrap();
        let expected = json!({"metadata": {"resourceVersion": "77"}, "spec": {"priority": 5}});
        assert_eq!(patch(&job, &json!({"priority": 5})), expected);
    }

    /// Requests, each with its method and its body.
    type Asked = Arc<Mutex<Vec<(String, Value)>>>;

    /// Answers requests one after another with these statuses and objects, and writes the requests down.
    fn cluster(answers: Vec<(u16, Value)>) -> (Cluster, Asked) {
        let (asked, answers) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(answers.into_iter())));
        let heard = Arc::clone(&asked);
        let answer = async move |request: axum::extract::Request| {
            let method = request.method().to_string();
            let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
            heard.lock().unwrap().push((method, serde_json::from_slice(&body).unwrap_or_default()));
            let (code, answer) = answers.lock().unwrap().next().expect("no more requests than answers");
            (http::StatusCode::from_u16(code).unwrap(), answer.to_string())
        };
        let client = kube::Client::new(axum::Router::new().fallback(answer), "ns");
        (Cluster::behind(client), asked)
    }

    /// Two people raise the priority of a job at the same time.
    #[tokio::test(start_paused = true)]
    async fn an_edit_follows_from_the_job_that_is_read_after_a_conflict() {
        let job = |uid: &str, version: &str, priority: i32| {
            json!({
                "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
                "metadata": {"name": "pi", "namespace": "ns", "uid": uid, "resourceVersion": version},
                "spec": {"priority": priority, "template": {}},
            })
        };
        let conflict =
            || (409, json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict"}));
        let by_five = |job: &HTCJob| Ok(json!({"priority": Change::By(5).of(job.spec.priority)}));
        let patch = |version: &str, priority: i32| {
            let body = json!({"metadata": {"resourceVersion": version}, "spec": {"priority": priority}});
            ("PATCH".to_owned(), body)
        };
        let read = ("GET".to_owned(), Value::Null);
        let seen: HTCJob = serde_json::from_value(job("u1", "1", 0)).unwrap();

        let (at, asked) = cluster(vec![conflict(), (200, job("u1", "2", 5)), (200, job("u1", "3", 10))]);
        write(&at, seen.clone(), by_five).await.unwrap();
        assert_eq!(*asked.lock().unwrap(), [patch("1", 5), read.clone(), patch("2", 10)]);

        let (at, asked) = cluster(vec![conflict(), (200, job("u2", "2", 0))]);
        let Failure(why) = write(&at, seen, by_five).await.unwrap_err();
        assert!(why.contains("HTCJob ns/pi"), "{why}");
        assert_eq!(*asked.lock().unwrap(), [patch("1", 5), read], "a job that was made again is not edited");
    }

    /// The user writes the old syntax of ClassAds, in which a backslash in a string stands for itself.
    #[test]
    fn a_backslash_in_the_value_of_an_edit_reaches_the_job() {
        let mut spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}});
        let mut job: HTCJob = serde_json::from_value(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": {"name": "pi", "namespace": "ns"},
            "spec": spec,
        }))
        .unwrap();
        let line = r#"12 Requirements regexp("^n\d$",Machine) Rank regexp("\d",Machine)?7:8 Dir="C:\new\" Plain 1+1"#;
        for (name, value) in parse_edit(&words(line)).unwrap().1 {
            let mut patch = Map::new();
            edit(&mut patch, &job, &name, &value).unwrap();
            for (field, value) in patch {
                match (&mut spec[&field], value) {
                    (Value::Object(known), Value::Object(more)) => known.extend(more),
                    (known, value) => *known = value,
                }
            }
        }
        assert_eq!(spec["attributes"]["Plain"], "1+1");
        job.spec = serde_json::from_value(spec).unwrap();
        let now = model::pool::Time::from_secs(0);
        let (submission, problems) = controller::kinds::job::submission(&job, now);
        assert_eq!(problems, []);
        let ad = model::schedd::submit(&submission).unwrap().ad;
        let machine = classad::Ad::new()
            .with("Machine", "n1")
            .with("Cpus", 9)
            .with("Memory", 9999)
            .with("Disk", 1 << 30);
        let value = |name: &str| ad.eval_attr(name, Some(&machine), &classad::Env::at(0));
        assert_eq!(value("Requirements"), true.into());
        assert_eq!(value("Rank"), 7.into());
        assert_eq!(value("Dir"), "C:\\new\\".into());
    }

    #[test]
    fn edits_become_patches_of_the_spec() {
        let job: HTCJob = serde_json::from_value(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": {"name": "pi"},
            "spec": {"attributes": {"projectname": "\"a\""}, "requests": {"resources": {"example.com/fpga": 2, "Cogs": 1}},
                     "template": {}},
        }))
        .unwrap();
        let patch = |name: &str, value: &str| {
            let mut spec = Map::new();
            edit(&mut spec, &job, name, value).map(|()| Value::Object(spec))
        };
        for (name, value, expected) in [
            ("JobPrio", "7", json!({"priority": 7})),
            ("requestmemory", "2048", json!({"requests": {"memory": "2048Mi"}})),
            ("RequestDisk", "10", json!({"requests": {"disk": "10Ki"}})),
            ("Requirements", "TARGET.Memory > 1", json!({"requirements": "TARGET.Memory > 1"})),
            ("AcctGroup", "\"physics\"", json!({"accountingGroup": "physics"})),
            ("ConcurrencyLimits", "\"a, b:2\"", json!({"concurrencyLimits": ["a", "b:2"]})),
            ("RequestFpga", "1", json!({"requests": {"resources": {"example.com/fpga": 1}}})),
            ("requestcogs", "3", json!({"requests": {"resources": {"Cogs": 3}}})),
            ("RequestWheels", "1", json!({"requests": {"resources": {"Wheels": 1}}})),
            ("ProjectName", "\"b\"", json!({"attributes": {"projectname": null, "ProjectName": "\"b\""}})),
        ] {
            assert_eq!(patch(name, value), Ok(expected), "{name}");
        }
        assert!(
            patch("jobstatus", "5").is_err_and(|error| error.contains("protected attribute \"JobStatus\""))
        );
        for name in ["Submitter", "_cp_orig_RequestCpus", "Request", "ACCTGROUPUSER"] {
            assert!(patch(name, "3").is_err_and(|error| error.contains("protected attribute")), "{name}");
        }
        assert!(patch("RequestFpga", "a").is_err_and(|error| error.contains("is no whole number")));
        for name in ["Bad Name", "", "1x", "a-b"] {
            assert!(patch(name, "3").is_err_and(|error| error.contains("illegal attribute-name")), "{name}");
        }
        for name in ["cmd", "Args", "ContainerImage"] {
            assert!(patch(name, "3").is_err_and(|error| error.contains("kubectl edit htcjob pi")), "{name}");
        }
        let several = parse_edit(&words("12 13.0 Foo 1 Bar=2")).unwrap();
        assert_eq!(several.1, [("Foo", "1"), ("Bar", "2")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(patch("RequestCpus", "a + 1").is_err_and(|error| error.contains("is no whole number")));
        for (line, part) in [
            ("12", "no attributes specifed"),
            ("12 A", "expression required after attribute A"),
            ("12 A 1+", "illegal value for : A"),
            ("-x", "not a valid option"),
        ] {
            assert!(parse_edit(&words(line)).map(|_| ()).is_err_and(|error| error.contains(part)), "{line}");
        }
    }
}
