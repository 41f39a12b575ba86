//! Makes `tables.txt` from recordings. Not part of the format: only its result
//! is. Run it only for a new major version.

use super::encode::Encoder;
use super::model::{EXPECTED, NO_TASK, OP_TABLES, STEPS, TASK_TABLES};
use super::tables::{digit, symbols, TABLES};
use crate::sched::{Open, Rest};

/// A frame has a say in a table of at most this many symbols.
const SAY: f64 = 100.0;
/// Larger frames bring their own tables, and have a tenth of a say.
const SMALL: usize = 4000;

/// The file's text for these weights.
fn text(sums: &[[f64; STEPS]]) -> String {
    let mut out =
        String::from("# The tables: a line each, a digit for each symbol. See FORMAT.md.\n");
    for kind in [
        0..OP_TABLES,
        OP_TABLES..OP_TABLES + NO_TASK,
        OP_TABLES + NO_TASK..OP_TABLES + TASK_TABLES,
        OP_TABLES + TASK_TABLES..TABLES,
    ] {
        let mut all = [0.0; STEPS];
        for table in sums.get(kind.clone()).unwrap() {
            for (all, sum) in all.iter_mut().zip(table) {
                *all += sum;
            }
        }
        let whole: f64 = all.iter().sum::<f64>().max(1.0);
        for at in kind {
            let total: f64 = sums[at].iter().sum();
            // A little of the whole, for tables that have seen little.
            let share =
                |symbol: usize| (sums[at][symbol] + 10.0 * all[symbol] / whole) / (total + 10.0);
            let most = (0..symbols(at)).map(share).fold(0.0, f64::max);
            for symbol in 0..symbols(at) {
                let digit = match at.checked_sub(OP_TABLES + NO_TASK) {
                    Some(..4) => 31 * u8::from(symbol == usize::from(EXPECTED)),
                    _ => digit((share(symbol) / most).max(1e-9), 31),
                };
                out.push(char::from_digit(digit.into(), 32).unwrap());
            }
            out.push('\n');
        }
    }
    out
}

/// Raw records of 24 bytes: frame (4), time (8), from (4), to (4), state (2),
/// flags (1), 0.
fn blocks(raw: &[u8]) -> Vec<Open> {
    let mut blocks: Vec<Open> = Vec::new();
    let mut last = None;
    for record in raw.chunks_exact(24) {
        let int = |at: usize, len: usize| {
            let bytes = record[at..at + len].iter().rev();
            bytes.fold(0u64, |value, byte| value << 8 | u64::from(*byte))
        };
        if last.replace(int(0, 4)) != Some(int(0, 4)) {
            blocks.push(Open::default());
        }
        let block = blocks.last_mut().unwrap();
        block.time.push(int(4, 8));
        block.rest.push(Rest {
            from: int(12, 4) as u32,
            to: int(16, 4) as u32,
            state: int(20, 2) as u16,
            flags: int(22, 1) as u8,
        });
    }
    blocks
}

#[test]
#[ignore = "makes tables.txt: RAW='a.raw b.raw' OUT=tables.txt cargo test -p tr-format train -- --ignored"]
fn train() {
    let mut sums = vec![[0.0; STEPS]; TABLES];
    for path in std::env::var("RAW").unwrap().split_whitespace() {
        let mut encoder = Encoder::new();
        let blocks = blocks(&std::fs::read(path).unwrap());
        let mut mine = vec![[0.0; STEPS]; TABLES];
        for block in &blocks {
            encoder.encode(block, *block.time.iter().min().unwrap(), &mut Vec::new());
            for (sums, counts) in mine.iter_mut().zip(encoder.counts()) {
                let total = f64::from(counts.iter().sum::<u32>());
                let say = if block.len() < SMALL { 1.0 } else { 0.1 };
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum += say * f64::from(*count) * SAY.min(total) / total.max(1.0);
                }
            }
        }
        for (sums, mine) in sums.iter_mut().zip(&mine) {
            for (sum, mine) in sums.iter_mut().zip(mine) {
                *sum += mine;
            }
        }
    }
    std::fs::write(std::env::var("OUT").unwrap(), text(&sums)).unwrap();
}
