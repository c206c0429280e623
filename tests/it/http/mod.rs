//! The HTTP layer against raw sockets: what a client sees on the wire.
mod access;
mod bodies;
mod connections;
mod drain;
mod harness;
