//! The model: ids, resources, machines, slots, claims, jobs, events, effects.
