//! The parts of the spec in which the procs of an HTCJob differ, and what follows from these for the pod template.

use serde_json::{Map, Value, json};

use super::files::{self, Cargo, FETCH_IMAGE, Hold, Keys, SCRATCH};
use super::{Loaded, Settings, Wrong, vary};
use crate::job::Program;
use crate::streams::{Streams, wrapper};

/// A field of the container that [`complete`] takes out again.
pub(super) const SHAPE: &str = "\u{0}shape";

/// The variable that names the scratch directory, as HTCondor has it.
const SCRATCH_VARIABLE: &str = "_CONDOR_SCRATCH_DIR";

/// Adds the count, the items, the texts that differ between procs, and the files, for which there is a ConfigMap.
pub(super) fn complete(
    mut shared: Value,
    procs: &[Loaded<'_>],
    settings: &Settings,
    hold: &mut Hold<'_>,
) -> Result<(Value, Option<Value>), Wrong> {
    let container = shared.pointer_mut("/template/spec/containers/0").and_then(Value::as_object_mut);
    let shape = container.and_then(|container| container.remove(SHAPE)).unwrap_or_default();
    let keeps_entry_point = shape.get("entry").and_then(Value::as_bool).unwrap_or_default();
    let directory = shape.get("directory").and_then(Value::as_str).unwrap_or(SCRATCH).to_owned();
    let cargos: Vec<&Cargo> = procs.iter().map(|loaded| &loaded.cargo).collect();
    let keys = Keys::of(cargos.iter().copied());
    let programs: Vec<Program> = procs.iter().map(|loaded| in_container(loaded, &directory)).collect();
    let mut others = files::texts(&cargos, &keys, &directory);
    let of_files = others.len();
    others.extend(of_streams(procs, &directory));
    let texts = vary::texts(&programs.iter().collect::<Vec<_>>(), &others);
    if let Some(spec) = shared.as_object_mut() {
        spec.insert("count".to_owned(), procs.len().into());
        if let Some(items) = texts.items {
            spec.insert("items".to_owned(), items);
        }
    }
    if let (Some(cargo), Some(template)) =
        (cargos.first().filter(|cargo| !cargo.is_empty()), shared.get_mut("template"))
    {
        let image = settings.fetch_image.as_deref().unwrap_or(FETCH_IMAGE);
        files::unload(template, cargo, &directory, texts.others.get(..of_files).unwrap_or_default(), image);
    }
    if let Some(container) = shared.pointer_mut("/template/spec/containers/0").and_then(Value::as_object_mut)
    {
        let streams = texts.others.get(of_files..).unwrap_or_default();
        put_program(container, texts.command, texts.arguments, streams, keeps_entry_point);
        let mut environment = texts.environment;
        if cargos.first().is_some_and(|cargo| !cargo.is_empty())
            && environment.iter().all(|(name, _)| name != SCRATCH_VARIABLE)
        {
            environment.insert(0, (SCRATCH_VARIABLE.to_owned(), directory));
        }
        put_environment(container, environment);
    }
    Ok((shared, keys.config_map(hold)?))
}

/// The names of the files that the streams of the procs are, in columns; none if no stream is a file.
fn of_streams(procs: &[Loaded<'_>], directory: &str) -> Vec<(String, Vec<String>)> {
    let streams = |loaded: &Loaded<'_>| {
        let streams = loaded.streams.clone();
        Streams { input: loaded.cargo.input(directory).unwrap_or(streams.input), ..streams }
    };
    let streams: Vec<Streams> = procs.iter().map(streams).collect();
    if streams.first().is_none_or(|streams| *streams == Streams::default()) {
        return Vec::new();
    }
    let column = |name: &str, of: fn(&Streams) -> &String| {
        (name.to_owned(), streams.iter().map(|streams| of(streams).clone()).collect())
    };
    vec![
        column("Input", |streams| &streams.input),
        column("Output", |streams| &streams.output),
        column("Error", |streams| &streams.error),
    ]
}

/// Puts the command and the arguments into a container. `streams` are the files of the three streams; empty if no stream is a file.
fn put_program(
    container: &mut Map<String, Value>,
    program: Option<String>,
    mut arguments: Vec<String>,
    streams: &[String],
    keeps_entry_point: bool,
) {
    let mut command = match streams {
        [input, output, error] => {
            wrapper(Streams { input: input.clone(), output: output.clone(), error: error.clone() })
        }
        _ => Vec::new(),
    };
    match program {
        // A shell that opens files stands in the place of the entry point.
        Some(program) if keeps_entry_point && command.is_empty() => arguments.insert(0, program),
        Some(program) => {
            command.push(program);
            container.insert("command".to_owned(), command.into());
        }
        None => {}
    }
    if !arguments.is_empty() {
        container.insert("args".to_owned(), arguments.into());
    }
}

/// Adds variables to the environment of a container.
fn put_environment(container: &mut Map<String, Value>, environment: Vec<(String, String)>) {
    if environment.is_empty() {
        return;
    }
    let added = environment.into_iter().map(|(name, value)| json!({"name": name, "value": value}));
    let list = container.entry("env").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.extend(added);
    }
}

/// A proc's program, as the container has it.
fn in_container(loaded: &Loaded<'_>, directory: &str) -> Program {
    let mut program = loaded.proc.program.clone();
    if let Some(path) =
        program.executable.as_ref().and_then(|executable| loaded.cargo.program(executable, directory))
    {
        program.executable = Some(path);
    }
    program
}
