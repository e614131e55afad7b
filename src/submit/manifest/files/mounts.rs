//! How files get into a pod: the ConfigMap, the volumes, and the init container that fetches URLs.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Cargo, ELSEWHERE, FoundFile, Hold, INPUTS, MOST, length, within};
use crate::manifest::Wrong;

/// The name of the scratch directory's volume.
const SCRATCH_VOLUME: &str = "slotwright-scratch";
/// The names of the ConfigMap's volumes: of files, and of files that can be executed.
const FILE_VOLUMES: [&str; 2] = ["slotwright-files", "slotwright-programs"];
/// The name of the init container that fetches URLs.
const FETCH: &str = "slotwright-fetch";

/// The keys of an HTCJob's files in its ConfigMap, by the paths of the files.
#[derive(Debug, Default)]
pub(in crate::manifest) struct Keys(BTreeMap<String, String>);

impl Keys {
    /// The keys of all files of procs.
    pub(in crate::manifest) fn of<'a>(cargos: impl Iterator<Item = &'a Cargo>) -> Self {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut paths = Vec::new();
        for file in cargos.flat_map(|cargo| &cargo.files) {
            if names.insert(file.path.clone(), clean(&file.name)).is_none() {
                paths.push(&file.path);
            }
        }
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        for name in names.values() {
            *uses.entry(name).or_default() += 1;
        }
        let (mut keys, mut taken, mut numbers) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        for path in paths {
            let Some(name) = names.get(path) else { continue };
            let number = numbers.entry(name.as_str()).or_insert(0_usize);
            // The inputs of procs differ by the numbers of the procs, if each proc has one.
            let is_alone = uses.get(name.as_str()) == Some(&1);
            let mut key = if is_alone { name.clone() } else { format!("{number}-{name}") };
            while !taken.insert(key.clone()) {
                *number += 1;
                key = format!("{number}-{name}");
            }
            *number += 1;
            keys.insert(path.clone(), key);
        }
        Self(keys)
    }

    /// The ConfigMap with the files. `None`: there are none.
    pub(in crate::manifest) fn config_map(&self, hold: &mut Hold<'_>) -> Result<Option<Value>, Wrong> {
        let (mut texts, mut others, mut sizes) = (Map::new(), Map::new(), Vec::new());
        for (path, key) in &self.0 {
            let FoundFile::File { bytes, .. } = hold.find(path) else { continue };
            sizes.push((length(bytes), path));
            match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') => {
                    texts.insert(key.clone(), text.into());
                }
                _ => {
                    others.insert(key.clone(), STANDARD.encode(bytes).into());
                }
            }
        }
        let all: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
        if let Some((bytes, path)) = sizes.iter().max().filter(|_| all > MOST) {
            let message = format!(
                "the files of the job have {all} bytes, and {MOST} can travel: {ELSEWHERE}; the largest is {path} ({bytes} bytes)"
            );
            return Err((INPUTS.to_owned(), message));
        }
        if sizes.is_empty() {
            return Ok(None);
        }
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true});
        for (field, entries) in [("data", texts), ("binaryData", others)] {
            if let Some(object) = object.as_object_mut().filter(|_| !entries.is_empty()) {
                object.insert(field.to_owned(), entries.into());
            }
        }
        Ok(Some(object))
    }
}

/// A file's name as the key of a ConfigMap.
fn clean(name: &str) -> String {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let clean: String = name.chars().map(|c| if is_fit(c) { c } else { '_' }).take(200).collect();
    // Kubernetes takes no key that begins with two dots.
    if clean.starts_with("..") { format!("_{clean}") } else { clean }
}

/// The texts of an HTCJob's files that may differ between its procs: for each file the path in the container and the key, for each
/// URL the path in the container and the URL. Each has the name of a column, and a value for each proc.
pub(in crate::manifest) fn texts(
    cargos: &[&Cargo],
    keys: &Keys,
    directory: &str,
) -> Vec<(String, Vec<String>)> {
    let Some(first) = cargos.first() else { return Vec::new() };
    let mut texts = Vec::new();
    let mut add = |column: String, of: &dyn Fn(&Cargo) -> Option<String>| {
        texts.push((column, cargos.iter().map(|cargo| of(cargo).unwrap_or_default()).collect()));
    };
    for at in 0..first.files.len() {
        add(format!("File{}", at + 1), &|cargo| Some(within(directory, &cargo.files.get(at)?.name)));
        add(format!("Key{}", at + 1), &|cargo| keys.0.get(&cargo.files.get(at)?.path).cloned());
    }
    for at in 0..first.urls.len() {
        add(format!("Fetched{}", at + 1), &|cargo| Some(within(directory, &cargo.urls.get(at)?.0)));
        add(format!("Url{}", at + 1), &|cargo| Some(cargo.urls.get(at)?.1.clone()));
    }
    texts
}

