//! The directory of a job at the place of submission, which a pod does not have.

use super::files::{self, SCRATCH};
use super::streams::Input;
use super::{Wrong, text, written};
use crate::file::{Cluster, Proc};
use crate::world::scheme;

/// A warning about an `initialdir` from which nothing is read. HTCondor's jobs on a shared file system begin there, and the files that
/// they write go there.
pub(super) fn unread(
    cluster: &Cluster,
    proc: &Proc,
    input: Option<&Input>,
    has_scratch: bool,
) -> Option<Wrong> {
    written(cluster, "initialdir")?;
    let directory = text(cluster, proc, "Iwd")?;
    if files::on_shared(cluster, proc).is_some() || is_read(cluster, proc, input, &directory) {
        return None;
    }
    let differs = cluster.procs.iter().any(|proc| proc.ad.contains("Iwd"));
    let differs = if differs { ", so that the procs do not differ by it" } else { "" };
    let begins = if text(cluster, proc, "RemoteIwd").is_some() {
        "the program begins in remote_initialdir".to_owned()
    } else {
        let scratch = || text(cluster, proc, "ContainerTargetDir").unwrap_or_else(|| SCRATCH.to_owned());
        let place = if has_scratch {
            format!("its scratch directory {}", scratch())
        } else {
            "the image's own working directory".to_owned()
        };
        format!(
            "the program begins in {place}; with remote_initialdir = {directory} it begins there, if a volume of the template has the \
             directory"
        )
    };
    let message = format!("has no effect{differs}, because no file is read from {directory}: {begins}");
    Some(("initialdir".to_owned(), message))
}

/// Whether a file is read from the directory, or written into it where the job is submitted, or a text of the program names it.
fn is_read(cluster: &Cluster, proc: &Proc, input: Option<&Input>, directory: &str) -> bool {
    let is_relative = |name: &str| !name.is_empty() && !name.starts_with('/') && scheme(name).is_none();
    let inputs = text(cluster, proc, "TransferInput").filter(|_| !files::stays(cluster, proc));
    let is_inside = |text: &str| text.contains(directory.trim_end_matches('/'));
    let program = &proc.program;
    let values = program.environment.iter().filter_map(|(_, value)| value.as_ref());
    inputs.is_some_and(|inputs| inputs.split(',').map(str::trim).any(is_relative))
        || input.is_some_and(|input| input.travels && is_relative(&input.file))
        || text(cluster, proc, "UserLog").is_some_and(|log| is_inside(&log))
        || program.arguments.iter().chain(values).any(|text| is_inside(text))
}
