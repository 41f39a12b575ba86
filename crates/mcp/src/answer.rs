//! Makes answers for an AI agent from the output of a `tr` command, one page at a time, so that no
//! answer is too long.

use std::io::{self, Read};

use serde_json::{json, Value};
use tr_text::escape;

/// The largest lengths in bytes of two texts: `TEXT` for the command's text in an answer to an agent, `ANSWER` for the
/// whole answer. An answer of `ANSWER` bytes has less than 2,000 tokens.
const TEXT: usize = 6_000;
const ANSWER: usize = 7_900;
/// The number of bytes in an answer that are kept free for a command's warnings and other messages. Only half as many
/// bytes of messages are taken, because marks and escapes lengthen them.
const MESSAGE_ROOM: usize = 1_000;

/// A page of a command's output, which is sent to the agent in one answer.
pub struct Page {
    text: String,
    /// The position in the command's output, in bytes, at which the next page begins; `None` if
    /// this is the last page.
    next: Option<u64>,
}

/// Makes the page of the command's output that begins at the byte `from`.
pub fn page(mut output: impl Read, from: u64) -> io::Result<Page> {
    let skipped = io::copy(&mut output.by_ref().take(from), &mut io::sink())?;
    let mut bytes = Vec::new();
    // One byte more is read, which shows whether there is a next page.
    output.take(TEXT as u64 + 1).read_to_end(&mut bytes)?;
    let mut page = Page {
        text: String::new(),
        next: None,
    };
    let mut limit = TEXT;
    loop {
        let length = whole(&bytes, limit);
        let part = bytes.get(..length).unwrap_or_default();
        page.text = marked(&String::from_utf8_lossy(part));
        page.next = (length < bytes.len()).then_some(skipped + length as u64);
        if quoted(&page.text) <= ANSWER - 2 * MESSAGE_ROOM || limit < 100 {
            return Ok(page);
        }
        limit = limit * 3 / 4;
    }
}

/// The length in bytes of the whole lines that fit into a limit. If even the first line is too
/// long, it is the length of the whole characters that fit.
fn whole(bytes: &[u8], limit: usize) -> usize {
    if bytes.len() <= limit {
        return bytes.len();
    }
    let part = bytes.get(..limit).unwrap_or_default();
    let line = part
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map(|at| at + 1);
    line.unwrap_or_else(|| {
        let begins = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
        (1..=limit).rev().find(begins).unwrap_or(limit)
    })
}

/// The length in bytes of a text after it is quoted for JSON.
fn quoted(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |json| json.len())
}

/// A text of a recording for an agent, with a mark at the beginning of each line. By the marks, the agent can
/// distinguish the recorded text from lines that `tr` itself writes.
pub fn marked(text: &str) -> String {
    let text = escape::page(text);
    let lines = text.lines().map(|line| format!("| {line}\n"));
    lines.collect()
}

/// The last bytes of the messages that a command has printed, at most half of `MESSAGE_ROOM`, as text for the agent.
pub fn last(said: &[u8]) -> String {
    let from = said.len().saturating_sub(MESSAGE_ROOM / 2);
    let text = String::from_utf8_lossy(said.get(from..).unwrap_or_default()).into_owned();
    marked(text.trim_end())
}

impl Page {
    /// The MCP result of a tool call: a title line by `tr`, the page of output, and the messages
    /// that the command printed.
    pub fn result(&self, title: &str, said: &[u8], failed: bool) -> Value {
        let mut text = format!("{title}\n{}", self.text);
        if !said.is_empty() {
            text.push_str(&format!("messages:\n{}", last(said)));
        }
        let next = self.next.map(|next| next.to_string());
        if let Some(next) = &next {
            text.push_str(&format!(
                "more: the same call with \"cursor\": \"{next}\"\n"
            ));
        }
        json!({
            "content": [{ "type": "text", "text": text }],
            "isError": failed,
            "_meta": next.map_or(json!({}), |next| json!({ "nextCursor": next })),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The pages that are made of any text add up to that text, and each is short enough.
    #[test]
    fn pages_add_up() {
        let rows: String = (0..3000).map(|n| format!("row {n} \"é\u{1}\"\n")).collect();
        for text in [rows, "é".repeat(20_000), "\"".repeat(9_000), String::new()] {
            let (mut from, mut all) = (0, String::new());
            loop {
                let page = page(text.as_bytes(), from).unwrap();
                let result = page.result("title", b"warning", false);
                assert!(
                    result.to_string().len() <= 8_000,
                    "{}",
                    result.to_string().len()
                );
                all.push_str(&page.text);
                match page.next {
                    Some(next) if next > from => from = next,
                    Some(_) => panic!("no progress at {from}"),
                    None => break,
                }
            }
            let plain = |text: &str| text.replace("| ", "").replace('\n', "");
            assert_eq!(plain(&all), plain(&escape::page(&text)));
        }
    }

    #[test]
    fn no_line_passes_for_ours() {
        let text = marked("a\nmore: \u{1b}[2J\rtitle\n");
        assert!(
            text.lines().all(|line| line.starts_with("| ")) && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
