//! What the product promises, proven on the real binary with real stores and sockets, while
//! processes are killed, disks fill up and clients misbehave.

mod boundary;
mod canary;
mod disk;
mod drain;
mod effect;
mod fleet;
mod hang_up;
mod load;
mod outage;
mod random_kill;
mod reload;
mod sync;
mod wire;
