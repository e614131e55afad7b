//! Files of configuration: HTCondor's own, or manifests with configuration text in them.

use crate::lint::{Node, parse};
use crate::stop::{Stop, unusable};
use api::GROUP;
use condor_config::Source;

/// The field of a manifest's configuration text.
const TEXT: &str = "spec.config";

/// A file's configuration: the whole text, or, if the file is a manifest of Slotwright's, the text of its `spec.config`. The lines of
/// such a text count from its own first line, as in the operator's conditions.
///
/// # Errors
/// When the file has manifests, and not exactly one of them has configuration text.
pub(super) fn source(path: String, text: String) -> Result<Source, Stop> {
    if !text.contains(GROUP) {
        return Ok(Source::new(path, text));
    }
    let ours = format!("{GROUP}/");
    let documents = parse(&text).documents.into_iter().filter(|document| {
        document.get("apiVersion").and_then(Node::as_str).is_some_and(|is| is.starts_with(&ours))
    });
    let manifests: Vec<Option<String>> =
        documents.map(|document| Some(document.get("spec")?.get("config")?.as_str()?.to_owned())).collect();
    if manifests.is_empty() {
        return Ok(Source::new(path, text));
    }
    let mut texts: Vec<String> = manifests.into_iter().flatten().collect();
    match (texts.pop(), texts.len()) {
        (Some(config), 0) => Ok(Source::block(format!("{path}, {TEXT}"), config)),
        (None, _) => Err(unusable(
            path,
            format!("this is a manifest without {TEXT}; give a file of configuration text"),
        )),
        (Some(_), others) => {
            let say =
                format!("{} manifests have {TEXT}; give a file with one of them", others.saturating_add(1));
            Err(unusable(path, say))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, String), String> {
        match source("f".to_owned(), text.to_owned()) {
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
}
