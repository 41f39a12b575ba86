// The data in the page, as the file has it. Made from crates/report/src/html by
// `TR_UPDATE=1 cargo test --test page_data`: do not edit.

export interface Document {
  /** The version of the layout of the data. The script that reads the data is in the same HTML file. */
  version: number;
  trace: Trace;
  totals: Totals;
  /** For each number n, the time in ns in which exactly n tasks were on a CPU. */
  concurrency: number[];
  concurrency_unknown: number;
  /** Two times in ns. The first one is the time in which tasks wanted all CPUs that the build could use, or more. The second one is the time in which the number of tasks that wanted a CPU is known. `None` without a critical path. */
  work_for_all: [number, number] | null;
  /** How the machine's CPU time divides between the build, other tasks, the hypervisor and idle time, as text. */
  shares: string[];
  cpu_time: Shares;
  warnings: string[];
  failures: FailureRows;
  /** The verdict on the whole build: who is responsible for its time. `None` if the recording does not show for how long the machine delayed the build, for example by other tasks. */
  verdict: VerdictRow | null;
  advice: Change[];
  combined: string | null;
  anomalies: string[];
  clocks: string[];
  strings: string[];
  /** Whether the times of single processes are rounded to the digits that the page prints. */
  rounded: boolean;
  processes: Processes;
  /** The names of the programs that are compilers. `linkers` has the names of the programs that are linkers. */
  compilers: string[];
  linkers: string[];
  threads: Threads;
  execs: Execs;
  path: Path | null;
  path_title: string;
  steps: Steps;
  /** The name of a step that runs tests as a whole, although its test runner could report each test as a step; `None` if there is no such step. */
  untold: string | null;
  /** The number of failed tests for which it is not known when they ran. Only the result files of test runners have these tests. */
  unplaced_failed: number;
  /** The names and results of the first failed tests for which it is not known when they ran. */
  unplaced_names: [string, string][];
  /** The names of the columns that show how a step's wall time was used, such as on a CPU or waiting for the disk. */
  uses: string[];
  connections: Connections;
  /** The number of all TCP connections and DNS queries of the recording, of which `connections` may have only a part. */
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
  /** The number of CPUs that the build could use (`cpus`), and of all CPUs of the machine (`online`). */
  cpus: number;
  online: number;
  machine: string;
  /** The process of COMMAND; `None` if the recording has no such process. */
  root: number | null;
  /** The number of parallel jobs that a program's arguments set, in words (`make: 4 jobs`). The outermost such program counts. */
  jobs: string | null;
  /** The build tools and their versions. */
  tools: string[];
  events: number;
  lost: string;
  /** The method of the recording, and the facts that it cannot provide. */
  recorded: string[];
  /** Whether the sums are only lower bounds. */
  least: boolean;
  /** Whether nothing is known about the recorded processes. */
  blank: boolean;
  /** The identifiers of the CI run, in words. */
  ci: string[];
  /** Whether every task of the machine was recorded. */
  all: boolean;
  /** The beginning (`from`) and the end (`to`) of the analyzed part of the recording, in ns since the start of the recording. */
  from: number;
  to: number;
  /** The length of the whole recording in ns, even if only a part of it is analyzed. */
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
  /** Only a recording without scheduling events has this time, because it cannot tell sleep from blocking. */
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
  /** The number of failures for which the recording does not show whether they had consequences, and some of these failures. */
  unclear: number;
  beside: string[];
  command: boolean;
  tolerated: number;
  /** The processes that failed without consequences, including processes that are not descendants of COMMAND. */
  calm: number[];
  /** The processes that certainly failed because of another failure. */
  led: number[];
}

export interface VerdictRow {
  sentence: string;
  /** Sentences about who delayed the build, and about the parts of the build's time for which the recording does not show whether something delayed the build. */
  more: string[];
  /** The parts of the critical path's time; the build's own work comes first. */
  parts: [string, number][];
}

export interface Change {
  text: string;
  gain: number;
  from: number;
  to: number;
  /** The first of the processes that are the evidence for the change. */
  processes: number[];
}

