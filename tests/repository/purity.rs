//! Holds the pure crates to the architecture: they touch no clock, network, file, thread, chance or async. Tests inside a pure
//! crate are held to it as well: they include the files that they need.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

#[path = "purity/scan.rs"]
mod scan;

use std::fs;
use std::path::{Path, PathBuf};

use scan::Named;

/// The crates that are pure, by their folder in `src/`. Cargo checks which crate may use which other crate.
const PURE: &[&str] = &["classad", "config", "crontab", "transform", "submit", "tools", "model", "sim"];

/// Crates that do I/O, wait, or speak Kubernetes.
const IMPURE_CRATES: &[&str] = &[
    "async_trait",
    "axum",
    "chrono",
    "fastrand",
    "futures",
    "futures_core",
    "futures_util",
    "getrandom",
    "http",
    "hyper",
    "k8s_openapi",
    "kube",
    "reqwest",
    "rustls",
    "tokio",
    "tokio_util",
    "tower",
];

/// Names of the standard library and of allowed crates that look outside, with all that is below them.
const IMPURE_PATHS: &[&str] = &[
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "jiff::tz::TimeZone::system",
    "rand::random",
    "rand::rng",
    "rand::rngs::OsRng",
    "rand::rngs::ThreadRng",
    "rand::thread_rng",
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];

/// The same, however the type was imported.
const IMPURE_ENDS: &[&str] =
    &["Timestamp::now", "Zoned::now", "TimeZone::system", "Instant::now", "SystemTime::now"];

/// Macros that write to the terminal.
const IMPURE_MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Says what is wrong with a pure crate's naming this path, if anything.
fn complaint(named: &Named) -> Option<String> {
    let path: Vec<&str> = named.path.iter().map(String::as_str).collect();
    let wrong = match path.as_slice() {
        ["crate", ..] => None,
        outside => impurity(outside, named.import),
    };
    wrong.map(|why| format!("line {}: `{}` {why}", named.line, path.join("::")))
}

fn impurity(path: &[&str], import: bool) -> Option<String> {
    let (first, whole) = (*path.first()?, path.join("::"));
    if let [name, "!"] = path {
        return IMPURE_MACROS
            .contains(name)
            .then(|| "writes to the terminal: a pure room returns text".to_owned());
    }
    if IMPURE_CRATES.contains(&first) && (import || path.len() > 1) {
        return Some("is a shell's crate: a pure room has no async, no I/O and no Kubernetes".to_owned());
    }
    // core and alloc name the same things as std.
    let whole = whole.strip_prefix("core::").map_or(whole.clone(), |rest| format!("std::{rest}"));
    if IMPURE_PATHS.iter().any(|impure| below(&whole, impure))
        || IMPURE_ENDS.iter().any(|end| whole.ends_with(end))
    {
        return Some("looks outside: a pure room gets the time, chance and data as arguments".to_owned());
    }
    let parent = whole.trim_end_matches("::*");
    let covers = import && IMPURE_PATHS.iter().any(|impure| impure.starts_with(&format!("{parent}::")));
    let type_with_a_clock = !whole.ends_with('*')
        && (parent.ends_with("Timestamp") || parent.ends_with("Zoned") || parent.ends_with("TimeZone"));
    (covers && !type_with_a_clock)
        .then(|| "covers what a pure room must not touch: name the item itself".to_owned())
}

/// Whether `path` is `ancestor` or something in it.
fn below(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// All complaints about one file of a pure crate.
fn complaints(source: &str, module: &[&str]) -> Vec<String> {
    let module: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
    scan::paths(source, &module).iter().filter_map(complaint).collect()
}

// --- the house -----------------------------------------------------------------------------------------------------

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file under `directory`, in the order of names. Example programs print, so they are left out.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut files = Vec::new();
    for path in entries {
        match path.extension() {
            _ if path.ends_with("examples") => {}
            _ if path.is_dir() => files.extend(rust_files(&path)),
            Some(extension) if extension == "rs" => files.push(path),
            _ => {}
        }
    }
    files
}

/// The module of a file: `src/model/pool/job.rs` is `pool::job` of its crate, `src/model/pool/mod.rs` is `pool`.
fn module_of(krate: &Path, file: &Path) -> Vec<String> {
    let relative = file.strip_prefix(krate).unwrap().with_extension("");
    let mut module: Vec<String> = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    module.pop_if(|last| last == "mod" || last == "lib");
    module
}

#[test]
fn pure_crates_do_not_look_outside() {
    let mut found = Vec::new();
    for krate in PURE {
        let krate = src().join(krate);
        for file in rust_files(&krate) {
            let module = module_of(&krate, &file);
            let module: Vec<&str> = module.iter().map(String::as_str).collect();
            let complaints = complaints(&fs::read_to_string(&file).unwrap(), &module);
            found.extend(complaints.into_iter().map(|complaint| format!("{}: {complaint}", file.display())));
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn pure_crates_depend_on_pure_crates() {
    for krate in PURE {
        let manifest = fs::read_to_string(src().join(krate).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        for name in manifest["dependencies"].as_table().unwrap().keys() {
            let name = name.replace('-', "_");
            let impure = IMPURE_CRATES.contains(&name.as_str())
                || ["api", "cli", "controller", "hollow", "kube_schema", "plugin"].contains(&name.as_str());
            assert!(!impure, "{krate} is pure and depends on {name}, which is not");
        }
    }
}

// --- the checker itself --------------------------------------------------------------------------------------------

#[test]
fn violations_are_noticed() {
    for source in [
        "use tokio::sync::Mutex;",
        "use ::kube;",
        "extern crate futures;",
        "use std::{fmt, fs};",
        "use std::time::{Duration, Instant};",
        "use std::time::*;",
        "use std::time::{self, Duration};",
        "use std as other;",
        "use jiff::*;",
        "fn f() { ::std::thread::spawn(g); }",
        "fn f() -> k8s_openapi::api::core::v1::Pod { g() }",
        "fn f() { let _ = Timestamp::now(); }",
        "fn f() { let _ = rand::rng(); }",
        "fn f() { assert!(std::env::var(\"A\").is_ok()); }",
        "fn f() { println!(\"a\"); }",
    ] {
        let found = complaints(source, &["pool", "claims"]);
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        assert!(found[0].starts_with("line 1: "), "{found:?}");
    }
}

#[test]
fn what_is_right_is_left_alone() {
    let source = r##"
        //! tokio::spawn in a doc, std::fs too.
        /* crate::controller in /* a */ comment */
        use std::{collections::BTreeMap, time::Duration};
        use jiff::{SignedDuration, Timestamp};
        use crate::{classad::Value, config};
        use super::{claims, super::classad};
        const TEXT: &str = "std::env::var and crate::api";
        const RAW: &str = r#"println!("x"); tokio::spawn()"#;
        fn time<'tokio>(kube: u8, now: Timestamp) -> impl Sized + use<'tokio> { if kube != 1 { futures() } }
        #[cfg(test)]
        mod tests { use super::*; use super::super::ids::ClaimId; }
    "##;
    assert_eq!(complaints(source, &["pool", "claims"]), Vec::<String>::new());
}
