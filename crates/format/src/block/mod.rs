//! The content of event frames: how events become columns of bytes and back.

mod bits;
pub mod decode;
pub mod encode;
pub mod life;
mod model;
mod rans;
mod shapes;
mod tables;
mod tasks;
mod tick;
mod ticks;
#[cfg(test)]
mod train;

/// The first table of shapes.
const OP: usize = 0;
/// The first table of tasks.
const TASK: usize = OP + model::OP_TABLES;
/// The first table of steps.
const STEP: usize = TASK + model::TASK_TABLES;

/// A column of a fixed length, so that an index that is a number of so many bits
/// needs no check. Memory that is not used is not touched.
pub fn boxed<T: Clone, const N: usize>(zero: T) -> Box<[T; N]> {
    let all = vec![zero; N].into_boxed_slice();
    // It has this length.
    all.try_into().unwrap_or_else(|_| unreachable!())
}

/// The common shapes, for the specification's test.
#[cfg(test)]
pub fn shapes() -> impl Iterator<Item = model::Shape> {
    model::COMMON.into_iter()
}