export interface Processes {
  /** The difference from the row before, because small numbers compress better. The label, the brief name, the arguments and the start are such differences, too; rows without a brief name or arguments are skipped. */
  pid: number[];
  /** The pid of the parent process. `None` if the row `parent` has this pid, or if the pid is not known. */
  ppid: (number | null)[];
  parent: (number | null)[];
  label: number[];
  /** The brief name, for places where the label has no room. */
  brief: (number | null)[];
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
  /** The CPU time of the descendants without the process itself. This time is stored, and not the sum with the process's own CPU time, because it is 0 for most processes. The time is the rounded sum minus the process's rounded CPU time, so that the page can compute the printed sum exactly. */
  below_on_cpu: (number | null)[];
  /** Only the numbers of threads and execs are stored, because their rows follow in the order of the processes. */
  threads: number[];
  execs: number[];
  step: (number | null)[];
  /** Whether the label says which step the process is in, or there is no such step, so that a sentence need not name the step. */
  says_step: number[];
  container: (number | null)[];
  /** Whether the process has only one thread, and this thread has the same figures as the process. Such a thread has no row of its own. */
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
  /** The time in ns from the start of the process to the start of this program in it. */
  start: number[];
  /** The time in ns from the end of this program to the end of the process. It is 0 for the last exec, whose program ends with the process. */
  end: number[];
  /** The index of the program's label in the page's list of texts, minus the index of the process's own label, which is the label of the process's last exec. `brief` and `argv` are such differences for the brief name and the arguments. */
  label: number[];
  brief: (number | null)[];
  argv: (number | null)[];
  on_cpu: (number | null)[];
}

export interface Path extends Pieces {
  from: number;
  /** How the path's time divides between programs. For each program: its name, its time in nanoseconds, the number of separate parts of the path that belong to it, and its index in `states`. */
  shares: [string, number, number, number][];
  owners: Owner[];
  /** Whether the page shows the path's time by step, because a division by step says more than a division by program. */
  by_step: boolean;
  /** The kinds of waits on the critical path, the longest first. */
  waits: Wait[];
}

export interface Steps {
  name: number[];
  /** The part of the name that is shown after the name of the step around it; `None` if the whole name is shown. */
  title: (number | null)[];
  /** The brief name, for places where the name has no room. */
  brief: (number | null)[];
  kind: number[];
  parent: (number | null)[];
  process: (number | null)[];
  from: number[];
  to: number[];
  /** The largest possible error of the step's start and end, if another tool reported them; `None` if the error is negligible or not known. */
  error: (number | null)[];
  /** Whether the step began before or ended after the recording, so that its wall time is a lower bound. */
  open: number[];
  failed: number[];
  /** The reported result of the step, or its exit status if that is a failure. */
  end: (number | null)[];
  processes: number[];
  on_cpu: (number | null)[];
  on_path: number[];
  /** How the step's wall time was used: the time for each column of `kinds`; `None` for a time that is not known. */
  uses: (number | null)[][];
  /** How the step's wall time was used from its start to its end: a column of `kinds`, its share in thousandths, the next column, its share, and so on; empty if there is only one column. */
  course: number[][];
  /** The part of the step's wall time in which none of the steps inside it was running; `None` if it contains no steps. */
  unexplained: (number | null)[];
  verdict: (number | null)[];
  /** The verdict on a step that failed or was slow while something delayed it. */
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
  /** A DNS query counts as established at the time of its answer. */
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
  /** The number of samples on a CPU that are merged into one. */
  together: number;
  /** The number and time of samples whose stacks are left out (`cut`), and of short waits that are left out (`short`). */
  cut: [number, number];
  short: [number, number];
}

export interface FailureRow {
  process: number | null;
  name: string;
  end: string;
  after: number;
  above: FailureRow[];
  /** Whether a failure in the list `above` may have another cause than the previous failure in the chain of failures. */
  perhaps: boolean;
  /** The circumstance that delayed the failed process. */
  held: string | null;
  /** The line of the script that ran the failed process, or the statement by which the script ended. */
  at: string | null;
}

export interface Owner {
  name: string;
  /** The brief name of the step, for places where its name has no room. */
  brief: string | null;
  step: boolean;
  /** The number of steps with this name. For a program, the number of separate parts of the path that belong to it. */
  count: number;
  times: [number, number, number, number, number];
  /** The kind of wait that has most of this step's time on the critical path, in words; `None` if it is short, or for time outside of steps. */
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
  /** The index in `shares` of the program (or other group, such as unknown time) to which this segment of the critical path belongs. */
  share: number[];
  /** The index in `owners` of the step to which this segment of the critical path belongs. For a segment outside of all steps, it is the index of the program. */
  owner: number[];
  /** How the critical path goes on to its next segment: 0 same thread, 1 fork, 2 exit, 3 end of a vfork, 4 wake-up, 5 a sleep that the next segment's thread ends, 6 the recording's end, 7 a job slot. */
  then: number[];
  /** 1 if no event shows this segment of the critical path, or how the path goes on to the next segment; otherwise 0. */
  inferred: number[];
}
