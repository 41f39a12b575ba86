//! The commands of a script in the order of its text.

use super::tree::{Command, CommandIx, Outline, Tree};

impl Outline {
    /// The simple commands in the order of the text, without the commands that only expand words. The redirections of a
    /// compound command count as a command without words.
    pub fn in_order(&self) -> Vec<&Command> {
        let mut places = Vec::new();
        self.collect(&self.body, &mut places);
        let commands = places.into_iter();
        commands.filter_map(|ix| self.commands.get(ix)).collect()
    }

    /// Appends the places of the simple commands in a tree.
    pub(super) fn collect(&self, tree: &Tree, places: &mut Vec<CommandIx>) {
        match tree {
            Tree::Simple(ix) => places.push(*ix),
            Tree::List(all) => all.iter().for_each(|tree| self.collect(tree, places)),
            Tree::Pipe { members, .. } => {
                members.iter().for_each(|tree| self.collect(tree, places));
            }
            Tree::Chain(all) => all.iter().for_each(|(_, tree)| self.collect(tree, places)),
            Tree::Background(body) | Tree::Subshell(body) => self.collect(body, places),
            Tree::If { arms, otherwise } => {
                for arm in arms {
                    self.collect(&arm.condition, places);
                    self.collect(&arm.body, places);
                }
                if let Some(otherwise) = otherwise {
                    self.collect(otherwise, places);
                }
            }
            Tree::Loop { arm, .. } => {
                self.collect(&arm.condition, places);
                self.collect(&arm.body, places);
            }
            Tree::For { body, .. } => self.collect(body, places),
            Tree::Case { arms, .. } => arms.iter().for_each(|arm| self.collect(&arm.body, places)),
            Tree::Redirected { words, body } => {
                self.collect(body, places);
                places.push(*words);
            }
            Tree::Function(ix) => {
                if let Some(function) = self.functions.get(*ix) {
                    self.collect(&function.body, places);
                }
            }
        }
    }
}
