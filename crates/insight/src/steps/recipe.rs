//! Finds recipes of make and ninja that become steps although they run no known program, such as a compiler. The step
//! is named after the target that the recipe makes.

use tr_analyze::model::{Analysis, Process};
use tr_programs::job_tools::Starts;
use tr_programs::recipes;
use tr_programs::rules;
use tr_programs::steps::StepName;
use tr_programs::table;

/// The length in nanoseconds of the shortest recipe of make or ninja that is a step. Every build has many shorter ones
/// (`mkdir`, `rm`, `touch`). A guess: with a smaller limit, such recipes would fill the list of steps.
const SHORTEST_RECIPE: u64 = 20_000_000;
/// The largest number of processes of one recipe that are examined for the name of its step.
const MOST_LINES: usize = 64;

/// The name of the step for a recipe of make or ninja. `None` if half or more of the recipe's time is spent in programs
/// that are steps by themselves, if the recipe is short, or if it has many processes. `process` is the child that runs
/// the recipe.
pub(super) fn name(analysis: &Analysis, process: &Process) -> Option<StepName> {
    let wall = process.wall();
    if wall < SHORTEST_RECIPE || !is_recipe(analysis, process) {
        return None;
    }
    // The sum of the times of the steps inside the recipe. Steps may overlap, so the sum may exceed the recipe's time.
    let mut steps = 0u64;
    let mut open = vec![process];
    let mut seen = 0;
    while let Some(at) = open.pop() {
        seen += 1;
        if seen > MOST_LINES {
            return None;
        }
        let step = at.execs.iter().find(|exec| {
            let args: Vec<&[u8]> = exec.argv.args().collect();
            rules::step(&args).is_some()
        });
        if let Some(step) = step {
            steps = steps.saturating_add(step.wall());
            continue;
        }
        open.extend(at.children.iter().map(|ix| analysis.process(*ix)));
    }
    let little = steps.saturating_mul(2) < wall;
    let args: Vec<&[u8]> = process.execs.first()?.argv.args().collect();
    little.then(|| recipes::name(&args))?
}

/// Whether make or ninja started the process to run a recipe.
fn is_recipe(analysis: &Analysis, process: &Process) -> bool {
    let parent = process.parent.map(|ix| analysis.process(ix));
    let starts = |parent: &Process| {
        let execs = parent.execs.iter().rev();
        let exec = execs.into_iter().find(|exec| exec.start <= process.start)?;
        let tool = table::by_path(exec.argv.args().next()?)?;
        Some(tool.jobs?.starts? == Starts::Needs)
    };
    parent.and_then(starts) == Some(true)
}
