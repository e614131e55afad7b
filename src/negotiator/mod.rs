//! The negotiator: accountant, group quotas, pie spin, candidates.

pub mod accountant;
pub mod groups;

#[cfg(test)]
mod tests;
