//! An error with what caused the error.

use std::error::Error;

/// The message of an error and of its causes, each only once: an error may quote its cause itself.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Outer(&'static str, #[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("no route")]
    struct Inner;

    #[test]
    fn each_cause_is_told_once() {
        assert_eq!(chain(&Outer("cannot connect", Inner)), "cannot connect: no route");
        assert_eq!(chain(&Outer("cannot connect: no route", Inner)), "cannot connect: no route");
    }
}
