//! Cron jobs in the specs of NodeReports.

use std::time::Duration;

use api::{NodeCron, NodeCronAutopublish, NodeCronJob, NodeCronMode};
use model::pool::{Autopublish, CronJob, CronMode, Crontab, Metric, MetricKind};

/// The spec by which an agent is asked to run these jobs.
pub fn to_spec(tab: &Crontab) -> NodeCron {
    NodeCron {
        jobs: tab.jobs.iter().map(job_to_spec).collect(),
        max_job_load: tab.max_load,
        autopublish: match tab.publish {
            Autopublish::Never => NodeCronAutopublish::Never,
            Autopublish::IfChanged => NodeCronAutopublish::IfChanged,
            Autopublish::Always => NodeCronAutopublish::Always,
        },
        log_non_zero_exit: tab.log_failures,
    }
}

/// The jobs that a spec asks an agent to run.
pub fn of_spec(spec: &NodeCron) -> Crontab {
    Crontab {
        jobs: spec.jobs.iter().map(job_of_spec).collect(),
        max_load: spec.max_job_load,
        publish: match spec.autopublish {
            NodeCronAutopublish::Never => Autopublish::Never,
            NodeCronAutopublish::IfChanged => Autopublish::IfChanged,
            NodeCronAutopublish::Always => Autopublish::Always,
        },
        log_failures: spec.log_non_zero_exit,
    }
}

fn job_to_spec(job: &CronJob) -> NodeCronJob {
    NodeCronJob {
        name: job.name.clone(),
        executable: job.executable.clone(),
        args: job.arguments.clone(),
        env: job.environment.clone(),
        cwd: job.directory.clone(),
        mode: match job.mode {
            CronMode::Periodic => NodeCronMode::Periodic,
            CronMode::WaitForExit => NodeCronMode::WaitForExit,
            CronMode::OneShot => NodeCronMode::OneShot,
        },
        period_seconds: u32::try_from(job.period.as_secs()).unwrap_or(u32::MAX),
        prefix: job.prefix.clone(),
        kill: job.kill,
        reconfig: job.reconfig,
        reconfig_rerun: job.rerun,
        slots: job.slots.clone(),
        load: job.load,
        metrics: job.metrics.iter().map(metric_to_spec).collect(),
        waits: !job.may_start,
    }
}

fn metric_to_spec(metric: &Metric) -> String {
    let kind = match metric.kind {
        MetricKind::Sum => "SUM",
        MetricKind::Peak => "PEAK",
    };
    format!("{kind}:{}", metric.resource)
}

/// Reads a metric; `None` if its kind is neither SUM nor PEAK. The crontab then differs from the wanted one, so that the operator asks the
/// agent again.
fn metric_of_spec(text: &str) -> Option<Metric> {
    let (kind, resource) = text.split_once(':')?;
    let kind = match kind {
        "SUM" => MetricKind::Sum,
        "PEAK" => MetricKind::Peak,
        _ => return None,
    };
    Some(Metric { kind, resource: resource.to_owned() })
}

fn job_of_spec(job: &NodeCronJob) -> CronJob {
    CronJob {
        name: job.name.clone(),
        executable: job.executable.clone(),
        arguments: job.args.clone(),
        environment: job.env.clone(),
        directory: job.cwd.clone(),
        mode: match job.mode {
            NodeCronMode::Periodic => CronMode::Periodic,
            NodeCronMode::WaitForExit => CronMode::WaitForExit,
            NodeCronMode::OneShot => CronMode::OneShot,
        },
        period: Duration::from_secs(job.period_seconds.into()),
        prefix: job.prefix.clone(),
        kill: job.kill,
        reconfig: job.reconfig,
        rerun: job.reconfig_rerun,
        slots: job.slots.clone(),
        load: job.load,
        metrics: job.metrics.iter().filter_map(|text| metric_of_spec(text)).collect(),
        may_start: !job.waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operator compares what an agent was asked with what it is to be asked.
    #[test]
    fn what_was_written_is_read_as_the_same() {
        for mode in [CronMode::Periodic, CronMode::WaitForExit, CronMode::OneShot] {
            for publish in [Autopublish::Never, Autopublish::IfChanged, Autopublish::Always] {
                let job = CronJob {
                    name: "a".to_owned(),
                    executable: "bin/a".to_owned(),
                    arguments: vec!["x y".to_owned(), String::new()],
                    environment: [("A".to_owned(), "1".to_owned())].into(),
                    directory: Some("/tmp".to_owned()),
                    mode,
                    period: Duration::from_secs(7),
                    prefix: "a_".to_owned(),
                    kill: true,
                    reconfig: true,
                    rerun: true,
                    slots: vec![2, 1],
                    load: 0.017,
                    metrics: vec![
                        Metric { kind: MetricKind::Sum, resource: "GPUs".to_owned() },
                        Metric { kind: MetricKind::Peak, resource: "GPUsMemory".to_owned() },
                    ],
                    may_start: false,
                };
                let plain = CronJob { mode, may_start: true, ..CronJob::default() };
                let tab = Crontab { jobs: vec![job, plain], max_load: 0.3, publish, log_failures: true };
                let json = serde_json::to_string(&to_spec(&tab)).unwrap();
                assert_eq!(of_spec(&serde_json::from_str(&json).unwrap()), tab, "{json}");
            }
        }
    }
}
