//! The attributes with which each ad starts, and those that are set last.

use classad::{Expr, Name, Value};
use condor_config::{FileError, Variable};

use super::{Job, Outcome};
use crate::world::World;

/// Attributes that are 0 in a new job, and that its runs change.
const ZEROS: &[&str] = &[
    "CommittedSlotTime",
    "CommittedSuspensionTime",
    "CommittedTime",
    "CumulativeSlotTime",
    "CumulativeSuspensionTime",
    "ExitStatus",
    "LastSuspensionTime",
    "NumCkpts",
    "NumJobCompletions",
    "NumJobStarts",
    "NumRestarts",
    "NumSystemHolds",
    "TotalSuspensions",
];

/// Attributes that are 0.0 in a new job, and that its runs change.
const REAL_ZEROS: &[&str] = &[
    "CumulativeRemoteSysCpu",
    "CumulativeRemoteUserCpu",
    "RemoteSysCpu",
    "RemoteUserCpu",
    "RemoteWallClockTime",
];

/// Further attributes that the runs of a proc leave in its ad: next to nothing at submission, and more later.
const OF_RUNS: &[&str] = &[
    "DiskUsage",
    "EnteredCurrentStatus",
    "ExitBySignal",
    "ImageSize",
    "JobRunCount",
    "NumHolds",
    "NumJobMatches",
    "NumShadowStarts",
    "ResidentSetSize",
];

/// Whether the runs of a proc change an attribute of its ad.
pub(crate) fn is_of_runs(name: &Name) -> bool {
    [ZEROS, REAL_ZEROS, OF_RUNS].into_iter().flatten().any(|known| name.is(known))
}

impl Job<'_, '_> {
    pub(super) fn start(&mut self) {
        self.set("MyType", "Job");
        self.set("TargetType", "Machine");
        self.set("QDate", self.world.host.now);
        self.insert("Owner", Expr::literal(Value::Undefined));
        for name in ZEROS {
            self.set(name, 0);
        }
        for name in REAL_ZEROS {
            self.set(name, 0.0);
        }
        self.set("ExitBySignal", false);
        self.set("JobSubmitMethod", 0);
        let (version, platform) = self.world.version.clone();
        if !version.is_empty() {
            self.set("CondorVersion", version.as_str());
            self.set("SubmitVersion", version.as_str());
            self.set("CondorPlatform", platform.as_str());
        }
        self.set("ClusterId", self.world.cluster);
        if let Some(file) = self.scope.variable("SUBMIT_FILE").filter(|file| !file.is_empty()) {
            self.set("JobSubmitFile", file.as_str().as_ref());
        }
    }

    /// The directory of the job at the place of submission.
    pub(super) fn set_directory(&mut self) -> Outcome {
        let mut given = self.given("initialdir", Some("Iwd"))?;
        if given.is_none() {
            given = self.given("initial_dir", Some("job_iwd"))?;
        }
        let submission = World::full_path("", &self.world.directory);
        self.directory = match &given {
            Some(given) if given.as_str().starts_with('/') => World::full_path("", given.as_str()),
            Some(given) => World::full_path(&submission, given.as_str()),
            None => submission,
        };
        let directory = self.directory.clone();
        if let Some(given) = &given
            && self.memory.directory != directory
        {
            // condor_submit refuses the job. Here the directory may be on another access point, and nothing may be read from it: files
            // that travel and are not there are refused by themselves.
            let listing = self.world.listing;
            if listing.is_some_and(|listing| listing(&directory) == Err(FileError::Missing)) {
                let key = format!("no directory {directory}");
                self.warn(
                    given,
                    &key,
                    format!("there is no directory {directory}; condor_submit refuses such a job"),
                );
            }
            self.memory.directory.clone_from(&directory);
        }
        self.scope.set_directory(directory.as_str());
        self.set("Iwd", directory);
        Ok(())
    }

    pub(super) fn set_status(&mut self) -> Outcome {
        if self.boolean("hold", None)? == Some(true) {
            self.set("JobStatus", 5);
            self.set("HoldReasonCode", 15);
            self.set("HoldReason", "submitted on hold at user's request");
        } else {
            self.set("JobStatus", 1);
        }
        self.set("EnteredCurrentStatus", self.world.host.now);
        Ok(())
    }

    /// Sets what no command gave.
    pub(super) fn complete(&mut self) -> Outcome {
        if !self.has("MaxHosts") {
            self.set("MinHosts", 1);
            self.set("MaxHosts", 1);
        }
        if !self.has("CurrentHosts") {
            self.set("CurrentHosts", 0);
        }
        if self.has("SuccessCheckpointExitCode") {
            self.set("WantFTOnCheckpoint", true);
        }
        if !self.has("MaxJobRetirementTime") && self.is_true("NiceUser") {
            self.set("MaxJobRetirementTime", 0);
        }
        if !self.has("JobLeaseDuration") {
            self.set("JobLeaseDuration", 2400);
        }
        if !self.has("JobPrio") {
            self.set("JobPrio", 0);
        }
        if self.has("JobStarterLog") && !self.has("JobStarterDebug") {
            self.set("JobStarterDebug", true);
        }
        let lease = self.get("JobLeaseDuration").and_then(Expr::as_literal).and_then(Value::as_number);
        if lease.is_some_and(|lease| lease > 0.0 && lease < 20.0) {
            if let Some(given) = self.given("job_lease_duration", Some("JobLeaseDuration"))? {
                self.warn(&given, "lease", "a lease of less than 20 seconds counts as 20 seconds");
            }
            self.set("JobLeaseDuration", 20);
        }
        if let Some(given) = self.given("notify_user", Some("NotifyUser"))?
            && (given.is("never") || given.is("false"))
        {
            self.warn(
                &given,
                "notify_user",
                "mail would go to a user of this name; write notification = never",
            );
        }
        if self.has("OutputDestination") && self.has("OutputDirectory") {
            return Err(
                self.missing("output_destination and output_directory exclude each other: leave one out")
            );
        }
        Ok(())
    }

    /// Sets the attributes that `+Name` and `MY.Name` give. They stand above what the commands set.
    pub(super) fn set_forced(&mut self) -> Outcome {
        let forced: Vec<String> = self
            .scope
            .variables()
            .map(Variable::name)
            .filter(|name| name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("MY.")))
            .map(str::to_owned)
            .collect();
        for name in forced {
            let attribute = name.get(3..).unwrap_or_default();
            match self.given(&name, None)? {
                Some(given) => self.assign(attribute, &given)?,
                None => self.insert(attribute, Expr::literal(Value::Undefined)),
            }
        }
        if self.cluster.is_none() || self.proc >= 0 {
            self.own.set("ProcId", self.proc);
        }
        Ok(())
    }
}
