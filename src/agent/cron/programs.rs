//! Which file is the program of a cron job, and which variables the program may be given.

use std::path::{Component, Path, PathBuf};

/// The directory of interpreters below the directory of programs. A policy names none of its files: whoever could choose the arguments
/// of a shell could run anything.
pub(super) const INTERPRETERS: &str = "lib";

/// Beginnings of the names of variables that let a program's loader or interpreter run other code.
const GUIDING: [&str; 8] = ["LD_", "GLIBC_", "BASH_", "PYTHON", "PERL", "RUBY", "NODE_", "LUA_"];
/// Names of such variables. PATH is the agent's to set.
const GUIDES: [&str; 14] = [
    "PATH",
    "ENV",
    "IFS",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "GCONV_PATH",
    "LOCPATH",
    "AWKPATH",
    "AWKLIBPATH",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
];

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
    if found.starts_with(root.join(INTERPRETERS)) {
        return Err(format!(
            "{executable} is in {INTERPRETERS}, which has interpreters for programs: a policy names programs only"
        ));
    }
    if !found.is_file() {
        return Err(format!("{executable} is no file"));
    }
    Ok(found)
}

/// Checks the variables that a policy gives to a program.
///
/// # Errors
/// If a variable would let the program's loader or interpreter run other code than the site's.
pub(super) fn check_variables<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    let guides = |name: &&String| {
        GUIDES.contains(&name.as_str()) || GUIDING.iter().any(|beginning| name.starts_with(beginning))
    };
    match names.into_iter().find(guides) {
        Some(name) => Err(format!(
            "ENV has {name}, which may let the program run other code than the site's: the program itself may set the variable"
        )),
        None => Ok(()),
    }
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
        for path in ["bin/lib", "lib/more", "library"] {
            fs::create_dir_all(directory.join(path)).unwrap();
        }
        let files = [
            "cron/a",
            "cron/bin/b",
            "cron/bin/lib/c",
            "cron/library/d",
            "cron/lib/sh",
            "cron/lib/more/sh",
            "secret",
        ];
        for file in files {
            fs::write(root.join(file), "").unwrap();
        }
        symlink(directory.join("a"), directory.join("inside")).unwrap();
        symlink(directory.join("lib/sh"), directory.join("shell")).unwrap();
        symlink(root.join("secret"), directory.join("outside")).unwrap();
        symlink(&root, directory.join("up")).unwrap();
        let absolute = |file: &str| root.join(file).to_str().unwrap().to_owned();
        for (executable, expected) in [
            ("a".to_owned(), Some("cron/a")),
            ("bin/b".to_owned(), Some("cron/bin/b")),
            ("./bin//b".to_owned(), Some("cron/bin/b")),
            (absolute("cron/a"), Some("cron/a")),
            ("bin/lib/c".to_owned(), Some("cron/bin/lib/c")),
            ("library/d".to_owned(), Some("cron/library/d")),
            ("lib/sh".to_owned(), None),
            ("./lib/more/sh".to_owned(), None),
            (absolute("cron/lib/sh"), None),
            ("shell".to_owned(), None),
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

    #[test]
    fn no_variable_tells_a_loader_or_an_interpreter_what_to_run() {
        let check = |name: &str| check_variables([&name.to_owned()]);
        for name in
            ["LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "PATH", "PYTHONPATH", "PERL5OPT", "IFS"]
        {
            assert!(check(name).unwrap_err().contains(name), "{name}");
        }
        for name in ["A", "HOME", "ENVIRONMENT", "MY_PATH", "ld_preload", "LDAP_URL"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }
}
