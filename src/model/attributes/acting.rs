//! The attributes of procs, which expressions that act see, such as `PeriodicRemove`; and those of HTCondor's procs that no proc has here.

use Source::{Job, Proc};

use super::known::is_known;
use super::nearest;

/// Expressions that act, and the texts and codes that go with them.
const ACTING: [&str; 13] = [
    "OnExitHold",
    "OnExitHoldReason",
    "OnExitHoldSubCode",
    "OnExitRemove",
    "PeriodicHold",
    "PeriodicHoldReason",
    "PeriodicHoldSubCode",
    "PeriodicRelease",
    "PeriodicRemove",
    "PeriodicVacate",
    "TimerRemove",
    "AllowedExecuteDuration",
    "AllowedJobDuration",
];

/// Whether an attribute of a job is evaluated in the ad of a proc, without a machine.
pub fn is_acting(name: &str) -> bool {
    ACTING.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Attributes besides expressions that act of which only a number or a truth value counts: those of the pace of a job, and others that are
/// acted on while the job is in the queue.
const COUNTING: [&str; 10] = [
    "DeferralPrepTime",
    "DeferralTime",
    "DeferralWindow",
    "JobLeaseDuration",
    "JobMaterializeLimit",
    "JobMaterializeMaxIdle",
    "JobMaxRetries",
    "LeaveJobInQueue",
    "MaxJobRetirementTime",
    "NextJobStartDelay",
];

/// Whether only a number or a truth value of an attribute of a job counts, and never a text.
pub fn is_of_values(name: &str) -> bool {
    let is_reason =
        name.get(name.len().saturating_sub(6)..).is_some_and(|end| end.eq_ignore_ascii_case("reason"));
    (is_acting(name) && !is_reason) || COUNTING.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Where an attribute of a proc's ad comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The ad that all procs of a job share has the attribute, or the evaluation itself gives the attribute. The job is matched by this ad.
    Job,
    /// Each proc has a value of its own, or none.
    Proc,
}

/// The attributes of a proc's ad that expressions look at most.
const OF_PROCS: [(&str, Source); 41] = [
    ("AccountingGroup", Job),
    ("ClusterId", Job),
    ("CumulativeSuspensionTime", Proc),
    ("CurrentTime", Job),
    ("DiskUsage", Proc),
    ("EnteredCurrentStatus", Proc),
    ("ExitBySignal", Proc),
    ("ExitCode", Proc),
    ("ExitSignal", Proc),
    ("HoldReason", Proc),
    ("HoldReasonCode", Proc),
    ("HoldReasonSubCode", Proc),
    ("ImageSize", Proc),
    ("JobCurrentStartDate", Proc),
    ("JobCurrentStartExecutingDate", Proc),
    ("JobLeaseDuration", Job),
    ("JobMaxRetries", Job),
    ("JobName", Job),
    ("JobNamespace", Job),
    ("JobPrio", Job),
    ("JobRunCount", Proc),
    ("JobStartDate", Proc),
    ("JobStatus", Job),
    ("JobUniverse", Job),
    ("LastVacateTime", Proc),
    ("MemoryUsage", Proc),
    ("NumHolds", Proc),
    ("NumJobCompletions", Proc),
    ("NumJobMatches", Proc),
    ("NumJobStarts", Proc),
    ("NumShadowStarts", Proc),
    ("Owner", Job),
    ("ProcId", Proc),
    ("QDate", Job),
    ("RemoteWallClockTime", Proc),
    ("RequestCpus", Job),
    ("RequestDisk", Job),
    ("RequestGPUs", Job),
    ("RequestMemory", Job),
    ("ResidentSetSize", Proc),
    ("ShadowBday", Proc),
];

fn source(name: &str) -> Option<Source> {
    OF_PROCS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, source)| *source)
}

/// Whether in HTCondor an attribute may differ between the procs of a job. Here all procs of a job are matched by one ad, which has none
/// of these attributes.
pub fn is_of_procs(name: &str) -> bool {
    source(name) == Some(Proc) || not_kept(name).is_some()
}

/// The attribute of a proc's ad, or the literal, that a name is a slip away from. None for each name that an ad is known to have.
pub fn meant_of_proc(name: &str) -> Option<&'static str> {
    if source(name).is_some() || not_kept(name).is_some() {
        return None;
    }
    // RequestMemroy begins as the name of a request does.
    let is_request = name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("request"));
    if is_known(name) && !is_request { None } else { nearest(name, OF_PROCS.iter().map(|(known, _)| *known)) }
}

const WALL: &str = "use RemoteWallClockTime";
const HOLDS: &str = "use NumHolds, or HoldReasonCode of a held proc";
const RUNS: &str = "use NumJobStarts";
const HOST: &str = "no expression of a job sees where its procs ran";
const BYTES: &str = "no files travel while a job runs";

