//! Packs the texts that `tr` prints or writes as a whole: the page's program and style, and the schemas. Unpacked they
//! would be 0.3 MB of it.

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
