//! UnifyPort deliveries: signed HTTP requests that are pushed to us.
//!
//! A delivery is judged in this order: [`signature`] over the bytes as they came, [`timestamp`]
//! against the tolerance, and only then [`envelope`], because nothing in a body means anything
//! before its signature holds.

pub mod envelope;
pub mod signature;
pub mod timestamp;
