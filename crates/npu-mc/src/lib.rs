//! npu-mc
