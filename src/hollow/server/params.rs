//! The query parameters of a request, parsed once.

use axum::extract::Query;
use http::Uri;

use kube_schema::IncludeObject;

use super::error::ApiError;

/// `fieldValidation`: what to do with fields that the schema does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum FieldValidation {
    Ignore,
    /// The default, as in the real server.
    #[default]
    Warn,
    Strict,
}

/// `resourceVersionMatch`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// The query parameters that this server supports. It ignores others, as the real server does.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one query parameter")]
pub(super) struct Params {
    pub(super) watch: bool,
    pub(super) label_selector: String,
    pub(super) field_selector: String,
    /// `None` if absent or empty.
    pub(super) resource_version: Option<u64>,
    pub(super) version_match: Option<VersionMatch>,
    /// The most objects in a list; 0 means no limit.
    pub(super) limit: usize,
    pub(super) continue_token: String,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) bookmarks: bool,
    pub(super) initial_events: Option<bool>,
    pub(super) dry_run: bool,
    pub(super) field_manager: String,
    pub(super) field_validation: FieldValidation,
    pub(super) force: bool,
    pub(super) include: IncludeObject,
    pub(super) propagation: String,
    pub(super) grace: Option<i64>,
    pub(super) orphan: Option<bool>,
}

impl Params {
    /// Parses the query. The error is 400, and names the parameter and its value.
    pub(super) fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|e| ApiError::bad_request(format!("invalid query: {e}")))?;
        let mut params = Self::default();
        for (key, value) in pairs {
            params.take(&key, value)?;
        }
        Ok(params)
    }

    fn take(&mut self, key: &str, value: String) -> Result<(), ApiError> {
        match key {
            "watch" => self.watch = truth(&value),
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "resourceVersion" => self.resource_version = number(key, &value)?,
            "resourceVersionMatch" => self.version_match = version_match(&value)?,
            "limit" => {
                self.limit = number(key, &value)?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
            }
            "continue" => self.continue_token = value,
            "timeoutSeconds" => self.timeout_seconds = number(key, &value)?,
            "allowWatchBookmarks" => self.bookmarks = truth(&value),
            "sendInitialEvents" => self.initial_events = Some(truth(&value)),
            "dryRun" => self.dry_run = dry_run(&value)?,
            "fieldManager" => self.field_manager = value,
            "fieldValidation" => self.field_validation = field_validation(&value)?,
            "force" => self.force = truth(&value),
            "includeObject" => self.include = IncludeObject::parse(&value).map_err(ApiError::bad_request)?,
            "propagationPolicy" => self.propagation = value,
            "gracePeriodSeconds" => {
                self.grace = number(key, &value)?.and_then(|n| i64::try_from(n).ok());
            }
            "orphanDependents" => self.orphan = Some(truth(&value)),
            _ => {}
        }
        Ok(())
    }
}

fn truth(value: &str) -> bool {
    // client-go sends `watch=1` and `watch=true`. A parameter without a value is true as well.
    !matches!(value, "0" | "false")
}

fn number(key: &str, value: &str) -> Result<Option<u64>, ApiError> {
    if value.is_empty() {
        return Ok(None);
    }
    let parsed = value.parse();
    parsed.map(Some).map_err(|_| ApiError::bad_request(format!("invalid value for {key}: {value:?}")))
}

fn version_match(value: &str) -> Result<Option<VersionMatch>, ApiError> {
    match value {
        "" => Ok(None),
        "Exact" => Ok(Some(VersionMatch::Exact)),
        "NotOlderThan" => Ok(Some(VersionMatch::NotOlderThan)),
        other => Err(ApiError::bad_request(format!("unsupported value for resourceVersionMatch: {other:?}"))),
    }
}

fn dry_run(value: &str) -> Result<bool, ApiError> {
    match value {
        "" => Ok(false),
        "All" => Ok(true),
        other => Err(ApiError::bad_request(format!(
            "dryRun: Unsupported value: {other:?}: supported values: \"All\""
        ))),
    }
}

fn field_validation(value: &str) -> Result<FieldValidation, ApiError> {
    match value {
        "" | "Warn" => Ok(FieldValidation::Warn),
        "Ignore" => Ok(FieldValidation::Ignore),
        "Strict" => Ok(FieldValidation::Strict),
        other => Err(ApiError::bad_request(format!(
            "fieldValidation: Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
        ))),
    }
}
