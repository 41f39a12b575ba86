//! Writes simulated traces of many runs for benchmarks: RUNS runs of each of SERIES builds, one file for each run.
//!
//! `cargo run --release -p tr-sim --example fleet -- SERIES RUNS DIRECTORY`

use tr_sim::fleet::{FleetRun, Plant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [series, runs, directory] = args.as_slice() else {
        return Err("usage: fleet SERIES RUNS DIRECTORY".into());
    };
    let (series, runs): (u32, u32) = (series.parse()?, runs.parse()?);
    std::fs::create_dir_all(directory)?;
    for series in 0..series {
        let plants = Plant::ALL.len();
        // Each kind of planted change has two series; all other series have no change.
        let plant = Plant::ALL.get(series as usize % plants).copied();
        let plant = plant.filter(|_| (series as usize) < 2 * plants);
        for number in 0..runs {
            let run = FleetRun {
                series,
                number,
                plant: plant.unwrap_or(Plant::Quiet),
                since: runs / 2,
            };
            let file = format!("{directory}/{series:03}-{number:05}.bin");
            std::fs::write(file, run.trace()?)?;
        }
    }
    Ok(())
}
