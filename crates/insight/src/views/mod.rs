pub mod members;
pub mod query;
pub mod view;
