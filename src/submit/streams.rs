//! Streams that are files: how a container's command is wrapped, and read again.

use serde_json::Value;

/// The beginning of a wrapped command: a shell with [`SCRIPT`].
const SHELL: [&str; 2] = ["/bin/sh", "-c"];

/// Opens the files for input, output and error, and becomes the program, which gets all signals. An empty path leaves a stream as
/// the pod has it.
const SCRIPT: &str = r#"[ -z "$1" ] || exec <"$1"; [ -z "$2" ] || exec >"$2"; if [ -z "$3" ]; then :; elif [ "$2" = "$3" ]; then exec 2>&1; else exec 2>"$3"; fi; shift 3; exec "$@""#;

/// How many words a wrapped command has before the program.
const WORDS: usize = 7;

/// The files in the container that a program's streams are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Standard input; empty if there is none.
    pub input: String,
    /// Standard output; empty for the pod's log.
    pub output: String,
    /// Standard error; empty for the pod's log.
    pub error: String,
}

/// The words before a program that connect its streams with files.
pub(crate) fn wrapper(Streams { input, output, error }: Streams) -> Vec<String> {
    let fixed = SHELL.into_iter().chain([SCRIPT, "sh"]).map(str::to_owned);
    fixed.chain([input, output, error]).collect()
}

/// The files of a container's command, and the command itself. `None`: no stream is a file.
pub fn unwrapped(command: &[String]) -> Option<(Streams, &[String])> {
    let (before, program) = command.split_at_checked(WORDS)?;
    let [shell, option, script, _, input, output, error] = before else { return None };
    let is_ours = [shell, option].into_iter().eq(SHELL) && script == SCRIPT;
    let [input, output, error] = [input, output, error].map(Clone::clone);
    is_ours.then_some((Streams { input, output, error }, program))
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
        let files = Streams { input: "/in".to_owned(), output: "/data/out".to_owned(), error: String::new() };
        let mut command = wrapper(files.clone());
        command.extend(["/bin/echo", "a"].map(str::to_owned));
        let (streams, program) = unwrapped(&command).unwrap();
        assert_eq!((streams, program), (files, &["/bin/echo".to_owned(), "a".to_owned()][..]));
        for other in [&["/bin/sh", "-c", "a", "sh", "/i", "/o", "/e", "x"][..], &["/bin/sh"], &[]] {
            assert_eq!(unwrapped(&other.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()), None);
        }
    }
}
