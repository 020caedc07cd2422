//! tdgen
