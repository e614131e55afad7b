//! Why the cluster gives no answer, in words that say what to do.

use std::fmt::Display;
use std::io::Write;

use answers::chain;
use controller::proxy::BadProxy;
use kube::core::Status;
use thiserror::Error;

/// Why the cluster gave no answer.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no usable kubeconfig.
    #[error(
        "no cluster: {0}; name a kubeconfig with --kubeconfig or KUBECONFIG, and one of its contexts with --context"
    )]
    NoCluster(String),
    /// The proxy cannot be used.
    #[error(transparent)]
    Proxy(#[from] BadProxy),
    /// The API server does not know the resource.
    #[error(
        "the cluster has no resource {resource}: Slotwright's custom resource definitions are not installed; install \
         the Helm chart, or run: slotwright crds | kubectl apply --server-side -f -"
    )]
    NotInstalled {
        /// The resource with its group.
        resource: String,
    },
    /// The user may not list the resource.
    #[error("not allowed to list {resource}: {message}; ask an admin for {role}")]
    Forbidden {
        /// The resource with its group.
        resource: String,
        /// The message of the API server.
        message: String,
        /// The role that would allow it.
        role: &'static str,
    },
    /// The API server refused to create a job.
    #[error("cannot create a job in namespace {namespace}: {message}")]
    NotCreated {
        /// The namespace.
        namespace: String,
        /// The message of the API server.
        message: String,
    },
    /// The API server did not say whether it created a job.
    #[error(
        "cannot create a job in namespace {namespace}: {message}; if the API server has got the request, the job is there: \
         see kubectl slotwright q -n {namespace}"
    )]
    MaybeCreated {
        /// The namespace.
        namespace: String,
        /// The failure; its cause comes last.
        message: String,
    },
    /// The object is not there.
    #[error("there is no {object}")]
    Missing {
        /// The object.
        object: String,
    },
    /// The API server did not change an object.
    #[error("cannot {verb} {object}: {message}")]
    NotWritten {
        /// The action that failed.
        verb: &'static str,
        /// The object.
        object: String,
        /// The message of the API server.
        message: String,
    },
    /// A pod's log cannot be read.
    #[error("cannot read the log of pod {pod}: {message}")]
    NoLog {
        /// The pod with its namespace.
        pod: String,
        /// The message of the API server.
        message: String,
    },
    /// The history cannot be read.
    #[error("cannot read the history through {server}: {message}")]
    NoHistory {
        /// The API server's address.
        server: String,
        /// The cause.
        message: String,
    },
    /// The user may not change an object.
    #[error("not allowed to {verb} {object}: {message}; ask an admin for a role that allows this")]
    Denied {
        /// The action that is not allowed.
        verb: &'static str,
        /// The object.
        object: String,
        /// The message of the API server.
        message: String,
    },
    /// Somebody else wrote an object between its reading and its change.
    #[error(
        "cannot {verb} {object}: others write the object all the time, or too many requests wait for the operator; try again"
    )]
    Contended {
        /// The action that failed.
        verb: &'static str,
        /// The object.
        object: String,
    },
    /// The API server refused for another reason.
    #[error("cannot list {resource}: {message}")]
    Refused {
        /// The resource with its group.
        resource: String,
        /// The message of the API server.
        message: String,
    },
    /// The API server did not answer, or its answer is not understood.
    #[error("cannot list {resource} at {server}: {message}")]
    NoAnswer {
        /// The resource with its group.
        resource: String,
        /// The API server's address.
        server: String,
        /// The failure; its cause comes last.
        message: String,
    },
}

impl Error {
    /// Whether the same request may succeed a moment later: the API server restarts, or is overloaded.
    pub(crate) const fn is_transient(&self) -> bool {
        matches!(self, Self::NoAnswer { .. } | Self::Refused { .. })
    }
}

/// Remembers whether a command that goes on after failed requests has told the user of the first failure.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    has_told: bool,
}

impl Patience {
    /// Tells the user of a failure, if it is the first.
    pub(crate) fn bear(&mut self, error: &impl Display, err: &mut dyn Write) {
        if !std::mem::replace(&mut self.has_told, true) {
            // Nobody may be there to read it.
            let _ = writeln!(err, "note: {error}; trying again");
        }
    }
}

