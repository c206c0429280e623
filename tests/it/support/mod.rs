//! What the tests stand on: real processes, real databases, real disks. No mocks of our own code.

pub(crate) mod child;
pub(crate) mod condition;
pub(crate) mod delivery;
pub(crate) mod disk;
pub(crate) mod event_stream;
pub(crate) mod http;
pub(crate) mod imports;
pub(crate) mod output;
pub(crate) mod place;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod test_dir;
pub(crate) mod trace;
