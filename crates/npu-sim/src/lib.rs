//! npu-sim
