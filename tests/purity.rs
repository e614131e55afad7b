//! Holds the rooms to the architecture: dependencies go one way, and the pure rooms touch no clock, network, file,
//! thread, chance or async. Tests inside a room are held to it as well: what they need of files, they include.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

#[path = "purity/scan.rs"]
mod scan;

use std::fs;
use std::path::{Path, PathBuf};

use scan::Named;

/// A room, and the rooms that it may name.
struct Room {
    name: &'static str,
    pure: bool,
    may_use: &'static [&'static str],
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Room {
    Room { name, pure: true, may_use }
}

const fn shell(name: &'static str, may_use: &'static [&'static str]) -> Room {
    Room { name, pure: false, may_use }
}

/// Every room, and all that it may know. A new room belongs in this table; a new arrow is a decision.
const ROOMS: &[Room] = &[
    pure("classad", &[]),
    pure("config", &["classad"]),
    pure("pool", &["classad", "config"]),
    pure("startd", &["classad", "config", "pool"]),
    pure("negotiator", &["classad", "config", "pool"]),
    // Turns matches into claims: carves by the startd's rules, and checks them against the negotiator's groups.
    pure("schedd", &["classad", "config", "pool", "startd", "negotiator"]),
    pure("decide", &["classad", "config", "pool", "startd", "schedd", "negotiator"]),
    pure("defrag", &["classad", "config", "pool", "startd"]),
    pure("sim", &["classad", "config", "pool", "startd", "schedd", "negotiator", "decide", "defrag"]),
    shell("api", &[]),
    shell(
        "controller",
        &["classad", "config", "pool", "startd", "schedd", "negotiator", "decide", "defrag", "api"],
    ),
    shell("webhook", &["classad", "config", "pool", "schedd", "api"]),
    shell("agent", &["classad", "api"]),
    shell("observe", &["classad", "config", "pool", "api"]),
    shell("hollow", &["api"]),
    shell(
        "cli",
        &[
            "classad",
            "config",
            "pool",
            "startd",
            "schedd",
            "negotiator",
            "decide",
            "defrag",
            "sim",
            "api",
            "controller",
            "webhook",
            "agent",
            "observe",
            "hollow",
        ],
    ),
];

/// What a binary may name: it reads the command line and hands over.
const BINARY: Room = shell("a binary", &["cli"]);

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

/// Says what is wrong with a room's naming this path, if anything.
fn complaint(room: &Room, named: &Named) -> Option<String> {
    let path: Vec<&str> = named.path.iter().map(String::as_str).collect();
    let wrong = match path.as_slice() {
        ["crate" | "slotwright"] if named.import => Some("hides which room is meant".to_owned()),
        ["crate" | "slotwright", other, ..] => arrow(room, other),
        outside if room.pure => impurity(outside, named.import),
        _ => None,
    };
    wrong.map(|why| format!("line {}: `{}` {why}", named.line, path.join("::")))
}

fn arrow(room: &Room, other: &str) -> Option<String> {
    if other == room.name || room.may_use.contains(&other) {
        return None;
    }
    if ROOMS.iter().all(|room| room.name != other) {
        return Some("is in no room".to_owned());
    }
    Some(format!("is not for {}, which may use {:?}", room.name, room.may_use))
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

/// All complaints about one file of a room.
fn complaints(room: &Room, source: &str, module: &[&str]) -> Vec<String> {
    let module: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
    scan::paths(source, &module).iter().filter_map(|named| complaint(room, named)).collect()
}

// --- the house -----------------------------------------------------------------------------------------------------

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file under `directory`, in the order of names.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut files = Vec::new();
    for path in entries {
        match path.extension() {
            _ if path.is_dir() => files.extend(rust_files(&path)),
            Some(extension) if extension == "rs" => files.push(path),
            _ => {}
        }
    }
    files
}

/// The module of a file: `src/pool/claims.rs` is `pool::claims`, `src/pool/mod.rs` is `pool`.
fn module_of(file: &Path) -> Vec<String> {
    let relative = file.strip_prefix(src()).unwrap().with_extension("");
    let mut module: Vec<String> = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    module.pop_if(|last| last == "mod");
    module
}

fn audit(room: &Room, file: &Path) -> Vec<String> {
    let module = module_of(file);
    let module: Vec<&str> = module.iter().map(String::as_str).collect();
    let found = complaints(room, &fs::read_to_string(file).unwrap(), &module);
    found.into_iter().map(|complaint| format!("{}: {complaint}", file.display())).collect()
}

#[test]
fn rooms_know_only_what_they_may() {
    let mut found = Vec::new();
    for room in ROOMS {
        let directory = src().join(room.name);
        if directory.is_dir() {
            found.extend(rust_files(&directory).iter().flat_map(|file| audit(room, file)));
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn binaries_only_hand_over() {
    let found: Vec<String> = [src().join("main.rs")]
        .into_iter()
        .chain(rust_files(&src().join("bin")))
        .flat_map(|file| audit(&BINARY, &file))
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_room_is_in_the_table() {
    for entry in fs::read_dir(src()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let known =
            ["main", "lib", "bin"].contains(&name.as_str()) || ROOMS.iter().any(|room| room.name == name);
        assert!(known, "{}: add the room to the table in tests/purity.rs", path.display());
    }
}

#[test]
fn arrows_never_go_in_circles() {
    for (index, room) in ROOMS.iter().enumerate() {
        for other in room.may_use {
            let target = ROOMS.iter().position(|room| room.name == *other);
            assert!(
                target.is_some_and(|target| target < index),
                "{} may not use {other}: it comes later",
                room.name
            );
            assert!(
                !room.pure || ROOMS[target.unwrap()].pure,
                "{}, pure, uses {other}, which is not",
                room.name
            );
        }
    }
}

// --- the checker itself --------------------------------------------------------------------------------------------

fn room(name: &str) -> &'static Room {
    ROOMS.iter().find(|room| room.name == name).unwrap()
}

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
        "use crate::*;",
        "use crate::{classad, controller::Thing};",
        "use slotwright::hollow;",
        "use super::super::negotiator::Pie;",
        "use jiff::*;",
        "fn f() { ::std::thread::spawn(g); }",
        "fn f() -> k8s_openapi::api::core::v1::Pod { g() }",
        "fn f() { let _ = Timestamp::now(); }",
        "fn f() { let _ = rand::rng(); }",
        "fn f() { assert!(std::env::var(\"A\").is_ok()); }",
        "fn f() { println!(\"a\"); }",
        "#[cfg(test)] mod tests { use super::super::super::cli; }",
        "macro_rules! m { () => { $crate::api::Slot } }",
    ] {
        let found = complaints(room("pool"), source, &["pool", "claims"]);
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
    assert_eq!(complaints(room("pool"), source, &["pool", "claims"]), Vec::<String>::new());
}
