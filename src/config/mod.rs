//! HTCondor's configuration language and the knobs that are honoured.
