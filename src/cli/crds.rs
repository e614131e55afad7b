//! `slotwright crds`: writes the custom resource definitions, or checks that the written ones are current.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Print the custom resource definitions, or write them to a directory.
#[derive(Args, Debug)]
pub struct CrdsArgs {
    /// Write a file for each kind into this directory, instead of printing the definitions. The directory is made if
    /// the one around it is there.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Write nothing; exit with 1 if a file in --dir differs from what would be written.
    #[arg(long, requires = "dir")]
    check: bool,
}

/// Runs the command.
///
/// # Errors
/// When a definition cannot be written as YAML, or the directory cannot be read or written.
pub fn run(args: &CrdsArgs, out: &mut dyn Write) -> io::Result<ExitCode> {
    let mut current = true;
    for crd in api::definitions() {
        let text = yaml(&crd)?;
        match &args.dir {
            None => write!(out, "---\n{text}")?,
            Some(dir) if args.check => current &= check(&file(dir, &crd), &text, out)?,
            Some(dir) => {
                make(dir)?;
                let file = file(dir, &crd);
                fs::write(&file, text).map_err(|error| named(&file, &error))?;
            }
        }
    }
    Ok(if current { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The YAML of one definition, as in the repository's files.
///
/// # Errors
/// When the definition cannot be written as YAML.
pub fn yaml(crd: &CustomResourceDefinition) -> io::Result<String> {
    // The definition goes through JSON, whose maps are sorted: a field that is added to a type changes only its own
    // lines.
    let value = serde_json::to_value(crd).map_err(io::Error::other)?;
    serde_saphyr::to_string(&value).map_err(io::Error::other)
}

/// Makes the directory if it is not there. The directory around it must be there: a path that is misspelled is not made.
fn make(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(named(dir, &error)),
        _ => Ok(()),
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn file(dir: &Path, crd: &CustomResourceDefinition) -> PathBuf {
    dir.join(format!("{}.yaml", crd.spec.names.plural))
}

fn check(path: &Path, text: &str, out: &mut dyn Write) -> io::Result<bool> {
    let same = fs::read_to_string(path).is_ok_and(|found| found == text);
    if !same {
        writeln!(out, "{}: not current; run `make crds` and commit the result", path.display())?;
    }
    Ok(same)
}
