//! The events about containers (the processes of their runtimes, their names, and why they are recorded) and
//! about servers (the processes that answer recorded processes).

use std::sync::Arc;

use serde::Serialize;

use crate::codec::{Codec, Col, Step, Stored, Text};
use crate::ids::{Ktime, Tgid, Tid};
use crate::show;

named! {
    /// The reason why the process of a container's runtime is recorded or not recorded.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Evidence {
        /// The process of the container's runtime (such as runc) is recorded because it is a descendant of a recorded
        /// task.
        #[default]
        Descendant = "descendant",
        /// The container is recorded because a daemon has sent the container's id to a recorded client.
        Told = "told",
        /// The container is recorded because a daemon has answered a recorded client, and no other process was known as
        /// a client of a daemon. Only earlier versions recorded such containers.
        Only = "only",
        /// The container is recorded because a daemon has answered a recorded client, although the container can
        /// belong to another client. Only earlier versions recorded such containers.
        Ambiguous = "ambiguous",
        /// The container is recorded because the user has requested that all containers are recorded.
        Any = "any",
        /// The container is recorded because a recorded process was the only process with a connection to the
        /// daemon that started the container.
        Inferred = "inferred",
        /// The container is not recorded, because both recorded and other processes had connections to the
        /// daemon that started it.
        NotRecorded = "not-recorded",
    }
}

impl Evidence {
    /// The reason for recording a container that is stored as this number; `None` for a number of a later
    /// version.
    pub fn of(number: u32) -> Option<Evidence> {
        Evidence::ALL.get(number as usize).copied()
    }

    /// Whether the container may belong to another client than the recorded one, because no daemon has named the client
    /// that requested the container.
    pub fn is_inferred(self) -> bool {
        matches!(
            self,
            Evidence::Only | Evidence::Ambiguous | Evidence::Inferred
        )
    }
}

/// An event about a process of a container's runtime (a shim, runc, conmon). A process has several of these
/// events if facts about it become known one after the other. An event with [`Evidence::NotRecorded`] is the
/// only event of its process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Container {
    /// The task of the container's runtime that the event is about.
    pub tid: Tid,
    /// The process that the runtime's task belongs to.
    pub tgid: Tgid,
    /// The process that requested the container from a daemon such as dockerd; 0 if there is none or if it is
    /// unknown.
    pub client: Tgid,
    /// Why the process of the container's runtime is recorded.
    #[serde(serialize_with = "show::shown")]
    pub evidence: Evidence,
    /// The container's id; empty if it is unknown. The name and the image are unknown then, too.
    #[serde(serialize_with = "show::text")]
    pub id: Arc<[u8]>,
    /// The container's name; empty if it is unknown.
    #[serde(serialize_with = "show::text")]
    pub name: Arc<[u8]>,
    /// The name of the image that the container was created from; empty if it is unknown.
    #[serde(serialize_with = "show::text")]
    pub image: Arc<[u8]>,
    /// The time for which the CPU quota of the container's cgroup has throttled the container so far, in ns,
    /// summed over all CPUs.
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
        // A later version may have stored a number that is unknown here. Such a number is read as the most doubtful
        // kind of evidence.
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

/// An event: a server process has answered another process, its client. If the client is a recorded process, the server
/// is recorded from now on. The client can also be a process that is not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Server {
    /// The task of the server that has answered.
    pub tid: Tid,
    /// The process of the server that has answered.
    pub tgid: Tgid,
    /// The recorded process that the server has answered; 0 if the server has answered a process that is not recorded
    /// (`other`).
    pub client: Tgid,
    /// The process that got the server's first answer, if that process is not recorded; otherwise 0.
    pub other: Tgid,
}

impl Stored for Server {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::Server, Col::Server, &mut self.tid, &mut self.tgid)?;
        c.narrow(Col::Server, &mut self.client.0)?;
        c.narrow(Col::Server, &mut self.other.0)
    }
}
