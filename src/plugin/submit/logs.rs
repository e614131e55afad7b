//! The job event logs of a submission: whether they can be written, and their first events.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ::submit::manifest::{self, JobLog};
use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::userlog::{self, Error};

/// Checks that logs can be written: a submission whose log cannot be written is refused. The number of the job is not
/// known yet, so that of several logs in one directory that are named after the number only one is tried.
pub(super) fn check<'l>(logs: impl Iterator<Item = &'l JobLog>) -> Result<(), Error> {
    let number = manifest::CLUSTER.to_string();
    let (numbered, plain): (BTreeSet<&str>, BTreeSet<&str>) =
        logs.map(|log| log.path.as_str()).partition(|path| path.contains(&number));
    let append = |path: &Path| OpenOptions::new().append(true).create(true).open(path).map(drop);
    for path in plain {
        append(Path::new(path)).map_err(wrong(Path::new(path)))?;
    }
    let by_directory: BTreeMap<Option<&Path>, &Path> =
        numbered.into_iter().map(Path::new).map(|path| (path.parent(), path)).collect();
    for (directory, path) in by_directory {
        // A directory that is named after the job's number is not there yet.
        if directory.is_none_or(|directory| !directory.to_string_lossy().contains(&number)) {
            try_out(path).map_err(wrong(path))?;
        }
    }
    Ok(())
}

/// Makes a file that is not there, and removes it again.
fn try_out(path: &Path) -> io::Result<()> {
    match OpenOptions::new().append(true).create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The error about a log that cannot be written, which has `$(Cluster)` in place of the number that is not known yet.
fn wrong(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_string_lossy().replace(&manifest::CLUSTER.to_string(), "$(Cluster)");
    move |error| Error::File { path: path.clone().into(), error }
}

/// Writes that a job was submitted into the logs of its procs, and returns the logs. A job that got no number in time
/// has none. `job` is its namespace, its name, and when the API server stored the job. The job is there: a log that
/// cannot be written is told, and fails nothing.
pub(super) fn begin(
    cluster: &Cluster,
    job: (&str, &str, Option<Timestamp>),
    number: Option<i64>,
    logs: &[JobLog],
    err: &mut dyn Write,
) -> io::Result<BTreeSet<PathBuf>> {
    if logs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let Some(number) = number else {
        writeln!(err, "WARNING: {} has no number yet, and no event is written to its job event log", job.1)?;
        return Ok(BTreeSet::new());
    };
    let named = |log: &JobLog| userlog::Submitted {
        proc: log.proc,
        path: log.path.replace(&manifest::CLUSTER.to_string(), &number.to_string()).into(),
        notes: log.notes.clone(),
    };
    let procs: Vec<userlog::Submitted> = logs.iter().map(named).collect();
    let mut paths: BTreeSet<PathBuf> = procs.iter().map(|proc| proc.path.clone()).collect();
    for (path, error) in userlog::begin(cluster.server(), job, number, &procs) {
        writeln!(
            err,
            "\nWARNING: {error}; job {number} was submitted, and neither condor_wait nor kubectl slotwright userlog \
             can bring this log up to date"
        )?;
        paths.remove(&path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_that_cannot_be_written_are_refused_before_the_job_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = directory.path().join(name.replace('N', &manifest::CLUSTER.to_string()));
            JobLog { proc: 0, path: path.to_str().unwrap().to_owned(), notes: Vec::new() }
        };
        fs::write(directory.path().join("file"), "").unwrap();
        for (names, missing) in [
            (&["sim.log", "sim.log"] as &[&str], None),
            (&["N.log", "N.1.log"], None),
            // Whether there will be a directory of the number is not known yet.
            (&["N/sim.log"], None),
            (&["none/sim.log"], Some("none/sim.log")),
            (&["sim.log", "none/N.log"], Some("none/$(Cluster).log")),
            (&["file/N.log"], Some("file/$(Cluster).log")),
        ] {
            let logs: Vec<JobLog> = names.iter().map(|name| at(name)).collect();
            let told = check(logs.iter()).err().map(|error| error.to_string());
            assert_eq!(told.is_some(), missing.is_some(), "{names:?}: {told:?}");
            let has_it = |told: String| missing.is_some_and(|path| told.contains(path));
            assert!(told.is_none_or(has_it), "{names:?}");
        }
        let mut left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["file", "sim.log"], "what was only tried out is gone");
    }
}
