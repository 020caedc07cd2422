//! The tables that the build script generates from `td/`.

include!(concat!(env!("OUT_DIR"), "/mc.rs"));
