pub mod hist;
pub mod longest_off_cpu;
pub mod off_cpu;
