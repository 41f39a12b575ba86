//! Forecasts: the time that a recorded run takes on another machine, or with changes.
//!
//! The schedule ([`tr_analyze::schedule`]) simulates the run. This crate has the changes that a user
//! requests, and estimates how wrong a forecast may be.
#![forbid(unsafe_code)]

mod assumed;
mod changes;
mod forecast;
mod load;
mod page;
mod predictor;
mod render;
pub mod shards;

pub use forecast::{Forecast, Interval, Knee, NoForecast, ProgramOnPath, Row, Wanted, MOST_CPUS};
pub use page::page;
pub use predictor::Predictor;
