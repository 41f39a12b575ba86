//! Gives the frames of recorded stacks the names of their functions.

use std::collections::HashMap;

use tr_analyze::stacks::Stacks;
use tr_format::stack::{Module, Place};

use tr_text::escape;
use tr_text::units::hex;

/// The name of a function in a recorded stack, or other words if the name is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The name of the function. If the function is not known, the name of its file in brackets, `[kernel]` or
    /// `[unknown]` stands here.
    pub function: String,
    /// The name of the program or library that contains the function, or `kernel`. The name is empty for code that is
    /// in no file.
    pub binary: String,
}

/// The names of the functions in a recording's stacks, each with a number.
#[derive(Debug)]
pub struct Names<'a> {
    stacks: &'a Stacks,
    names: Vec<Name>,
    numbers: HashMap<Name, usize>,
    /// For each frame of the recorded stacks, the numbers of its functions, the innermost function first.
    frames: HashMap<u32, Vec<usize>>,
}

impl<'a> Names<'a> {
    pub fn new(stacks: &'a Stacks) -> Names<'a> {
        Names {
            stacks,
            names: Vec::new(),
            numbers: HashMap::new(),
            frames: HashMap::new(),
        }
    }

    /// The numbers of the functions in a recorded stack, the innermost function first. Inlined functions are included.
    pub fn of_stack(&mut self, stack: u32) -> Vec<usize> {
        let stacks = self.stacks;
        let mut all = Vec::new();
        for frame in stacks.frames(stack) {
            all.extend_from_slice(self.of_frame(frame));
        }
        all
    }

    /// The numbers of the functions in one frame of a stack, the innermost function first. All functions except the
    /// last one are inlined into the last one.
    pub fn of_frame(&mut self, frame: u32) -> &[usize] {
        if !self.frames.contains_key(&frame) {
            let numbers = self.find(frame);
            self.frames.insert(frame, numbers);
        }
        self.frames.get(&frame).map_or(&[], |all| all)
    }

    /// The number of the innermost user-mode function of a recorded stack; `None` if the stack has only functions of
    /// the kernel.
    pub fn in_user_mode(&mut self, stack: u32) -> Option<usize> {
        let stacks = self.stacks;
        let mut frames = stacks.frames(stack);
        let user = |frame: &u32| !matches!(stacks.place(*frame), Some(Place::Kernel(_)));
        let frame = frames.find(user)?;
        self.of_frame(frame).first().copied()
    }

    /// The name of the function with this number.
    pub fn name(&self, number: usize) -> Option<&Name> {
        self.names.get(number)
    }

    fn find(&mut self, frame: u32) -> Vec<usize> {
        let place = self.stacks.place(frame);
        let binary = self.binary(place);
        let functions = self.stacks.functions(frame);
        let mut names: Vec<Name> = functions
            .iter()
            .rev()
            .map(|function_name| Name {
                function: escape::raw(&function_name.name),
                binary: binary.clone(),
            })
            .collect();
        if names.is_empty() {
            let function = match binary.as_str() {
                "" => "[unknown]".to_owned(),
                binary => format!("[{binary}]"),
            };
            names.push(Name { function, binary });
        }
        names.into_iter().map(|name| self.number(name)).collect()
    }

    fn number(&mut self, name: Name) -> usize {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.names.len();
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    fn binary(&self, place: Option<Place>) -> String {
        match place {
            Some(Place::Kernel(_)) => "kernel".to_owned(),
            Some(Place::Module(number, _)) => self
                .stacks
                .modules
                .get(&number)
                .map_or_else(String::new, of_module),
            Some(Place::Process(..)) | None => String::new(),
        }
    }
}

/// The name of a program or library file that contains code. If the path of the file is not known, the result is the
/// beginning of the file's build id.
fn of_module(module: &Module) -> String {
    match module.path.rsplit(|byte| *byte == b'/').next() {
        Some(name) if !name.is_empty() => escape::raw(name),
        _ => {
            let id = module.build_id.iter().take(4);
            format!("build id {}…", hex(id))
        }
    }
}
