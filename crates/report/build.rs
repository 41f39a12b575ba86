//! Compresses the texts that `tr` prints or writes as a whole (the script and style of the HTML report, and the JSON
//! Schemas), so that the program does not grow by 0.3 MB.

use std::path::PathBuf;
use std::{env, fs};

const TEXTS: [(&str, &[&str]); 2] = [
    ("web/dist", &["report.js", "report.css"]),
    (
        "schema",
        &[
            "analysis.schema.json",
            "diff.schema.json",
            "event.schema.json",
            "pipeline.schema.json",
            "predict.schema.json",
            "shards.schema.json",
            "summary.schema.json",
        ],
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    for (directory, names) in TEXTS {
        for name in names {
            let text = fs::read(format!("{directory}/{name}"))?;
            let packed = zstd::bulk::compress(&text, 19)?;
            fs::write(out.join(format!("{name}.zst")), packed)?;
        }
        println!("cargo:rerun-if-changed={directory}");
    }
    Ok(())
}