/// Attributes of HTCondor's procs that no proc has here while it is in the queue, each with what to do instead.
const NOT_KEPT: [(&str, &str); 34] = [
    ("BytesRecvd", BYTES),
    ("BytesSent", BYTES),
    ("CommittedSlotTime", WALL),
    ("CommittedSuspensionTime", "use CumulativeSuspensionTime"),
    ("CommittedTime", WALL),
    ("CpusProvisioned", "use RequestCpus"),
    ("CpusUsage", "the slot's ad has it: let a NodePolicy say WANT_HOLD"),
    ("CumulativeRemoteSysCpu", WALL),
    ("CumulativeRemoteUserCpu", WALL),
    ("CumulativeSlotTime", WALL),
    ("DiskProvisioned", "use RequestDisk"),
    ("ExitStatus", "use ExitCode"),
    ("GPUsProvisioned", "use RequestGPUs"),
    ("JobLastStartDate", "use JobCurrentStartDate"),
    ("LastHoldReason", HOLDS),
    ("LastHoldReasonCode", HOLDS),
    ("LastHoldReasonSubCode", HOLDS),
    ("LastJobStatus", "use JobStatus"),
    ("LastMatchTime", "use JobCurrentStartDate"),
    ("LastRemoteHost", HOST),
    ("LastSuspensionTime", "use CumulativeSuspensionTime"),
    ("MemoryProvisioned", "use RequestMemory"),
    ("NumCkpts", RUNS),
    ("NumHoldsByReason", HOLDS),
    ("NumRestarts", RUNS),
    ("NumShadowExceptions", RUNS),
    ("NumSystemHolds", "use NumHolds"),
    ("NumVacates", RUNS),
    ("ProportionalSetSizeKb", "use ResidentSetSize"),
    ("RemoteHost", HOST),
    ("RemoteSlotID", HOST),
    ("RemoteSysCpu", WALL),
    ("RemoteUserCpu", WALL),
    ("TotalSuspensions", "use CumulativeSuspensionTime"),
];

/// Returns what to do instead of looking at an attribute that HTCondor's procs have in the queue and no proc has here. None for every
/// other name.
pub fn not_kept(name: &str) -> Option<&'static str> {
    NOT_KEPT.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use classad::Ad;

    use super::*;
    use crate::kit;
    use crate::pool::{Exit, History, HoldReason, ProcView, Request, Standing, Time, Usage};

    /// The ads of a proc in each of its states, with all that is ever kept.
    fn ads() -> Vec<Ad> {
        let spec = kit::job(Ad::new(), Request::default());
        let time = Time::default();
        let usage = Usage {
            memory_mib: Some(1),
            resident_kib: Some(1),
            disk_kib: Some(1),
            cpus: Some(1.0),
            block_reads: Some(1),
            block_writes: Some(1),
            block_read_kib: Some(1),
            block_write_kib: Some(1),
            metrics: BTreeMap::new(),
        };
        let hold = HoldReason { reason: "why".into(), code: 1, subcode: 0 };
        let mut ads = Vec::new();
        for standing in [Standing::Idle, Standing::Running, Standing::Held, Standing::Suspended] {
            for exit in [Exit::Code(1), Exit::Signal(9)] {
                let history = History {
                    exit: Some(exit),
                    first_start: Some(time),
                    last_vacate: Some(time),
                    ..History::default()
                };
                let view = ProcView {
                    standing,
                    hold: Some(hold.clone()),
                    started: Some(time),
                    usage: Some(usage.clone()),
                    ..ProcView::of_idle(0, history)
                };
                ads.push(view.ad(&spec, time));
            }
        }
        ads
    }

    #[test]
    fn what_is_not_kept_is_in_no_ad_of_a_proc_and_all_of_the_ad_is_known() {
        for ad in ads() {
            for (name, _) in NOT_KEPT {
                assert!(!ad.contains(name), "{name}");
                assert_eq!(source(name), None, "{name}");
            }
            for (name, _) in &ad {
                assert!(source(name.as_str()).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn an_attribute_is_of_procs_if_a_proc_gives_it_and_the_job_does_not() {
        let given: BTreeSet<String> =
            ads().iter().flatten().map(|(name, _)| name.as_str().to_ascii_lowercase()).collect();
        // Each job that is matched has this status, and the evaluation gives the time.
        let shared = ["jobstatus", "currenttime"];
        for (name, source) in OF_PROCS {
            let name = name.to_ascii_lowercase();
            let own = given.contains(&name) && !shared.contains(&&*name);
            assert_eq!(source == Proc, own, "{name}");
            assert_eq!(is_of_procs(&name), own, "{name}");
        }
        for (name, expected) in [("LastRemoteHost", true), ("numrestarts", true), ("Memory", false)] {
            assert_eq!(is_of_procs(name), expected, "{name}");
        }
    }

    #[test]
    fn a_slip_in_an_expression_that_acts_is_known() {
        for (name, expected) in [
            ("JobStaus", Some("JobStatus")),
            ("NumJobStart", Some("NumJobStarts")),
            ("EnterdCurrentStatus", Some("EnteredCurrentStatus")),
            ("RequestMemroy", Some("RequestMemory")),
            ("ExitCod", Some("ExitCode")),
            ("flase", Some("false")),
            ("JobStatus", None),
            ("RequestFpga", None),
            ("Memory", None),
            ("LastRemoteWallClockTime", None),
            ("RemoteUserCpu", None),
            ("MyRetries", None),
        ] {
            assert_eq!(meant_of_proc(name), expected, "{name}");
        }
    }
}
