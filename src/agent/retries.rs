//! The pauses after calls that fail, and between renewals. Pure.

use std::time::Duration;

use kube::Error;
use kube::runtime::utils::Backoff as _;

use answers::Pauses;

/// The least pause after the first failure.
const SHORTEST: Duration = Duration::from_secs(2);
/// The least pause after many failures. With the random part it is 12 s on average, so that agents whose calls fail call no more often
/// than agents whose renewals succeed. A Lease lasts for three such pauses.
const LONGEST: Duration = Duration::from_secs(8);
/// The longest pause for which an API server may ask.
const MOST_ASKED: Duration = Duration::from_secs(20);

/// The pauses after calls of one kind that fail: they grow from one failure to the next, and a random part keeps the agents of a cluster
/// out of step.
pub(crate) struct Retries(Pauses);

impl Retries {
    /// The pauses of one kind of calls.
    pub(crate) fn new(pauses: Pauses) -> Self {
        Self(pauses.between(SHORTEST, LONGEST))
    }

    /// The pause after a failure. An API server that has too much to do may ask for a longer one.
    pub(crate) fn after(&mut self, error: Option<&Error>) -> Duration {
        self.0.next().unwrap_or(LONGEST).max(error.and_then(asked).unwrap_or_default())
    }

    /// A call has succeeded: the pauses begin anew.
    pub(crate) fn succeeded(&mut self) {
        self.0.reset();
    }

    /// The pause until the next regular call.
    pub(crate) fn about(&mut self, pause: Duration) -> Duration {
        self.0.about(pause)
    }
}

/// The pause for which the API server asks.
fn asked(error: &Error) -> Option<Duration> {
    let Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    Some(Duration::from_secs(seconds.into()).min(MOST_ASKED))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    fn refused(seconds: u32) -> Error {
        let status: Status =
            serde_json::from_value(json!({"status": "Failure", "code": 429, "reason": "TooManyRequests",
            "message": "later", "details": {"retryAfterSeconds": seconds}}))
            .unwrap();
        Error::Api(Box::new(status))
    }

    #[test]
    fn pauses_grow_differ_between_agents_and_are_no_shorter_than_the_api_server_asks() {
        let mut retries = Retries::new(Pauses::new(7));
        for least in [2, 4, 8, 8].map(Duration::from_secs) {
            let pause = retries.after(None);
            assert!(least <= pause && pause <= least * 2, "{least:?} {pause:?}");
        }
        retries.succeeded();
        assert!(retries.after(Some(&refused(1))) <= SHORTEST * 2);
        assert_eq!(retries.after(Some(&refused(17))), Duration::from_secs(17));
        assert_eq!(retries.after(Some(&refused(9999))), MOST_ASKED);
        let first = |seed| Retries::new(Pauses::new(seed)).after(None);
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn regular_calls_are_about_as_far_apart_as_is_asked() {
        let mut retries = Retries::new(Pauses::new(7));
        let all: Vec<Duration> = (0..200).map(|_| retries.about(Duration::from_secs(10))).collect();
        let bounds = Duration::from_secs(9)..=Duration::from_secs(11);
        assert!(all.iter().all(|pause| bounds.contains(pause)), "{all:?}");
        let sum: Duration = all.iter().sum();
        assert!((1950..=2050).contains(&sum.as_secs()), "{sum:?}");
    }
}