/// The error for a job that was not created, or of which nobody knows whether it was created: an answer that is lost, or that says
/// that the API server failed, may follow a job that was stored.
pub(super) fn not_created(namespace: &str, server: &str, error: &kube::Error) -> Error {
    let namespace = namespace.to_owned();
    match error {
        // A namespace that is not there is named.
        kube::Error::Api(status) if status.code == 404 && status.details.is_none() => {
            Error::NotInstalled { resource: "htcjobs.slotwright.dev".to_owned() }
        }
        kube::Error::Api(status) if status.code < 500 => {
            Error::NotCreated { namespace, message: status.message.clone() }
        }
        kube::Error::Api(status) => Error::MaybeCreated { namespace, message: status.message.clone() },
        other => Error::MaybeCreated { namespace, message: format!("{server}: {}", chain(other)) },
    }
}

/// Whether an answer says that the object of this name is not there. The API server also says 404 of a kind that it does not know, but
/// then it names no object.
pub(super) fn is_missing(status: &Status, name: &str) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

/// The error for a list that the API server refused.
pub(super) fn refusal(resource: String, status: &Status) -> Error {
    let message = status.message.clone();
    match status.code {
        // 404 means an unknown resource: a list in a namespace that does not exist is empty.
        404 => Error::NotInstalled { resource },
        403 => {
            let role = match resource.split_once('.') {
                Some(("htcjobs", _)) => "the role view in the namespace, or the chart's RELEASE-view",
                Some(_) => "the chart's role RELEASE-pool-view",
                None => "a role that allows it",
            };
            Error::Forbidden { resource, message, role }
        }
        _ => Error::Refused { resource, message },
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_that_may_pass_are_told_once() {
        let (no_answer, forbidden) = (
            Error::NoAnswer { resource: "pods".into(), server: "s".into(), message: "EOF".into() },
            Error::Forbidden { resource: "pods".into(), message: "no".into(), role: "a role" },
        );
        assert!(no_answer.is_transient() && !forbidden.is_transient());
        let (mut patience, mut err) = (Patience::default(), Vec::new());
        patience.bear(&no_answer, &mut err);
        patience.bear(&no_answer, &mut err);
        assert_eq!(String::from_utf8(err).unwrap(), "note: cannot list pods at s: EOF; trying again\n");
    }

    /// The message of an unknown kind may have the name of the object: a job may be called `page`.
    #[test]
    fn an_object_that_is_not_there_is_told_from_a_kind_that_is_not_known() {
        let details =
            |name: &str| -> Option<StatusDetails> { serde_json::from_value(json!({"name": name})).ok() };
        for (code, details, expected) in [
            (404, None, false),
            (404, details(""), false),
            (404, details("page"), true),
            (409, details("page"), false),
        ] {
            let status =
                Status { code, details, message: "404 page not found".to_owned(), ..Status::default() };
            assert_eq!(is_missing(&status, "page"), expected, "{status:?}");
        }
    }

    /// The files of a job must stay for as long as the job may be there.
    #[test]
    fn a_job_is_not_created_only_if_the_api_server_says_so() {
        let api = |code, named: bool| {
            let details = if named { serde_json::from_value(json!({})).ok() } else { None };
            kube::Error::Api(Status { code, details, ..Status::default() }.boxed())
        };
        for (error, expected) in [
            (api(422, true), "NotCreated"),
            (api(403, false), "NotCreated"),
            (api(404, true), "NotCreated"),
            (api(404, false), "NotInstalled"),
            (api(500, true), "MaybeCreated"),
            (api(504, false), "MaybeCreated"),
            (kube::Error::Service("the connection is lost".into()), "MaybeCreated"),
        ] {
            let shown = format!("{:?}", not_created("ns", "s", &error));
            assert!(shown.starts_with(expected), "{error:?}: {shown}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (resource, code, text) in [
            ("slots.slotwright.dev", 404, "custom resource definitions are not installed"),
            ("slots.slotwright.dev", 403, "said; ask an admin for the chart's role RELEASE-pool-view"),
            ("htcjobs.slotwright.dev", 403, "the role view in the namespace"),
            ("nodes", 403, "not allowed to list nodes"),
            ("nodes", 500, "cannot list nodes: said"),
        ] {
            let status = Status { code, message: "said".to_owned(), ..Status::default() };
            let error = refusal(resource.to_owned(), &status).to_string();
            assert!(error.contains(text) && error.contains(resource), "{error}");
        }
    }
}
