//! Limits of a trace. A reader refuses a frame that exceeds a limit before it allocates memory for it; a
//! writer stays below all limits.

/// The largest number of events in one scheduling frame.
pub const SCHED_EVENTS: u64 = 1 << 15;
/// The largest length in bytes of a scheduling frame's body after decompression, apart from
/// [`SCHED_BODY_EVENT`] bytes for each event.
pub const SCHED_BODY: u64 = 64;
/// The largest number of bytes in a scheduling frame's body for each of its events.
pub const SCHED_BODY_EVENT: u64 = 32;
/// The largest number of events in one lifecycle or recorder frame.
pub const LIFE_EVENTS: u64 = 1 << 16;
/// The largest number of columns in one lifecycle or recorder frame.
pub const LIFE_COLUMNS: u64 = 1 << 10;
/// The largest length in bytes of one frame's payload as it is stored.
pub const PAYLOAD: u64 = 16 << 20;
/// The largest length in bytes of one frame's body after decompression.
pub const BODY: u64 = 32 << 20;
/// The largest length in bytes of the body of the metadata or the summary.
pub const SECTION_BODY: u64 = 8 << 20;
/// The largest number of fields in the metadata or the summary.
pub const SECTION_FIELDS: u64 = 1 << 10;
/// The longest argv of an event in bytes. The writer cuts a longer one and stores its true length.
pub const ARGV: usize = 8 << 20;
/// The longest path or name of an event in bytes. The writer cuts a longer one.
pub const NAME: usize = 64 << 10;
/// The largest number of scripts in a summary.
pub const SCRIPTS: u64 = 256;
/// The longest text of a script in bytes. A longer one is left out as a whole.
pub const SCRIPT: u64 = 64 << 10;
/// The largest number of bytes of the texts of all scripts together.
pub const SCRIPT_BYTES: u64 = 1 << 20;
/// The largest number of bytes of all strings of one lifecycle frame's events together.
pub const STRINGS: u64 = 24 << 20;
/// The largest number of sums of system calls in one lifecycle frame.
pub const CALLS: u64 = 1 << 16;
/// The largest number of new stacks and functions in one lifecycle frame.
pub const STACKS: u64 = 1 << 20;
/// The largest length in bytes of a frame's header after the length byte.
pub const HEADER: u64 = 255;
/// The largest number of frames in a trace. A reader keeps about 200 bytes for each frame.
pub const FRAMES: u64 = 1 << 24;
/// The largest number of entries in one index frame. A longer index is several frames.
pub const INDEX_ENTRIES: u64 = 1 << 16;
/// The largest factor by which decompression may expand a body, apart from [`EXPANSION_FREE`] bytes.
pub const EXPANSION: u64 = 256;
/// The number of bytes that every body may have after decompression, however short its payload is.
pub const EXPANSION_FREE: u64 = 1 << 16;
/// The length of the smallest frame in bytes: a header with one byte for each field.
pub const LEAST_FRAME: u64 = 21;
/// The largest number of damaged places in a trace.
pub const DAMAGES: u64 = 1 << 16;
/// The number of bytes of damaged payloads, in addition to the file's length, that a walk searches for
/// frames. After that, the walk trusts headers and does not search inside payloads.
pub const IN_VAIN: u64 = 64 << 20;
/// The number of events that a writer puts into a scheduling block before it closes the block.
pub const BLOCK_EVENTS: usize = 1 << 14;
/// The number of bytes of strings and events that a writer collects in a lifecycle block before it closes
/// the block. A block with functions may have four times as many, because their names repeat. That many
/// bytes of any kind of event are within the limits above.
pub const BLOCK_BYTES: usize = 512 << 10;
/// The number of bytes of a piped trace that are kept in memory. The rest goes to an unnamed temporary
/// file.
pub const PIPE_MEMORY: usize = 64 << 20;
/// The largest length of a piped trace in bytes. A pipe may never end, and the directory of temporary
/// files is often in memory.
pub const PIPE_BYTES: u64 = 4 << 30;
