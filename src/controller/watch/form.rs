//! How a watch begins: the form of its list.

use kube::runtime::watcher::{Config, Error, InitialListStrategy};

/// The form of the list with which a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The list is the watch's beginning. It comes from the API server's cache, object by object: neither the server nor the operator
    /// holds a page.
    AsWatch,
    /// The list comes in pages.
    InPages,
    /// The list comes in one answer, which cannot expire between its pages.
    InOne,
}

impl Form {
    /// kube's configuration of a watch that begins in this form. `page` is the size of a page in objects.
    pub fn config(self, page: u32) -> Config {
        let (initial_list_strategy, page_size) = match self {
            Self::AsWatch => (InitialListStrategy::StreamingList, None),
            Self::InPages => (InitialListStrategy::ListWatch, Some(page)),
            Self::InOne => (InitialListStrategy::ListWatch, None),
        };
        Config { initial_list_strategy, page_size, ..Config::default() }
    }

    /// The form of the list after a list in this form that failed with `error`, or was cut off if there is none. After a list as a
    /// watch the next one comes in pages, as in client-go: a server may accept such a watch and end it with an error, because its
    /// etcd cannot say how far the cache is. After a list in pages that outlasted its version, the next one comes in one answer.
    pub fn after_failure(self, error: Option<&Error>) -> Self {
        match self {
            Self::AsWatch => Self::InPages,
            Self::InPages if error.is_some_and(outlasted) => Self::InOne,
            Self::InPages | Self::InOne => self,
        }
    }
}

/// Whether the API server refuses a list as a watch. Servers before 1.27 do not know such lists, and later servers may have them
/// switched off, as 1.33 has by default: both call the parameters of such a watch invalid.
pub fn has_no_lists_as_watches(error: &Error) -> bool {
    matches!(error, Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
}

/// Whether the API server forgot the version of a list before the list's last page. The next list in pages takes as long, and may
/// fail in the same way.
pub fn outlasted(error: &Error) -> bool {
    matches!(error, Error::InitialListFailed(kube::Error::Api(status)) if status.code == 410)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn after_a_failure_the_next_list_comes_in_another_form() {
        let failed = |code| {
            let status = Status { code, ..Status::default() };
            Error::InitialListFailed(kube::Error::Api(Box::new(status)))
        };
        for (form, error, next) in [
            (Form::AsWatch, None, Form::InPages),
            (Form::AsWatch, Some(failed(500)), Form::InPages),
            (Form::InPages, Some(failed(500)), Form::InPages),
            (Form::InPages, Some(failed(410)), Form::InOne),
            (Form::InOne, Some(failed(410)), Form::InOne),
        ] {
            assert_eq!(form.after_failure(error.as_ref()), next, "{form:?} {error:?}");
        }
    }
}
