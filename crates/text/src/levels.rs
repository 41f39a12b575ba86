//! The lines that join the nodes of a tree in text.

use crate::style::Style;

/// A line's place in the tree.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// A root has depth 1.
    depth: usize,
    /// For each of the last levels, whether more of its lines follow.
    last: Vec<bool>,
}

impl Levels {
    /// No screen draws more levels.
    const KEPT: usize = 64;

    /// The place of a child; `more`: siblings of the child follow it.
    pub fn below(&self, more: bool) -> Levels {
        let kept = self.last.len().saturating_sub(Levels::KEPT - 1);
        let mut last = self.last.get(kept..).unwrap_or_default().to_vec();
        last.push(more);
        Levels {
            depth: self.depth + 1,
            last,
        }
    }

    /// The lines from a process to its parents; only the last levels of a deep
    /// one.
    pub fn joints(&self, room: usize, style: &Style) -> String {
        let [through, none, branch, end, cut] = if style.ascii {
            ["|  ", "   ", "|- ", "`- ", ".. "]
        } else {
            ["│  ", "   ", "├─ ", "└─ ", "⋯  "]
        };
        let (Some((own, above)), 2..) = (self.last.split_last(), self.depth) else {
            return String::new();
        };
        // The roots' level has no lines.
        let above_count = self.depth - 2;
        let most = (room / 3).max(2).min(above_count).min(above.len());
        let mut out = String::new();
        if most < above_count {
            out.push_str(cut);
        }
        for more in above.get(above.len() - most..).unwrap_or_default() {
            out.push_str(if *more { through } else { none });
        }
        out.push_str(if *own { branch } else { end });
        out
    }
}
