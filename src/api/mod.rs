//! The custom resources of group `slotwright.dev`, version `v1alpha1`: one file a kind, types only.
