//! Limits of a trace. A reader refuses a frame that exceeds a limit before it allocates memory for it; a
//! writer stays below all limits.

/// The largest number of events in one frame of scheduling events.
pub const SCHED_EVENTS: u64 = 1 << 15;
/// The number of bytes that the decompressed body of a scheduling frame may have in addition to [`SCHED_BODY_EVENT`]
/// bytes for each event.
pub const SCHED_BODY: u64 = 64;
/// The number of bytes that the body of a scheduling frame may have for each of its events.
pub const SCHED_BODY_EVENT: u64 = 32;
/// The largest number of events in one frame of lifecycle events or of the recorder's events.
pub const LIFE_EVENTS: u64 = 1 << 16;
/// The largest number of columns in one frame of lifecycle events or of the recorder's events.
pub const LIFE_COLUMNS: u64 = 1 << 10;
/// The largest length in bytes of a frame's payload, as it is stored in the file.
pub const PAYLOAD: u64 = 16 << 20;
/// The largest length in bytes of a frame's body after decompression.
pub const BODY: u64 = 32 << 20;
/// The largest length in bytes of the body of a trace's metadata or summary.
pub const SECTION_BODY: u64 = 8 << 20;
/// The largest number of fields in a trace's metadata or summary.
pub const SECTION_FIELDS: u64 = 1 << 10;
/// The longest argument vector in an event, in bytes. The writer cuts a longer one and stores its true
/// length.
pub const ARGV: usize = 8 << 20;
/// The longest path or name in an event, in bytes. The writer cuts a longer one.
pub const NAME: usize = 64 << 10;
/// The largest number of shell scripts whose texts a trace's summary has.
pub const SCRIPTS: u64 = 256;
/// The longest text of a recorded shell script in bytes. A longer text is left out as a whole.
pub const SCRIPT: u64 = 64 << 10;
/// The largest number of bytes of the texts of all recorded shell scripts together.
pub const SCRIPT_BYTES: u64 = 1 << 20;
/// The largest number of bytes that all strings of one frame of lifecycle events have together.
pub const STRINGS: u64 = 24 << 20;
/// The largest number of [`CallSum`](crate::counters::CallSum) in one lifecycle frame. Each has the sums over one
/// process's calls of one system call.
pub const CALLS: u64 = 1 << 16;
/// The largest number of new stacks and of names of functions together that one lifecycle frame may have.
pub const STACKS: u64 = 1 << 20;
/// The largest length in bytes of a frame's header, counted from after the byte that stores this length.
pub const HEADER: u64 = 255;
/// The largest number of frames in a trace. A reader keeps about 200 bytes for each frame.
pub const FRAMES: u64 = 1 << 24;
/// The largest number of rows in one frame of a trace's index. A longer index has several frames.
pub const INDEX_ENTRIES: u64 = 1 << 16;
/// The largest factor by which decompression may expand the body of a frame. The first [`EXPANSION_FREE`] bytes do not
/// count.
pub const EXPANSION: u64 = 256;
/// The number of bytes that the body of any frame may have after decompression, however short its payload
/// is.
pub const EXPANSION_FREE: u64 = 1 << 16;
/// The length in bytes of the smallest frame of a trace: a header with one byte for each field.
pub const LEAST_FRAME: u64 = 21;
/// The largest number of damaged parts that a trace may have. A reader refuses a trace with more.
pub const DAMAGES: u64 = 1 << 16;
/// A reader searches damaged payloads for intact frames until it has searched this many bytes more than the file's
/// length. After that, it trusts the headers and skips damaged payloads.
pub const IN_VAIN: u64 = 64 << 20;
/// The number of events that a writer collects in a block of scheduling events before it closes the
/// block.
pub const BLOCK_EVENTS: usize = 1 << 14;
/// The number of bytes of strings and events that a writer collects in a lifecycle block before it closes the block. A
/// block with names of functions may have four times as many, because these names repeat. A block of this size is
/// within the limits of a lifecycle frame, whatever kinds of events it has.
pub const BLOCK_BYTES: usize = 512 << 10;
/// The number of bytes of a piped trace that are kept in memory. The remaining bytes go to an unnamed
/// temporary file.
pub const PIPE_MEMORY: usize = 64 << 20;
/// The largest length in bytes of a trace that is read from a pipe. A pipe may never end, and the
/// directory of temporary files is often in memory.
pub const PIPE_BYTES: u64 = 4 << 30;
