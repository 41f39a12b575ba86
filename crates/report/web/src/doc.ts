// The data in the page, as the file has it. Made from crates/report/src/html by
// `TR_UPDATE=1 cargo test --test page_data`: do not edit.

export interface Document {
  /** The version of the layout of the data. The same file has the page that reads it. */
  version: number;
  trace: Trace;
  totals: Totals;
  /** The time in which exactly n tasks were on a CPU, by n. */
  concurrency: number[];
  concurrency_unknown: number;
  /** The time in which at least as many tasks wanted a CPU as the build could use CPUs, and the time in which the number of these tasks is known; `None` without a critical path. */
  work_for_all: [number, number] | null;
  /** The shares of the machine's CPU time, as text. */
  shares: string[];
  /** The shares of the machine's CPU time, in nanoseconds. */
  cpu_time: Shares;
  warnings: string[];
  failures: FailureRows;
  /** The verdict on the whole build; `None` if no time is known. */
  verdict: VerdictRow | null;
  advice: Change[];
  combined: string | null;
  anomalies: string[];
  clocks: string[];
  strings: string[];
  /** Whether times of single processes are rounded to three digits. */
  rounded: boolean;
  processes: Processes;
  /** The names of the programs that are compilers, and of those that are linkers. */
  compilers: string[];
  linkers: string[];
  threads: Threads;
  execs: Execs;
  path: Path | null;
  path_title: string;
  steps: Steps;
  /** The name of a step that could show its tests but does not, if there is one. */
  untold: string | null;
  /** The number of failed tests of runners' files that have no place in the recording. */
  unplaced_failed: number;
  /** The first of them, each with its name and its result. */
  unplaced_names: [string, string][];
  /** The names of the columns for the uses of a step's wall time. */
  uses: string[];
  connections: Connections;
  /** The number of all connections, if some are left out. */
  connections_of: number;
  counters: Counters;
  /** The names of the states of a thread. */
  states: [string, string, string, string, string];
  kinds: [string, number, number | null][];
  segments: Sizes;
  /** The sizes of the data about stacks, for a recording with stacks. */
  stacks?: StackSizes;
}

export interface Trace {
  file: string;
  command: string;
  /** COMMAND's status in words; `None` without COMMAND. */
  result: string | null;
  failed: boolean;
  date: string;
  host: string;
  kernel: string;
  /** The number of CPUs that the build could use, and of all CPUs. */
  cpus: number;
  online: number;
  machine: string;
  /** COMMAND's process. */
  root: number | null;
  /** The outermost program that was told a number of jobs. */
  jobs: string | null;
  /** Tools and their versions. */
  tools: string[];
  events: number;
  lost: string;
  /** By which method, and what that does not tell. */
  recorded: string[];
  /** Sums are lower bounds. */
  least: boolean;
  /** Nothing is known. */
  blank: boolean;
  /** Identifiers of the CI run, in words. */
  ci: string[];
  /** Every task of the machine was recorded. */
  all: boolean;
  /** The analyzed span. */
  from: number;
  to: number;
  /** The length of the whole recording. */
  whole: number;
  version: string;
}

export interface Totals {
  processes: number;
  threads: number;
  execs: number;
  forks: number;
  exits: number;
  on_cpu: number | null;
  run_queue: number | null;
  sleep: number | null;
  blocked: number | null;
  /** Only of a recording without scheduling events. */
  asleep_or_blocked?: number;
  unknown: number;
}

export interface Shares {
  build: number | null;
  others: number | null;
  stolen: number | null;
  idle: number | null;
}

export interface FailureRows {
  told: FailureRow[];
  more: number;
  /** The number of failures whose consequences are not recorded, and the first of them. */
  unclear: number;
  beside: string[];
  command: boolean;
  tolerated: number;
  /** The failed processes that do not matter, including those of others. */
  calm: number[];
  /** The processes that failed because of another failure. */
  led: number[];
}

export interface VerdictRow {
  sentence: string;
  /** The actors that held the build back, and the parts that no rule has judged. */
  more: string[];
  /** The parts of the path's time, the build's own first. */
  parts: [string, number][];
}

export interface Change {
  text: string;
  gain: number;
  from: number;
  to: number;
  /** The processes that are the evidence, the first of many. */
  processes: number[];
}

