//! The program, which travels if it is a file where the job is submitted.

use super::{Cargo, FoundFile, Hold, INPUTS, MOST, last, plain, stays};
use crate::file::{Cluster, Proc};
use crate::manifest::{Wrong, text};
use crate::world::World;

/// Whether the file itself says whether the executable travels.
fn asks(cluster: &Cluster) -> bool {
    let names = ["transfer_executable", "TransferExecutable"];
    let mut written = cluster.written.iter();
    written.any(|written| names.iter().any(|name| written.name.eq_ignore_ascii_case(name)))
}

/// Takes the program of a proc if it travels. Returns whether it does.
pub(super) fn take(
    cargo: &mut Cargo,
    cluster: &Cluster,
    proc: &Proc,
    hold: &mut Hold<'_>,
) -> Result<bool, Wrong> {
    let Some(executable) = &proc.program.executable else { return Ok(false) };
    let full = text(cluster, proc, "Cmd").unwrap_or_default();
    let path = plain(&full);
    let wrong = |why: String| ("executable".to_owned(), format!("'{executable}' {why}"));
    let may_travel = proc.program.is_transferred && (!executable.starts_with('/') || asks(cluster));
    match if may_travel { hold.find(&path) } else { &FoundFile::Missing } {
        FoundFile::Missing => misnamed(executable, &full, hold).map_or(Ok(false), |why| Err(wrong(why))),
        FoundFile::File { bytes, .. } => {
            if let Some(why) = broken(executable, bytes) {
                return Err(wrong(why));
            }
            let added = cargo.add(&path, last(&path), true);
            added.map(|()| true).map_err(|why| ("executable".to_owned(), why))
        }
        FoundFile::Directory(_) => Err(wrong("is a directory".to_owned())),
        FoundFile::Unreadable(why) => Err(wrong(format!("cannot be read: {why}"))),
        FoundFile::TooLarge(bytes) => Err(wrong(format!(
            "has {bytes} bytes, and {MOST} can travel: build it into the image, and write transfer_executable = false"
        ))),
    }
}

/// Why no kernel would start a program with this content.
fn broken(executable: &str, content: &[u8]) -> Option<String> {
    if content.is_empty() {
        return Some("is an empty file: write the program into it".to_owned());
    }
    let line = content.split(|byte| *byte == b'\n').next()?;
    (line.starts_with(b"#!") && line.ends_with(b"\r")).then(|| {
        format!(
            "is a script whose lines end in CR LF, as on Windows, so that Linux finds no interpreter for it: convert it by \
             dos2unix {executable}"
        )
    })
}

/// The advice to the author of a name that is no file because of quotes around the name, or of arguments behind the name.
fn misnamed(executable: &str, full: &str, hold: &mut Hold<'_>) -> Option<String> {
    if let Some(inside) = executable.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return Some(format!(
            "has double quotes, which count as a part of the name: write executable = {inside}"
        ));
    }
    let (first, rest) = executable.split_once(|c: char| c.is_ascii_whitespace())?;
    let there = || full.strip_suffix(executable).map(|directory| plain(&format!("{directory}{first}")));
    let is_program = !first.contains('/') || there().is_some_and(|path| hold.has(&path));
    is_program.then(|| {
        format!(
            "is taken for the name of one file: write executable = {first} and arguments = {}",
            rest.trim()
        )
    })
}

/// The full path of an executable that HTCondor would start on a shared file system: its name is relative, and
/// `should_transfer_files = NO`.
pub(in crate::manifest) fn on_shared(cluster: &Cluster, proc: &Proc) -> Option<String> {
    let program = &proc.program;
    let is_relative = program.executable.as_ref().is_some_and(|executable| !executable.starts_with('/'));
    let is_shared = program.is_transferred && is_relative && stays(cluster, proc);
    text(cluster, proc, "Cmd").filter(|_| is_shared && text(cluster, proc, "RemoteIwd").is_none())
}

/// A warning about an executable that the image has by a name without a slash, although there is a file of this name.
fn looked_up(cluster: &Cluster, proc: &Proc, cargo: &Cargo, hold: &mut Hold<'_>) -> Option<Wrong> {
    let executable = proc.program.executable.as_ref().filter(|name| !name.contains('/'))?;
    if proc.program.is_transferred || cargo.named(executable).is_some() {
        return None;
    }
    let directory = text(cluster, proc, "Iwd").unwrap_or_default();
    let path = World::full_path(&directory, executable);
    matches!(hold.find(&path), FoundFile::File { .. }).then(|| {
        let leave = if stays(cluster, proc) { "" } else { "leave transfer_executable out, or " };
        let message = format!(
            "'{executable}' has no slash, and is looked up in the PATH of the image; the file {path} does not travel: {leave}write \
             the program's path in the image"
        );
        ("executable".to_owned(), message)
    })
}

/// Warnings about files that do not travel: the command, and the message.
pub(in crate::manifest) fn left(
    cluster: &Cluster,
    proc: &Proc,
    cargo: &Cargo,
    hold: &mut Hold<'_>,
) -> Vec<Wrong> {
    let mut left = Vec::from_iter(looked_up(cluster, proc, cargo, hold));
    if let (Some(executable), true, false) =
        (&proc.program.executable, proc.program.is_transferred, cargo.has_program)
    {
        let why = if stays(cluster, proc) {
            "nothing travels with this job".to_owned()
        } else if executable.starts_with('/') && !asks(cluster) {
            "its path is absolute; transfer_executable = true has a local file travel".to_owned()
        } else {
            format!("there is no file {}", text(cluster, proc, "Cmd").unwrap_or_default())
        };
        let shared = on_shared(cluster, proc).map(|full| {
            let directory = text(cluster, proc, "Iwd").unwrap_or_default();
            format!(
                "; if a volume of the template has the directory, as on a shared file system, write executable = {full} and \
                 remote_initialdir = {directory}"
            )
        });
        let message = format!(
            "'{executable}' is taken for a program of the image ({why}); transfer_executable = false says that the image has it{}",
            shared.unwrap_or_default()
        );
        left.push(("executable".to_owned(), message));
    }
    if text(cluster, proc, "RemoteIwd").is_some() && text(cluster, proc, "TransferInput").is_some() {
        let message = "no file travels, because the program begins in remote_initialdir: have the files there, in the image \
                       or in a volume, or leave remote_initialdir out";
        left.push((INPUTS.to_owned(), message.to_owned()));
    }
    left
}
