//! A recording session: forks a process for COMMAND, starts a source of events, releases COMMAND, drains the source
//! and writes the trace. Other crates analyze it.
//!
//! The main modules, from the lowest to the highest; each uses only those of them that come before it: `error`,
//! `inherited`, `config` and `proc`; the trait `source::Source`; the sources of events (a folder for each method of
//! recording) with `targets`; `source::choose`, which chooses a source; the writer, in `output` and `queue`;
//! `collector`, which passes events from the source to the writer; `endings` and `stall`, which wait for the end; and
//! `session`, which runs the whole recording from `record()` to the [`Report`].

mod capabilities;
mod collector;
mod command;
mod config;
mod containers;
mod disks;
pub mod doctor;
mod endings;
mod error;
mod free_space;
mod guard;
pub mod hang;
mod header;
mod host;
mod identity;
mod inherited;
mod last_events;
mod machine;
mod mappings;
mod marks;
mod memory;
mod network;
mod output;
mod pace;
mod parts;
mod passing;
mod proc;
mod queue;
mod quotas;
mod rescue;
mod scripts;
mod session;
mod signals;
mod size;
mod source;
mod stacks;
mod stall;
pub mod symbols;
mod targets;
mod untraced;
mod urgency;
mod waiter;
mod watcher;

pub use command::find;
pub use config::{
    buffer_sizes, Choice, CommandSettings, Config, Containers, FactSettings, Follow, Limits,
    MaskSettings, MethodSettings, Notice, Notices, Rotation, Scope, TraceFile,
};
pub use error::{Error, SudoRefusal};
pub use host::is_same_boot;
pub use identity::user_name;
pub use inherited::Inherited;
pub use marks::Count as MarkCount;
pub use output::Tally;
pub use parts::{Cut, WrittenParts};
pub use proc::Alive;
pub use rescue::Child;
pub use scripts::{ScriptFinder, SourcedFiles};
pub use session::{record, Report};
pub use source::bpf::loader::serve as serve_as_loader;
pub use source::bpf::sudo::LOADER;
pub use stall::{LIMIT, LONG_WAIT};
pub use tr_output::Target;
pub use untraced::{run_untraced, Untraced};
pub use waiter::{end_like, wait_for};
pub use watcher::{Watcher, Watching};
