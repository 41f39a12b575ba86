//! Containers: the processes of their runtimes, their names, and why they are recorded; servers.

use std::sync::Arc;

use serde::Serialize;

use crate::codec::{Codec, Col, Step, Stored, Text};
use crate::ids::{Ktime, Tgid, Tid};
use crate::show;

/// Why the process of a container's runtime is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// It is a descendant of a recorded task.
    #[default]
    Descendant,
    /// A daemon had told a recorded client the container's id.
    Told,
    /// A daemon had answered a recorded client, and no other client of a daemon was known.
    Only,
    /// A daemon had answered a recorded client; the container can be another client's.
    Ambiguous,
    /// All containers were to be recorded.
    Any,
}

impl Evidence {
    /// All of them, in the order of their numbers.
    pub const ALL: [Evidence; 5] = [
        Evidence::Descendant,
        Evidence::Told,
        Evidence::Only,
        Evidence::Ambiguous,
        Evidence::Any,
    ];

    /// By number, as far as that is known.
    pub fn of(number: u32) -> Option<Evidence> {
        Evidence::ALL.get(number as usize).copied()
    }
}

/// A process of a container's runtime: a shim, runc, conmon. A process has several of these events
/// if what they tell becomes known one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Container {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The process that asked a daemon for the container; 0: unknown, or none did.
    pub client: Tgid,
    /// Why the process is recorded.
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
        let Container {
            tid,
            tgid,
            client,
            evidence,
            id,
            name,
            image,
            throttled,
        } = self;
        c.own_task(Col::Container, Col::Container, tid, tgid)?;
        c.narrow(Col::Container, &mut client.0)?;
        let mut number = *evidence as u32;
        c.narrow(Col::Container, &mut number)?;
        // A later version may know more of them.
        *evidence = Evidence::of(number).unwrap_or(Evidence::Ambiguous);
        for text in [id, name, image] {
            c.text(Text::Container, text)?;
        }
        c.optional(Col::Container, throttled)
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
        let Server {
            tid,
            tgid,
            client,
            other,
        } = self;
        c.own_task(Col::Server, Col::Server, tid, tgid)?;
        c.narrow(Col::Server, &mut client.0)?;
        c.narrow(Col::Server, &mut other.0)
    }
}
