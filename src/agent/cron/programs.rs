//! Which file is the program of a cron job.

use std::path::{Component, Path, PathBuf};

/// Returns the path of a program below the directory of programs. A path in a policy is absolute, or relative to the directory.
///
/// Whoever may write NodePolicies chooses what runs with the agent's rights, but only among the programs that the site has put
/// there: a path that leads out of the directory, also by a symbolic link, is refused.
///
/// # Errors
/// Why there is no such program.
pub(super) fn find(directory: &Path, executable: &str) -> Result<PathBuf, String> {
    let path = Path::new(executable);
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(format!("{executable} has .., which may lead out of {}", directory.display()));
    }
    let real = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let (root, found) = (real(directory)?, real(&directory.join(path))?);
    if !found.starts_with(&root) {
        return Err(format!("{executable} is not below {}, the directory of programs", directory.display()));
    }
    if !found.is_file() {
        return Err(format!("{executable} is no file"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_programs_below_the_directory_are_found() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let directory = root.join("cron");
        fs::create_dir_all(directory.join("bin")).unwrap();
        for file in ["cron/a", "cron/bin/b", "secret"] {
            fs::write(root.join(file), "").unwrap();
        }
        symlink(directory.join("a"), directory.join("inside")).unwrap();
        symlink(root.join("secret"), directory.join("outside")).unwrap();
        symlink(&root, directory.join("up")).unwrap();
        let absolute = |file: &str| root.join(file).to_str().unwrap().to_owned();
        for (executable, expected) in [
            ("a".to_owned(), Some("cron/a")),
            ("bin/b".to_owned(), Some("cron/bin/b")),
            ("./bin//b".to_owned(), Some("cron/bin/b")),
            (absolute("cron/a"), Some("cron/a")),
            ("inside".to_owned(), Some("cron/a")),
            ("outside".to_owned(), None),
            ("up/secret".to_owned(), None),
            ("bin/../../secret".to_owned(), None),
            ("bin/../a".to_owned(), None),
            (absolute("secret"), None),
            ("/bin/sh".to_owned(), None),
            ("bin".to_owned(), None),
            (String::new(), None),
            ("no such".to_owned(), None),
        ] {
            let found = find(&directory, &executable);
            assert_eq!(found.clone().ok(), expected.map(|file| root.join(file)), "{executable}: {found:?}");
        }
        assert!(find(&root.join("missing"), "a").is_err());
    }
}
