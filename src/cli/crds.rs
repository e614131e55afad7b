//! `slotwright crds`: writes the custom resource definitions, or checks that the written ones are current.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Print the custom resource definitions, or write them to a directory.
#[derive(Args, Debug)]
pub struct CrdsArgs {
    /// Write a file for each kind into this directory, and a Kustomization that lists these files, instead of printing
    /// the definitions. The directory is made if the one around it is there.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Write nothing; exit with 1 if a file in --dir differs from what would be written, or if there is another manifest.
    #[arg(long, requires = "dir")]
    check: bool,
}

/// Runs the command.
///
/// # Errors
/// When a definition cannot be written as YAML, or the directory cannot be read or written.
pub fn run(args: &CrdsArgs, out: &mut dyn Write) -> io::Result<ExitCode> {
    let Some(dir) = &args.dir else {
        for crd in api::definitions() {
            write!(out, "---\n{}", yaml(&crd)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let files = files()?;
    if args.check {
        return Ok(if check(dir, &files, out)? { ExitCode::SUCCESS } else { ExitCode::from(1) });
    }
    make(dir)?;
    for (name, text) in files {
        let file = dir.join(name);
        fs::write(&file, text).map_err(|error| named(&file, &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name that kustomize also reads, and that neither Helm nor `kubectl apply -f DIRECTORY` takes for a manifest.
const KUSTOMIZATION: &str = "Kustomization";

/// The texts of all files by name: the definitions, and the Kustomization.
fn files() -> io::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for crd in api::definitions() {
        files.insert(format!("{}.yaml", crd.spec.names.plural), yaml(&crd)?);
    }
    let mut kustomization =
        "# Written by `slotwright crds`. A kustomization may take this directory as a resource.\n\
         apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
            .to_owned();
    for name in files.keys() {
        writeln!(kustomization, "- {name}").map_err(io::Error::other)?;
    }
    files.insert(KUSTOMIZATION.to_owned(), kustomization);
    Ok(files)
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

/// Whether the directory has these files and no other manifest. Each difference is written to `out`.
fn check(dir: &Path, files: &BTreeMap<String, String>, out: &mut dyn Write) -> io::Result<bool> {
    let mut current = true;
    for (name, text) in files {
        let path = dir.join(name);
        if !fs::read_to_string(&path).is_ok_and(|found| found == *text) {
            current = false;
            writeln!(out, "{}: not current; run `make crds` and commit the result", path.display())?;
        }
    }
    for entry in fs::read_dir(dir).map_err(|error| named(dir, &error))? {
        let path = entry?.path();
        if is_manifest(&path)
            && !path.file_name().is_some_and(|name| files.contains_key(&*name.to_string_lossy()))
        {
            current = false;
            writeln!(out, "{}: defines no kind of Slotwright's; delete this file", path.display())?;
        }
    }
    Ok(current)
}

/// Whether kubectl, kustomize or Helm would read the file.
fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known))
}
