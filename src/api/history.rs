//! How readers reach the history, which the operator keeps: words that it and `condor_history` agree on.

/// The name of the Service's port.
pub const PORT: &str = "history";
/// The header in which a reader shows the token.
pub const TOKEN_HEADER: &str = "x-slotwright-token";
/// The header of a refusal that names the Secret which has the token. Who may read that Secret may read the history.
pub const TOKEN_SECRET_HEADER: &str = "x-slotwright-token-secret";
/// The key of the token in that Secret.
pub const TOKEN_KEY: &str = "token";
