//! Files of configuration: HTCondor's own, or manifests with configuration text in them.

use crate::lint::{Node, parse};
use crate::stop::{Stop, unusable};
use api::GROUP;
use condor_config::Source;

/// The field of a manifest's configuration text.
const TEXT: &str = "spec.config";

/// A file's configuration: the whole text, or, if the file is a manifest of Slotwright's, the text of its `spec.config`. The lines of
/// such a text count from its own first line, as in the operator's conditions. If several manifests have configuration text, that of
/// `kind` counts: the kind of objects whose text the command reads.
///
/// # Errors
/// When the file has manifests, and none of them has configuration text, or several that might be meant have.
pub(super) fn source(path: String, text: String, kind: Option<&str>) -> Result<Source, Stop> {
    if !text.contains(GROUP) {
        return Ok(Source::new(path, text));
    }
    let ours = format!("{GROUP}/");
    let field = |node: &Node, name: &str| Some(node.get(name)?.as_str()?.to_owned());
    let documents: Vec<Node> = parse(&text).documents;
    let manifests: Vec<&Node> = documents
        .iter()
        .filter(|document| field(document, "apiVersion").is_some_and(|is| is.starts_with(&ours)))
        .collect();
    if manifests.is_empty() {
        return Ok(Source::new(path, text));
    }
    let texts = manifests.iter().filter_map(|manifest| {
        let of_kind = kind.is_some_and(|kind| field(manifest, "kind").is_some_and(|is| is == kind));
        Some((of_kind, field(manifest.get("spec")?, "config")?))
    });
    let (mut meant, others): (Vec<_>, Vec<_>) = texts.partition(|(of_kind, _)| *of_kind);
    if meant.is_empty() {
        meant = others;
    }
    match (meant.pop(), meant.len()) {
        (Some((_, config)), 0) => Ok(Source::block(format!("{path}, {TEXT}"), config)),
        (None, _) => Err(unusable(
            path,
            format!("this is a manifest without {TEXT}; give a file of configuration text"),
        )),
        (Some((of_kind, _)), others) => {
            let count = others.saturating_add(1);
            let say = match kind {
                Some(kind) if of_kind => format!("{count} {kind}s have {TEXT}"),
                Some(kind) => format!("no {kind} has {TEXT}, and {count} other manifests have"),
                None => format!("{count} manifests have {TEXT}"),
            };
            Err(unusable(path, format!("{say}; give a file with one of them")))
        }
    }
}

/// The kind of objects whose text is read as this daemon's.
pub(super) fn kind_of(subsystem: &str) -> Option<&'static str> {
    let kinds = [("STARTD", "NodePolicy"), ("SCHEDD", "SubmitPolicy"), ("NEGOTIATOR", "Negotiator")];
    let found = kinds.iter().find(|(known, _)| known.eq_ignore_ascii_case(subsystem));
    found.map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, String), String> {
        read_as(None, text)
    }

    fn read_as(kind: Option<&str>, text: &str) -> Result<(String, String), String> {
        match source("f".to_owned(), text.to_owned(), kind) {
            Ok(source) => Ok((source.name, source.text)),
            Err(Stop::Unusable(message)) => Err(message),
            Err(Stop::Io(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn the_configuration_of_a_manifest_is_taken_out() {
        let manifest = |spec: &str| {
            format!("apiVersion: slotwright.dev/v1alpha1\nkind: SubmitPolicy\nspec:\n  {spec}\n")
        };
        let plain = "# see slotwright.dev/docs\nSTART = TRUE\n";
        assert_eq!(read(plain), Ok(("f".to_owned(), plain.to_owned())));
        let taken = Ok(("f, spec.config".to_owned(), "A = 1\nB = 2\n".to_owned()));
        let text = manifest("config: |\n    A = 1\n    B = 2");
        assert_eq!(read(&text), taken);
        assert_eq!(
            read(&format!("apiVersion: v1\nkind: Namespace\n---\n{}---\n{text}", manifest("precedence: 1"))),
            taken
        );
        assert_eq!(
            read(&manifest("precedence: 1")).unwrap_err(),
            "f: this is a manifest without spec.config; give a file of configuration text"
        );
        assert_eq!(
            read(&format!("{text}---\n{text}")).unwrap_err(),
            "f: 2 manifests have spec.config; give a file with one of them"
        );
    }

    #[test]
    fn the_kind_that_a_command_reads_counts() {
        let manifest = |kind: &str, spec: &str| {
            format!("---\napiVersion: slotwright.dev/v1alpha1\nkind: {kind}\nspec:\n  {spec}\n")
        };
        let pool = [("NodePolicy", "config: A = 1"), ("Negotiator", "config: B = 2"), ("Slot", "x: 1")]
            .map(|(kind, spec)| manifest(kind, spec))
            .concat();
        let twice = pool.repeat(2);
        let taken = |text: &str| Ok(("f, spec.config".to_owned(), format!("{text}\n")));
        assert_eq!(read_as(kind_of("negotiator"), &pool), taken("B = 2"));
        assert_eq!(read_as(kind_of("STARTD"), &pool), taken("A = 1"));
        // The file has no SubmitPolicy, and one other text, which may be meant.
        assert_eq!(read_as(kind_of("SCHEDD"), &manifest("Negotiator", "config: B = 2")), taken("B = 2"));
        for (kind, text, expected) in [
            (
                Some("SubmitPolicy"),
                &pool,
                "f: no SubmitPolicy has spec.config, and 2 other manifests have; give a file with one of them",
            ),
            (Some("Negotiator"), &twice, "f: 2 Negotiators have spec.config; give a file with one of them"),
        ] {
            assert_eq!(read_as(kind, text).unwrap_err(), expected);
        }
        assert_eq!(kind_of("TOOL"), None);
    }
}