export interface Processes {
  /** Since the process before, as are the label, the arguments and the start. */
  pid: number[];
  /** None: the parent's, or unknown without one. */
  ppid: (number | null)[];
  parent: (number | null)[];
  label: number[];
  program: number[];
  comm: number[];
  argv: (number | null)[];
  cgroup: (number | null)[];
  start: number[];
  wall: number[];
  alive: number[];
  started_before: number[];
  kthread: number[];
  status: (number | null)[];
  exit: (number | null)[];
  on_cpu: (number | null)[];
  run_queue: (number | null)[];
  sleep: (number | null)[];
  blocked: (number | null)[];
  unknown: number[];
  preempted: (number | null)[];
  block_io: (number | null)[];
  vfork: (number | null)[];
  voluntary: (number | null)[];
  involuntary: (number | null)[];
  max_off_cpu: (number | null)[];
  max_rss: (number | null)[];
  tree_processes: number[];
  /** The CPU time of the descendants, without the process itself: most processes have none. The sum of both is rounded, so that it is the printed sum. */
  below_on_cpu: (number | null)[];
  /** Only numbers: threads and execs follow each other in the order of the processes. */
  threads: number[];
  execs: number[];
  step: (number | null)[];
  container: (number | null)[];
  /** The only thread of a process has the figures of the process, and no row of its own. */
  alone: number[];
}

export interface Threads {
  tid: number[];
  comm: number[];
  start: number[];
  end: number[];
  on_cpu: (number | null)[];
  run_queue: (number | null)[];
  sleep: (number | null)[];
  blocked: (number | null)[];
  unknown: number[];
}

export interface Execs {
  /** Since the start of the process. */
  start: number[];
  /** Before the end of the process: the last one ends with it. */
  end: number[];
  /** Since those of the process, which are the last one's. */
  label: number[];
  argv: (number | null)[];
  on_cpu: (number | null)[];
}

export interface Path extends Pieces {
  from: number;
  /** The kinds of use of the path's time, by program: the name, the time in nanoseconds, the number of stays on the path, and the place in `states` of each. */
  shares: [string, number, number, number][];
  owners: Owner[];
  /** Whether the path is shown by step, because that says more than by program. */
  by_step: boolean;
  /** The kinds of waits on the critical path, the longest first. */
  waits: Wait[];
}

export interface Steps {
  name: number[];
  /** The name after the name of the step around it; none: the name alone. */
  title: (number | null)[];
  kind: number[];
  parent: (number | null)[];
  process: (number | null)[];
  from: number[];
  to: number[];
  /** The most by which another tool's place is wrong; none: by hardly anything, or not known. */
  error: (number | null)[];
  /** Whether the step's wall time is a lower bound. */
  open: number[];
  failed: number[];
  /** The result that was told, or the status that is none of success. */
  end: (number | null)[];
  processes: number[];
  on_cpu: (number | null)[];
  on_path: number[];
  /** The step's wall time by the columns of `kinds`; none: not known. */
  uses: (number | null)[][];
  /** The wall time in the order in which it went by: a column of `kinds`, a thousandth share, and so on; empty: one part. */
  course: number[][];
  /** The wall time in which no step inside it was under way; none: it holds no other. */
  unexplained: (number | null)[];
  verdict: (number | null)[];
  /** The verdict on a step that failed or was slow while it was held back. */
  held: (number | null)[];
  spent: number[];
  after: number[][];
}

export interface Connections {
  process: (number | null)[];
  remote: number[];
  accepted: number[];
  dns: number[];
  from: number[];
  /** A query is established by its answer. */
  established: (number | null)[];
  to: number[];
  failed: number[];
  sent: (number | null)[];
  received: (number | null)[];
}

export interface Counters {
  at: number[];
  busy: (number | null)[];
  stolen: (number | null)[];
  throttled: (number | null)[];
  cpu: (number | null)[];
  io: (number | null)[];
  memory: (number | null)[];
  available: (number | null)[];
}

export interface Sizes {
  grain: number;
  unit: number;
  pieces: number;
  mixed: number;
  mixed_kind: number;
}

export interface StackSizes {
  functions: number[];
  binaries: number[];
  kernel: number[];
  stacks: number;
  samples: number;
  unit: number;
  /** So many samples on a CPU are shown as one. */
  together: number;
  /** The samples whose stacks are left out, and their time; the shortest waits, which are. */
  cut: [number, number];
  short: [number, number];
}

export interface FailureRow {
  process: number | null;
  name: string;
  end: string;
  after: number;
  above: FailureRow[];
  /** Among those above: for one of several possible reasons. */
  perhaps: boolean;
  /** The circumstance that held the failed process back meanwhile. */
  held: string | null;
  /** The line of the script that ran it, or the statement by which it ended. */
  at: string | null;
}

export interface Owner {
  name: string;
  step: boolean;
  /** The number of steps, or of stays. */
  count: number;
  times: [number, number, number, number, number];
  /** The longest wait in words. */
  waited: string | null;
}

export interface Wait {
  name: string;
  state: number;
  time: number;
  owner: number;
}

export interface Pieces {
  thread: number[];
  length: number[];
  /** The places in `shares`. */
  share: number[];
  /** The places in `owners`. */
  owner: number[];
  /** The transition to the next segment: 0 same thread, 1 fork, 2 exit, 3 end of a vfork, 4 wake-up, 5 a sleep that the next segment's thread ends, 6 the recording's end, 7 a job slot. */
  then: number[];
  /** 1: no event shows the segment, or its transition to the next one. */
  inferred: number[];
}
