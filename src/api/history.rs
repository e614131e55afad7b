//! The names by which `condor_history` reaches the operator's history: port, headers, and the Secret's key.

/// The name of the Service's port.
pub const PORT: &str = "history";
/// The header in which a reader shows the token.
pub const TOKEN_HEADER: &str = "x-slotwright-token";
/// The header of a refusal that names the Secret which has the token. Anybody who may read that Secret may read the history.
pub const TOKEN_SECRET_HEADER: &str = "x-slotwright-token-secret";
/// The key of the token in that Secret.
pub const TOKEN_KEY: &str = "token";
