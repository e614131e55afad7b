//! `condor_tail` and `condor_ssh_to_job`: what a proc's pod prints, and a shell in the pod.

use std::collections::BTreeSet;
use std::process::Command;

use api::HTCJob;
use classad::{Ad, Env};
use model::pool::Time;

use super::{Answer, Failure, Outcome, jobs, place, version};
use crate::cluster::{Cluster, Connection};
use crate::output::first_container;

const TAIL_USAGE: &str = "\
Usage: condor_tail [-f] [-maxbytes N] CLUSTER.PROC
  -maxbytes N    at most so many bytes of the end [default: 1024]
  -f             follow what the job prints, by kubectl logs -f
A pod has one log for standard output and standard error.";

const SSH_USAGE: &str = "\
Usage: condor_ssh_to_job CLUSTER.PROC [COMMAND ...]
Runs a shell, or the command, in the first container of the proc's pod, by kubectl exec.";

/// The most lines of a log that are asked for.
const LINES: i64 = 1000;

/// The pod of a proc.
struct ProcPod {
    namespace: String,
    name: String,
    /// The container that runs the program.
    container: Option<String>,
    /// Why the proc has no pod that runs; `None` if the proc has one.
    absent: Option<String>,
}

/// Why a proc has no pod that runs, by its ad in the queue.
fn absence(job: &HTCJob, proc: i64) -> &'static str {
    let now = place::now();
    let env = Env::at(now);
    let ads = jobs::ads(std::slice::from_ref(job), Some(&jobs::Runs::default()), None, Time::from_secs(now));
    let number = |ad: &Ad, name: &str| ad.eval_attr(name, None, &env).as_int();
    let own = ads.iter().find(|ad| number(ad, "ProcId") == Some(proc));
    match own.and_then(|ad| number(ad, "JobStatus")) {
        Some(1) => "the proc is idle",
        Some(5) => "the proc is held",
        _ => "the proc has ended",
    }
}

/// The pod of a proc. If a job is named without a proc, the proc is the first that runs, or else the first.
async fn pod_of(cluster: &Cluster, word: &str) -> Result<ProcPod, Failure> {
    let unknown = || Failure(format!("{word} is no job: give CLUSTER.PROC, such as 12.0"));
    let (wanted, proc) = tools::job_id(word).ok_or_else(unknown)?;
    let all: Vec<HTCJob> = match cluster.list_all().await {
        Err(crate::cluster::Error::Forbidden { .. }) => {
            cluster.list(Some(&place::namespace(cluster))).await?
        }
        other => other?,
    };
    let is = |job: &&HTCJob| job.status.as_ref().and_then(|status| status.cluster_id) == Some(wanted);
    let job = all.iter().find(is).ok_or_else(|| Failure(format!("no job {wanted} in the cluster")))?;
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let namespace = job.metadata.namespace.clone().unwrap_or_default();
    let pods = jobs::pods(cluster, Some(&namespace)).await?;
    let pods: BTreeSet<&str> = pods.iter().filter_map(|metadata| metadata.name.as_deref()).collect();
    let runs = |proc: &i64| pods.contains(format!("{name}-{proc}").as_str());
    let proc = proc.or_else(|| (0..job.spec.count).find(runs)).unwrap_or(0);
    if !(0..job.spec.count).contains(&proc) {
        return Err(Failure(format!(
            "job {wanted} has no proc {proc}: its procs are 0 to {}",
            job.spec.count - 1
        )));
    }
    let absent = (!runs(&proc)).then(|| format!("{wanted}.{proc} does not run: {}", absence(job, proc)));
    let template = serde_json::from_str(job.spec.template.0.get()).unwrap_or_default();
    Ok(ProcPod { namespace, name: format!("{name}-{proc}"), container: first_container(&template), absent })
}

/// Runs kubectl in place of this tool, on its terminal and on the same cluster. The exit status is that of kubectl,
/// which has told the user what failed.
fn kubectl(connection: &Connection, words: &[&str]) -> Outcome {
    match command(connection, words).status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            Ok(Answer { status: code.unwrap_or(1), ..Answer::default() })
        }
        Err(error) => {
            let typed = format!("kubectl {}", words.join(" "));
            Err(Failure(format!("cannot run kubectl: {error}; type: {typed}")))
        }
    }
}

/// The command line of kubectl, with the options that choose the cluster.
fn command(connection: &Connection, words: &[&str]) -> Command {
    let mut command = Command::new("kubectl");
    command.args(connection.words()).args(words);
    command
}

