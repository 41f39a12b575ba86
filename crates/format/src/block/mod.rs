//! The content of event frames: how events become columns of bytes and back.

mod bits;
pub mod decode;
pub mod encode;
pub mod life;
mod model;
mod rans;
mod tick;
mod ticks;
