//! The agent's sensors of its node: load, memory, disk, and when somebody last used a keyboard.
//!
//! | file | holds |
//! | --- | --- |
//! | `machine` | load average, CPUs, free swap and scratch space, pressure |
//! | `scratch` | [`Scratch`]: the free scratch space, of a file system that may hang |
//! | `meter` | [`LoadMeter`]: the part of the load that the pool's pods cause |
//! | `pace` | [`Pace`]: how many CPUs one pod uses |
//! | `inputs` | [`InputSensor`]: when somebody last used a terminal or the console, from all that follows |
//! | `terminals` | the access times of terminals |
//! | `sessions` | which terminals logind says belong to a seat |
//! | `plug` | the file by which a site says that somebody is there |
//!
//! All paths are handed in, because the agent sees its node's files below a mount such as `/host`. Each file of the kernel's
//! has a parser apart from its reading.

mod inputs;
mod machine;
mod meter;
mod pace;
mod plug;
mod scratch;
mod sessions;
mod terminals;

pub use inputs::{InputPaths, InputSensor, Inputs, Problem};
pub use machine::{LoadAverage, Pressure, cpus, free_swap_kib, load_average, pressure};
pub use meter::LoadMeter;
pub use pace::Pace;
pub use plug::Malformed;
pub use scratch::Scratch;