pub(super) async fn tail(words: &[String], connection: &Connection) -> Outcome {
    let (mut follow, mut most, mut job) = (false, 1024_usize, None);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-f" | "-follow" => follow = true,
            "-maxbytes" => {
                let text = words.next().ok_or("-maxbytes requires an argument.".to_owned())?;
                most = text.parse().map_err(|_| format!("Error: maxbytes ({text}) is not valid"))?;
            }
            "-help" => return Ok(Answer { text: format!("{TAIL_USAGE}\n"), ..Answer::default() }),
            "-version" => return Ok(version()),
            "-debug" | "-auto-retry" => {}
            "-stderr" | "-no-stdout" => {
                return Err(Failure(format!(
                    "{word} is not supported: a pod has one log for standard output and standard error"
                )));
            }
            "-name" | "-pool" => {
                return Err(Failure(format!(
                    "{word} is not supported: there is one queue, the HTCJobs of the kubeconfig's cluster"
                )));
            }
            _ if word.starts_with('-') => return Err(Failure(format!("{word} is no option\n{TAIL_USAGE}"))),
            _ if job.is_none() => job = Some(word),
            _ => {
                return Err(Failure(format!(
                    "{word}: only the log can be read; use kubectl exec or kubectl cp for files"
                )));
            }
        }
    }
    let job = job.ok_or_else(|| Failure(TAIL_USAGE.to_owned()))?;
    let cluster = Cluster::connect(connection).await?;
    let ProcPod { namespace, name: pod, container, absent } = pod_of(&cluster, job).await?;
    if follow && absent.is_none() {
        let mut words = vec!["logs", "-f", "--tail=20", "-n", &namespace, &pod];
        words.extend(container.iter().flat_map(|name| ["-c", name]));
        return kubectl(connection, &words);
    }
    // The pod of a proc that has ended may still be there, with its log.
    let log = cluster.log((&namespace, &pod), container, Some(LINES)).await.map_err(|error| {
        let why = absent.unwrap_or_else(|| error.to_string());
        Failure(format!("Error: {why}; kubectl slotwright output {job} says what is left"))
    })?;
    Ok(Answer { text: end_of(&log, most), ..Answer::default() })
}

/// The last so many bytes of a log, from the first whole character on.
fn end_of(log: &[u8], most: usize) -> String {
    let from = log.len().saturating_sub(most);
    let end = log.get(from..).unwrap_or_default();
    let is_inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let cut = if from > 0 { end.iter().take(3).take_while(is_inside).count() } else { 0 };
    String::from_utf8_lossy(end.get(cut..).unwrap_or_default()).into_owned()
}

pub(super) async fn ssh(words: &[String], connection: &Connection) -> Outcome {
    let Some((job, command)) = words.split_first() else { return Err(Failure(SSH_USAGE.to_owned())) };
    match job.as_str() {
        "-help" => return Ok(Answer { text: format!("{SSH_USAGE}\n"), ..Answer::default() }),
        "-version" => return Ok(version()),
        option if option.starts_with('-') => {
            return Err(Failure(format!(
                "{option} is not supported: there is no sshd in a pod; kubectl exec, kubectl cp and kubectl port-forward do what ssh does\n{SSH_USAGE}"
            )));
        }
        _ => {}
    }
    let cluster = Cluster::connect(connection).await?;
    let ProcPod { namespace, name: pod, container, absent } = pod_of(&cluster, job).await?;
    if let Some(why) = absent {
        return Err(Failure(format!("Error: {why}")));
    }
    let mut words = vec!["exec", "-it", "-n", &namespace, &pod];
    words.extend(container.iter().flat_map(|name| ["-c", name]));
    words.push("--");
    if command.is_empty() {
        words.push("/bin/sh");
    }
    words.extend(command.iter().map(String::as_str));
    kubectl(connection, &words)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        connection: Connection,
    }

    #[test]
    fn the_end_of_a_log_begins_with_a_whole_character_and_need_not_be_text() {
        for (log, most, expected) in [
            (b"abc" as &[u8], 1024, "abc"),
            (b"abc", 2, "bc"),
            (b"abc", 0, ""),
            ("a\u{e4}b".as_bytes(), 2, "b"),
            ("a\u{e4}b".as_bytes(), 3, "\u{e4}b"),
            (b"a\xffb\xe4\n", 1024, "a\u{fffd}b\u{fffd}\n"),
            (b"\x80a", 2, "\u{fffd}a"),
        ] {
            assert_eq!(end_of(log, most), expected, "{log:?} {most}");
        }
    }

    #[test]
    fn kubectl_is_run_on_the_cluster_of_the_options() {
        for (options, expected) in [
            (&[] as &[&str], &["exec", "p"] as &[&str]),
            (&["--context", "prod"], &["--context", "prod", "exec", "p"]),
            (
                &["--context", "prod", "--kubeconfig", "kc"],
                &["--kubeconfig", "kc", "--context", "prod", "exec", "p"],
            ),
        ] {
            let line = Line::parse_from([&["x"], options].concat());
            let command = command(&line.connection, &["exec", "p"]);
            assert!(command.get_args().eq(expected.iter().copied()), "{command:?}");
        }
    }
}
