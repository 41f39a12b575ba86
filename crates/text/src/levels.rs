//! Draws the lines that join the nodes of a tree in text.

use crate::style::Style;

/// The place of a line in a tree that is printed as text. This place decides which joining lines are drawn before the
/// node's name.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// The depth of the printed node in the tree. A root has depth 1.
    depth: usize,
    /// For the printed node and its nearest ancestors, whether a sibling follows further below. The last entry belongs
    /// to the node itself.
    last: Vec<bool>,
}

impl Levels {
    /// The largest number of levels of a printed tree for which joining lines are drawn. No screen has
    /// room for more.
    const KEPT: usize = 64;

    /// The place of a child of this node in the printed tree. `more` is whether further children of the
    /// node follow that child.
    pub fn below(&self, more: bool) -> Levels {
        let kept = self.last.len().saturating_sub(Levels::KEPT - 1);
        let mut last = self.last.get(kept..).unwrap_or_default().to_vec();
        last.push(more);
        Levels {
            depth: self.depth + 1,
            last,
        }
    }

    /// The line-drawing characters that join a node of a printed tree to its ancestors. The lines of the levels above
    /// the node take at most `room` columns, but at least two levels are drawn. If the node is deeper, only the last
    /// levels are drawn, after a mark of 3 columns. The node's own level takes 3 columns more.
    pub fn joints(&self, room: usize, style: &Style) -> String {
        let [through, none, branch, end, cut] = if style.ascii {
            ["|  ", "   ", "|- ", "`- ", ".. "]
        } else {
            ["│  ", "   ", "├─ ", "└─ ", "⋯  "]
        };
        let (Some((own, above)), 2..) = (self.last.split_last(), self.depth) else {
            return String::new();
        };
        // No lines are drawn for the level of the roots, and the node's own level is drawn separately.
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
