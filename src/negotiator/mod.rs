//! The negotiator: accountant, group quotas, pie spin, candidates.
