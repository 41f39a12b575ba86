//! Limits of a trace. A reader refuses a frame that exceeds one before it allocates memory;
//! a writer stays below all of them.

/// Most events of one scheduling frame.
pub const SCHED_EVENTS: u64 = 1 << 15;
/// Most bytes of a scheduling frame's body after decompression, besides those of its events.
pub const SCHED_BODY: u64 = 64;
/// Most bytes of a scheduling frame's body for each of its events.
pub const SCHED_BODY_EVENT: u64 = 32;
/// Most events of one lifecycle or recorder frame.
pub const LIFE_EVENTS: u64 = 1 << 16;
/// Most columns of one lifecycle or recorder frame.
pub const LIFE_COLUMNS: u64 = 1 << 10;
/// Most bytes of one frame's payload as it is stored.
pub const PAYLOAD: u64 = 16 << 20;
/// Most bytes of one frame's body after decompression.
pub const BODY: u64 = 32 << 20;
/// Most bytes of the body of metadata or summary.
pub const SECTION_BODY: u64 = 8 << 20;
/// Most fields of metadata or summary.
pub const SECTION_FIELDS: u64 = 1 << 10;
/// Longest argv of an event in bytes. The writer cuts a longer one and keeps its true length.
pub const ARGV: usize = 8 << 20;
/// Longest path or name of an event in bytes. The writer cuts a longer one.
pub const NAME: usize = 64 << 10;
/// Most bytes of all strings of one lifecycle frame's events together.
pub const STRINGS: u64 = 24 << 20;
/// Most sums of system calls of one lifecycle frame.
pub const CALLS: u64 = 1 << 16;
/// Most new stacks and functions of one lifecycle frame.
pub const STACKS: u64 = 1 << 20;
/// Most bytes of a frame's header after the length byte.
pub const HEADER: u64 = 255;
/// Most frames of a trace. A reader keeps some 200 bytes for each.
pub const FRAMES: u64 = 1 << 24;
/// Most entries of one index frame; a longer index is several frames.
pub const INDEX_ENTRIES: u64 = 1 << 16;
/// Largest expansion of a body by decompression, plus [`EXPANSION_FREE`].
pub const EXPANSION: u64 = 256;
/// Bytes that any body may have.
pub const EXPANSION_FREE: u64 = 1 << 16;
/// Smallest frame: its header with one byte for each field.
pub const LEAST_FRAME: u64 = 21;
/// Most damaged places of a trace.
pub const DAMAGES: u64 = 1 << 16;
/// Bytes of damaged payloads, beyond the file's length, after which the walk trusts headers
/// without a search inside the payload.
pub const IN_VAIN: u64 = 64 << 20;
/// Events that a writer puts into a scheduling block before it closes it.
pub const BLOCK_EVENTS: usize = 1 << 14;
/// Bytes of strings and events that a writer collects in a lifecycle block
/// before it closes it; four times as many of functions, whose names repeat. So many bytes of any
/// kind are within the limits above.
pub const BLOCK_BYTES: usize = 512 << 10;
/// Bytes of a piped trace that are kept in memory; the rest goes to an unnamed
/// temporary file.
pub const PIPE_MEMORY: usize = 64 << 20;
/// Bytes of a piped trace. The pipe of a stranger may never end, and the temporary file's
/// directory is often memory.
pub const PIPE_BYTES: u64 = 4 << 30;
