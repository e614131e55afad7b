//! Standard output and standard error in files of a volume: how a container's command is wrapped, and read again.

use serde_json::Value;

/// The beginning of a wrapped command: a shell with [`SCRIPT`].
const SHELL: [&str; 2] = ["/bin/sh", "-c"];

/// Opens the files, and becomes the program, which gets all signals. An empty path stands for the pod's log.
const SCRIPT: &str = r#"if [ "$1" = "$2" ]; then exec >"$1" 2>&1; else [ -z "$1" ] || exec >"$1"; [ -z "$2" ] || exec 2>"$2"; fi; shift 2; exec "$@""#;

/// How many words a wrapped command has before the program.
const WORDS: usize = 6;

/// The files in the container to which a program's streams go. An empty path stands for the pod's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub error: String,
}

/// The words before a program that send its streams to files.
pub(crate) fn wrapper(output: String, error: String) -> Vec<String> {
    let fixed = SHELL.into_iter().chain([SCRIPT, "sh"]).map(str::to_owned);
    fixed.chain([output, error]).collect()
}

/// The files of a container's command, and the command itself. `None`: the streams go to the pod's log.
pub fn unwrapped(command: &[String]) -> Option<(Streams, &[String])> {
    let (before, program) = command.split_at_checked(WORDS)?;
    let [shell, option, script, _, output, error] = before else { return None };
    let is_ours = [shell, option].into_iter().eq(SHELL) && script == SCRIPT;
    is_ours.then(|| (Streams { output: output.clone(), error: error.clone() }, program))
}

/// The volume in which a path of the first container is.
pub struct Mounted<'t> {
    /// The entry of the container's `volumeMounts`.
    pub mount: &'t Value,
    /// The entry of the pod's `volumes`.
    pub volume: &'t Value,
}

/// The volume in which a path of a template's first container is; a mount within another one hides what is there. `None`: the path
/// is in no volume, or is itself a mount.
pub fn mounted<'t>(template: &'t Value, path: &str) -> Option<Mounted<'t>> {
    let list = |at: &str| template.pointer(at).and_then(Value::as_array).into_iter().flatten();
    let text = |object: &'t Value, field: &str| object.get(field).and_then(Value::as_str);
    let depth = |mount: &'t Value| {
        let at = text(mount, "mountPath")?.trim_end_matches('/');
        path.strip_prefix(at).filter(|rest| rest.len() > 1 && rest.starts_with('/')).map(|_| at.len())
    };
    let mounts = list("/spec/containers/0/volumeMounts").filter_map(|mount| Some((depth(mount)?, mount)));
    let (_, mount) = mounts.max_by_key(|(depth, _)| *depth)?;
    let name = text(mount, "name")?;
    let volume = list("/spec/volumes").find(|volume| text(volume, "name") == Some(name))?;
    Some(Mounted { mount, volume })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_command_is_read_again() {
        let mut command = wrapper("/data/out".to_owned(), String::new());
        command.extend(["/bin/echo", "a"].map(str::to_owned));
        let (streams, program) = unwrapped(&command).unwrap();
        assert_eq!(streams, Streams { output: "/data/out".to_owned(), error: String::new() });
        assert_eq!(program, ["/bin/echo", "a"]);
        for other in [&["/bin/sh", "-c", "a", "sh", "/o", "/e", "x"][..], &["/bin/sh"], &[]] {
            assert_eq!(unwrapped(&other.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()), None);
        }
    }
}
