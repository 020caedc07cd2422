//! The tables made from `td/` by the build script.

include!(concat!(env!("OUT_DIR"), "/mc.rs"));