/// Puts the files into a pod template. `texts` are those of [`texts`] as the template has them.
pub(in crate::manifest) fn unload(
    template: &mut Value,
    cargo: &Cargo,
    directory: &str,
    texts: &[String],
    image: &str,
) {
    let mut texts = texts.chunks(2).map(|pair| (pair.first().cloned(), pair.last().cloned()));
    let mounts: Vec<Value> = cargo
        .files
        .iter()
        .zip(texts.by_ref())
        .map(|(file, (path, key))| {
            json!({"name": volume(file.is_executable), "mountPath": path, "subPath": key, "readOnly": true})
        })
        .collect();
    let fetched: Vec<Value> = texts
        .flat_map(|(path, url)| {
            [json!("--output"), json!(path.unwrap_or_default()), json!(url.unwrap_or_default())]
        })
        .collect();
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let container =
        spec.get_mut("containers").and_then(|list| list.get_mut(0)).and_then(Value::as_object_mut);
    let Some(container) = container else { return };
    let security = container.get("securityContext").cloned();
    container.insert("workingDir".to_owned(), directory.into());
    let is_scratch = |mount: &&Value| {
        let path = mount.get("mountPath").and_then(Value::as_str).unwrap_or_default();
        path.trim_end_matches('/') == directory.trim_end_matches('/')
    };
    // A template may bring a scratch directory of its own, such as one in memory.
    let own = container.get("volumeMounts").and_then(Value::as_array).into_iter().flatten().find(is_scratch);
    let (scratch, is_ours) = match own {
        Some(mount) => (mount.clone(), false),
        None => (json!({"name": SCRATCH_VOLUME, "mountPath": directory}), true),
    };
    push(container, "volumeMounts", is_ours.then(|| scratch.clone()).into_iter().chain(mounts));
    let scratch_volume = is_ours.then(|| json!({"name": SCRATCH_VOLUME, "emptyDir": {}}));
    push(spec, "volumes", scratch_volume.into_iter().chain(volumes(cargo)));
    if fetched.is_empty() {
        return;
    }
    push(spec, "initContainers", [fetching(image, &fetched, &scratch, security)]);
}

/// The volumes with a job's files: those that can be executed, and those that cannot.
fn volumes(cargo: &Cargo) -> impl Iterator<Item = Value> {
    let volumes = [(false, 0o644), (true, 0o755)]
        .into_iter()
        .filter(|(is_executable, _)| cargo.files.iter().any(|file| file.is_executable == *is_executable));
    volumes.map(|(is_executable, mode)| {
        json!({"name": volume(is_executable), "configMap": {"name": "", "defaultMode": mode}})
    })
}

/// The container that fetches files before the job's own container starts. `arguments` name the files and their URLs.
fn fetching(image: &str, arguments: &[Value], scratch: &Value, security: Option<Value>) -> Value {
    let command = [
        "curl",
        "--fail",
        "--fail-early",
        "--silent",
        "--show-error",
        "--location",
        "--globoff",
        "--retry",
        "3",
        "--proto",
        "=http,https",
    ];
    let mut init = json!({"name": FETCH, "image": image, "command": command, "args": arguments, "volumeMounts": [scratch]});
    if let (Some(init), Some(security)) = (init.as_object_mut(), security) {
        init.insert("securityContext".to_owned(), security);
    }
    init
}

/// The name of the volume with the files that can be executed, or with those that cannot.
const fn volume(is_executable: bool) -> &'static str {
    if is_executable { FILE_VOLUMES[1] } else { FILE_VOLUMES[0] }
}

/// Adds items to a list, which is made if it is missing.
fn push(object: &mut Map<String, Value>, field: &str, items: impl IntoIterator<Item = Value>) {
    let list = object.entry(field).or_insert_with(|| json!([]));
    // A template may say null.
    if list.is_null() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        list.extend(items);
    }
}

/// Has an HTCJob take its files from the ConfigMap of this name.
pub fn name_files(job: &mut Value, name: &str) {
    let volumes = job.pointer_mut("/spec/template/spec/volumes").and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        let is_ours =
            volume.get("name").and_then(Value::as_str).is_some_and(|name| FILE_VOLUMES.contains(&name));
        if let Some(map) = volume.get_mut("configMap").filter(|_| is_ours).and_then(Value::as_object_mut) {
            map.insert("name".to_owned(), name.into());
        }
    }
}
