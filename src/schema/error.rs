//! Errors with the words of Kubernetes: field errors (422), their `Status` causes, and patch errors.

use std::fmt;

use serde_json::{Value, json};

/// The class of a [`FieldError`], as `StatusCause.reason` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldErrorKind {
    /// `FieldValueRequired`: "Required value".
    Required,
    /// `FieldValueInvalid`: "Invalid value".
    Invalid,
    /// `FieldValueTypeInvalid`: "Invalid value", for a value of the wrong JSON type.
    TypeInvalid,
    /// `FieldValueNotSupported`: "Unsupported value".
    NotSupported,
    /// `FieldValueDuplicate`: "Duplicate value".
    Duplicate,
    /// `FieldValueForbidden`: "Forbidden".
    Forbidden,
    /// `FieldValueTooLong`: "Too long".
    TooLong,
    /// `FieldValueTooMany`: "Too many".
    TooMany,
}

impl FieldErrorKind {
    /// The `reason` of a `StatusCause`.
    fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    /// The first words of a message of this kind.
    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// An error of one field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The class of the error.
    pub kind: FieldErrorKind,
    /// The path of the field, such as `spec.template.containers[0].name`; `<nil>` for the root.
    pub field: String,
    /// The message without the field, such as `Invalid value: 0: must be positive`.
    pub message: String,
}

impl FieldError {
    /// An error without a bad value: `Required value`, or `Required value: detail`.
    pub fn new(kind: FieldErrorKind, field: impl Into<String>, detail: &str) -> Self {
        let message =
            if detail.is_empty() { kind.title().to_owned() } else { format!("{}: {detail}", kind.title()) };
        Self { kind, field: field.into(), message }
    }

    /// An error with the bad value, which is written as JSON: `Invalid value: 0: detail`.
    pub fn with_value(kind: FieldErrorKind, field: impl Into<String>, bad: &Value, detail: &str) -> Self {
        let mut message = format!("{}: {}", kind.title(), bad);
        if !detail.is_empty() {
            message.push_str(": ");
            message.push_str(detail);
        }
        Self { kind, field: field.into(), message }
    }

    /// The `StatusCause` of this error: `{reason, message, field}`.
    fn cause(&self) -> Value {
        json!({ "reason": self.kind.reason(), "message": self.message, "field": self.field })
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// The errors as `Status.details.causes`.
pub fn causes(errors: &[FieldError]) -> Value {
    Value::Array(errors.iter().map(FieldError::cause).collect())
}

/// The message of a 422 `Status`: `HTCJob.x "a" is invalid: ...`. Several errors are in brackets, and equal errors appear
/// once.
///
/// `kind` is `Kind.group`, or `Kind` in the core group.
pub fn invalid_message(kind: &str, name: &str, errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let all = match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    format!("{kind} {name:?} is invalid: {all}")
}

/// Why a patch could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400 `BadRequest`: the patch itself is malformed.
    #[error("{0}")]
    BadRequest(String),
    /// 422 `Invalid`: the patch is well-formed, but does not fit the object.
    #[error("{0}")]
    Unprocessable(String),
    /// 415 `UnsupportedMediaType`: the resource does not accept this kind of patch.
    #[error("{0}")]
    UnsupportedMediaType(String),
}

impl PatchError {
    /// The HTTP status code of the answer.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Unprocessable(_) => 422,
            Self::UnsupportedMediaType(_) => 415,
        }
    }

    /// `Status.reason` of the answer.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "BadRequest",
            Self::Unprocessable(_) => "Invalid",
            Self::UnsupportedMediaType(_) => "UnsupportedMediaType",
        }
    }

    /// The error for a body whose media type is not one of `accepted`.
    pub fn unsupported(accepted: &[&str]) -> Self {
        Self::UnsupportedMediaType(format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        ))
    }
}
