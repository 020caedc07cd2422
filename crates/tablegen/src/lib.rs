//! tablegen
