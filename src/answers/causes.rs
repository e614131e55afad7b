//! An error with what caused the error.

use std::error::Error;

/// The message of an error and of its causes, each only once: an error may quote its cause itself. A refusal of the API server is told by
/// its code, reason and message; kube's own words for the refusal quote the answer in Rust's notation.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = Some(error);
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        if let Some(kube::Error::Api(refusal)) = inner.downcast_ref() {
            let plain = format!("{} {}: {}", refusal.code, refusal.reason, refusal.message);
            return text.replace(&said, &plain);
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

    #[derive(Debug, thiserror::Error)]
    #[error("the lease was not renewed: {0}")]
    struct Refused(#[source] kube::Error);

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_api_server() {
        let refusal = kube::core::Status::failure("leases is forbidden", "Forbidden").with_code(403);
        let refused = Refused(kube::Error::Api(refusal.boxed()));
        assert_eq!(chain(&refused.0), "403 Forbidden: leases is forbidden");
        assert_eq!(chain(&refused), "the lease was not renewed: 403 Forbidden: leases is forbidden");
    }

    #[test]
    fn each_cause_is_told_once() {
        assert_eq!(chain(&Outer("cannot connect", Inner)), "cannot connect: no route");
        assert_eq!(chain(&Outer("cannot connect: no route", Inner)), "cannot connect: no route");
    }
}
