//! Containers: the processes of their runtimes, their names, and why they are recorded; servers.

use std::sync::Arc;

use serde::Serialize;

use crate::codec::{Codec, Col, Step, Stored, Text};
use crate::ids::{Ktime, Tgid, Tid};
use crate::show;

named! {
    /// Why the process of a container's runtime is recorded.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Evidence {
        /// It is a descendant of a recorded task.
        #[default]
        Descendant = "descendant",
        /// A daemon had told a recorded client the container's id.
        Told = "told",
        /// A daemon had answered a recorded client, and no other client of a daemon was known. Earlier
        /// versions recorded such containers.
        Only = "only",
        /// A daemon had answered a recorded client; the container can be another client's. Earlier
        /// versions recorded such containers.
        Ambiguous = "ambiguous",
        /// All containers were to be recorded.
        Any = "any",
        /// A recorded process was the only one with a connection to the daemon.
        Inferred = "inferred",
        /// The container is not recorded: a recorded process and others had connections to the daemon.
        NotRecorded = "not-recorded",
    }
}

impl Evidence {
    /// By number, as far as that is known.
    pub fn of(number: u32) -> Option<Evidence> {
        Evidence::ALL.get(number as usize).copied()
    }

    /// Whether nobody has told whose the container is, so that it may be another client's.
    pub fn is_inferred(self) -> bool {
        matches!(
            self,
            Evidence::Only | Evidence::Ambiguous | Evidence::Inferred
        )
    }
}

/// A process of a container's runtime: a shim, runc, conmon. A process has several of these events
/// if what they tell becomes known one after the other. With [`Evidence::NotRecorded`] it is the only
/// event of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Container {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The process that asked a daemon for the container; 0: unknown, or none did.
    pub client: Tgid,
    /// Why the process is recorded.
    #[serde(serialize_with = "show::shown")]
    pub evidence: Evidence,
    /// The container's id; empty: unknown, as are the next ones.
    #[serde(serialize_with = "show::text")]
    pub id: Arc<[u8]>,
    /// Its name.
    #[serde(serialize_with = "show::text")]
    pub name: Arc<[u8]>,
    /// Its image.
    #[serde(serialize_with = "show::text")]
    pub image: Arc<[u8]>,
    /// The time in which a quota of its cgroup has throttled the container so far, in ns, all CPUs
    /// together.
    pub throttled: Option<u64>,
}

impl Stored for Container {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(
            Col::Container,
            Col::Container,
            &mut self.tid,
            &mut self.tgid,
        )?;
        c.narrow(Col::Container, &mut self.client.0)?;
        let mut number = self.evidence as u32;
        c.narrow(Col::Container, &mut number)?;
        // A later version may know more of them.
        self.evidence = Evidence::of(number).unwrap_or(Evidence::Ambiguous);
        for text in [&mut self.id, &mut self.name, &mut self.image] {
            c.text(Text::Container, text)?;
        }
        c.optional(Col::Container, &mut self.throttled)
    }

    fn weight(&self) -> usize {
        size_of_val(self) + self.id.len() + self.name.len() + self.image.len()
    }
}

/// A server has answered a recorded process and is recorded from now on, or it has answered one that
/// is not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Server {
    /// The task that has answered.
    pub tid: Tid,
    /// The server's process.
    pub tgid: Tgid,
    /// The recorded process that has the first answer; 0: none, it is `other`'s.
    pub client: Tgid,
    /// The process that is not recorded; 0: none.
    pub other: Tgid,
}

impl Stored for Server {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::Server, Col::Server, &mut self.tid, &mut self.tgid)?;
        c.narrow(Col::Server, &mut self.client.0)?;
        c.narrow(Col::Server, &mut self.other.0)
    }
}
