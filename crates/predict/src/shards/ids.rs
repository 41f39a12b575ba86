//! Finds the names by which test runners can be asked to run certain tests, from the names in JUnit reports.

use std::collections::HashMap;

use tr_insight::steps::Steps;
use tr_placing::junit::cases::dotted;
use tr_placing::junit::{Case, Suite};
use tr_programs::steps::StepKind;

/// The file-name extensions of test files. If a name in a JUnit report ends with one of them, it is a path.
const SUFFIXES: [&str; 10] = [
    ".js", ".ts", ".jsx", ".tsx", ".mjs", ".mts", ".cjs", ".cts", ".py", ".rb",
];

/// Whether a name is the path of a test file that a test runner can be asked to run.
pub fn is_path(name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// The file in which a test of a JUnit report is: the report names it, or the name of the test's class or suite is a
/// path, or pytest's class name contains the module.
pub fn file(suite: &Suite, case: &Case) -> Option<String> {
    let own = case
        .attributes
        .file
        .as_ref()
        .or(suite.attributes.file.as_ref());
    let names = [&case.attributes.class, &suite.attributes.name];
    let path = || names.into_iter().find(|name| is_path(name));
    let class = &case.attributes.class;
    let spelled = if class.is_empty() {
        &case.attributes.name
    } else {
        class
    };
    let module = || Some(module(spelled)?.0);
    own.or_else(path).cloned().or_else(module)
}

/// The file of the module in pytest's name of a class, and the classes in that module: `tests.test_a.TestB` gives
/// `tests/test_a.py` and `TestB`. The module is the last part that is named like a test file by pytest's defaults.
fn module(class: &str) -> Option<(String, Vec<&str>)> {
    let parts: Vec<&str> = class.split('.').collect();
    let is_module = |part: &&str| part.starts_with("test_") || part.ends_with("_test");
    let last = parts.iter().rposition(is_module)?;
    let (path, classes) = parts.split_at_checked(last + 1)?;
    Some((format!("{}.py", path.join("/")), classes.to_vec()))
}

/// Like [`module`], but for a module that is not named like a test file: `tests.__main__.TestB` gives
/// `tests/__main__.py` and `TestB`. The first part that begins with an upper-case letter is taken for a class.
fn module_by_case(class: &str) -> Option<(String, Vec<&str>)> {
    let parts: Vec<&str> = class.split('.').collect();
    let is_class = |part: &&str| part.starts_with(char::is_uppercase);
    let end = parts.iter().position(is_class).unwrap_or(parts.len());
    let (path, classes) = parts.split_at_checked(end)?;
    let path = path.join("/");
    (!path.is_empty()).then(|| (format!("{path}.py"), classes.to_vec()))
}

/// The node ids of pytest that occur as marks in a recording, found by the names that JUnit reports use for the tests.
/// pytest makes the node ids, and puts `::` between their parts.
pub struct Nodes(HashMap<String, String>);

impl Nodes {
    pub fn new(steps: &Steps) -> Nodes {
        let tests = steps.list().iter();
        let tests =
            tests.filter(|step| step.kind == StepKind::Test && step.name.whole().contains("::"));
        Nodes(
            tests
                .map(|step| (dotted(step.name.whole()), step.name.whole().to_owned()))
                .collect(),
        )
    }

    /// The name by which a test runner can run this test of a JUnit report alone: a node id for pytest, the test's own
    /// name for other runners.
    pub fn id(&self, suite: &Suite, case: &Case) -> String {
        let (class, name) = (&case.attributes.class, &case.attributes.name);
        let marked = self.0.get(&dotted(&format!("{class}.{name}")));
        if let Some(node) = marked {
            return node.clone();
        }
        let file = case
            .attributes
            .file
            .as_ref()
            .or(suite.attributes.file.as_ref());
        let file = file.filter(|file| file.ends_with(".py"));
        let (path, classes) = match (file, module(class)) {
            // pytest reports a module that it skipped or could not read without a class, and with the module as the
            // name.
            (None, None) if class.is_empty() => {
                let path = module(name).filter(|(_, classes)| classes.is_empty());
                return path.map_or_else(|| name.clone(), |(path, _)| path);
            }
            (None, None) => return name.clone(),
            (None, Some(module)) => module,
            (Some(file), module) => {
                let of_file = file.trim_end_matches(".py").replace('/', ".");
                if class.is_empty() && *name == of_file {
                    return file.clone();
                }
                let in_file = class.strip_prefix(&of_file);
                let module = module.or_else(|| match in_file {
                    None => module_by_case(class),
                    Some(_) => None,
                });
                match (in_file, module) {
                    // If a class inherits a test, the reported file is that of the base class. The node id of the test
                    // begins with the file of the inheriting class. So the path is made from the module in the class's
                    // name.
                    (None, Some(module)) if !file.ends_with(&module.0) => module,
                    (None, Some((_, classes))) => (file.clone(), classes),
                    (rest, _) => {
                        let classes = rest.unwrap_or_default().split('.');
                        (
                            file.clone(),
                            classes.filter(|part| !part.is_empty()).collect(),
                        )
                    }
                }
            }
        };
        let parts = std::iter::once(path.as_str()).chain(classes);
        let parts = parts.chain(std::iter::once(name.as_str()));
        parts.collect::<Vec<&str>>().join("::")
    }
}
