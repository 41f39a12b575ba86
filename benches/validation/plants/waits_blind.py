"""Builds with one planted fault in how they wait that the rules of advice were not made with: see waits.py for the form.

Each was written with its answer before the rules were read for it.
"""

from waits import CPU, PAUSE, PYTHON, Plant

NODE_SERVER = """const http = require('http'), fs = require('fs');
const slow = process.env.FIX_SERVER ? 0 : Number(process.argv[3]);
http.createServer((q, r) => setTimeout(() => r.end('ok'), slow)).listen(Number(process.argv[2]), '127.0.0.1',
  () => fs.writeFileSync('ready', ''));
"""
READY = "while [ ! -e ready ]; do sleep 0.02; done\n"
PERL_CPU = "my $t = 0; until ($t >= $ARGV[0]) { 1 for 1 .. 50_000; my @t = times; $t = $t[0] + $t[1] }\n"

PLANTS = [
    Plant(
        "perl-backoff",
        "nap",
        "perl retry server",
        "perl doubles its delay from 0.2 s, so it connects 1.2 s after the server listens",
        r"retry\.pl|perl",
        {
            "s.pl": "use IO::Socket::INET; my $t = 0; until ($t >= 1.7) { 1 for 1 .. 50_000; $t = (times)[0] }\n"
            "my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 18201, Listen => 5, ReuseAddr => 1) or die;\n"
            'my $c = $s->accept; print $c "ok\\n"; close $c;\n',
            "retry.pl": "use IO::Socket::INET; my $d = $ENV{FIX} ? 0.03 : 0.2; my $c;\n"
            "until ($c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => 18201)) {\n"
            "  select(undef, undef, undef, $d); $d *= 2 unless $ENV{FIX} }\n"
            "print <$c>;\n",
            "run.sh": "perl s.pl & perl retry.pl; wait\n",
        },
    ),
    Plant(
        "lua-lockdir",
        "lock",
        "lua lock poll",
        "two clients share a lock directory; the second looks every 2 s for a lock that was held for 0.6 s",
        r"sleep|c\.lua|lua",
        {
            "c.lua": "local nap = os.getenv('FIX') and 0.05 or 2\n"
            "while not os.execute('mkdir lock 2>/dev/null') do os.execute('sleep ' .. nap) end\n"
            "local t = os.clock() while os.clock() - t < 0.6 do end\nos.execute('rmdir lock')\n",
            "run.sh": "lua c.lua & sleep 0.1; lua c.lua; wait\n",
        },
    ),
    Plant(
        "docker-poll",
        "nap",
        "python wrapper poll background",
        "dock starts a detached job of 0.9 s and looks for its end every 2 s",
        r"dock|sleeps",
        {
            "cpu.py": CPU,
            "dock": "import subprocess, time, os\n"
            f"subprocess.Popen(['setsid', 'sh', '-c', '{PYTHON} cpu.py 0.9; echo $? > status.new; mv status.new status'])\n"
            "while not os.path.exists('status'): time.sleep(0.05 if os.environ.get('FIX') else 2)\n",
            "run.sh": f"rm -f status; {PYTHON} dock\n",
        },
    ),
    Plant(
        "flock-make",
        "lock",
        "make lock wrapper",
        "flock makes two builds of 0.9 s one after the other",
        r"flock|lock",
        {
            "cpu.py": CPU,
            "Makefile": f"a b:\n\t{PYTHON} cpu.py 0.9 $@\n.PHONY: a b\n",
            "run.sh": 'L="flock lock"; [ -z "$FIX" ] || L=\n$L make -s a & $L make -s b & wait\n',
        },
    ),
    Plant(
        "tail-poll",
        "nap",
        "pipe poll background",
        "tail -f that looks every 2 s tells grep of the line that came after 0.5 s",
        r"tail",
        {
            "cpu.py": CPU,
            "run.sh": PAUSE % (2, 0.05)
            + f": > log; ({PYTHON} cpu.py 0.5; echo ready > log; exec sleep 30) & S=$!\n"
            + "tail -s $P ---disable-inotify -n+1 -f log | grep -m1 ready\nkill $S\n",
        },
    ),
    Plant(
        "minitest-setup",
        "nap",
        "ruby test",
        "the setup of each of five tests sleeps 0.4 s",
        r"t\.rb|ruby",
        {
            "t.rb": "class T\n  def setup; sleep(ENV['FIX'] ? 0 : 0.4); end\n"
            '  5.times { |i| define_method("test_#{i}") { 100_000.times.sum } }\nend\n'
            "T.instance_methods(false).grep(/^test_/).each { |m| t = T.new; t.setup; t.send(m) }\n",
            "run.sh": "ruby t.rb\n",
        },
    ),
    Plant(
        "uneven-wait",
        "jobs",
        "sh background barrier",
        "a wait between two batches holds a job of 1.2 s back that could begin at once",
        r"at once|one after|runs alone|wait",
        {
            "cpu.pl": PERL_CPU,
            "run.sh": 'W=wait; [ -z "$FIX" ] || W=:\n'
            "perl cpu.pl 1.2 & perl cpu.pl 0.2 &\n$W\nperl cpu.pl 1.2 & perl cpu.pl 0.2 &\nwait\n",
        },
    ),
    Plant(
        "find-exec",
        "jobs",
        "find perl",
        "find -exec runs six independent programs of 0.35 s one after the other",
        r"find|one after|at once",
        {
            "cpu.pl": PERL_CPU,
            **{f"d/{i}": "" for i in range(6)},
            "run.sh": 'if [ -n "$FIX" ]; then find d -type f | xargs -n1 -P2 perl cpu.pl 0.35\n'
            "else find d -type f -exec perl cpu.pl 0.35 {} \\; ; fi\n",
        },
    ),
    Plant(
        "node-health",
        "nap",
        "node event-loop server poll",
        "a supervisor's first health check comes after 2 s, the server is ready after 0.3 s",
        r"health\.js|node",
        {
            "srv.js": NODE_SERVER,
            "health.js": "const http = require('http'), { spawn } = require('child_process');\n"
            "const s = spawn('node', ['srv.js', '18209', '0']);\n"
            "const t = setInterval(() => http.get('http://127.0.0.1:18209/', r => { r.resume(); clearInterval(t);\n"
            "  r.on('end', () => { s.kill(); }) }).on('error', () => 0), process.env.FIX ? 50 : 2000);\n",
            "run.sh": "node health.js\n",
        },
    ),
    Plant(
        "subprocess-timeout",
        "nap",
        "python perl timeout",
        "python waits 2 s for a child that never ends, until its time-out",
        r"t\.py|hang\.pl|sleep",
        {
            "hang.pl": "sleep 60;\n",
            "t.py": "import subprocess, os\n"
            "try: subprocess.run(['perl', 'hang.pl'], timeout=0.2 if os.environ.get('FIX') else 2)\n"
            "except subprocess.TimeoutExpired: pass\n",
            "run.sh": f"{PYTHON} t.py\n",
        },
    ),
    Plant(
        "pipe-buffered",
        "pipe",
        "perl pipe",
        "the generator's lines come all at its end, so that the reader's work begins after it",
        r"pipe|gen\.pl|use\.pl|alone|at once",
        {
            "gen.pl": "$| = $ENV{FIX} ? 1 : 0;\n"
            'for my $i (1 .. 4) { until ((times)[0] >= 0.35 * $i) { 1 for 1 .. 50_000 } print "$i\\n" }\n',
            "use.pl": "my $n = 0; while (<STDIN>) { $n++; until ((times)[0] >= 0.35 * $n) { 1 for 1 .. 50_000 } }\n",
            "run.sh": "perl gen.pl | perl use.pl\n",
        },
    ),
    Plant(
        "ruby-spool",
        "server",
        "ruby server poll",
        "a worker looks into its directory every 0.8 s, and a client sends it three jobs in turn",
        r"w\.rb|ruby",
        {
            "w.rb": "loop do\n  (Dir['in/*']).each { |f| File.rename(f, f.sub('in', 'out')) }\n  sleep(ENV['FIX'] ? 0.02 : 0.8)\nend\n",
            "run.sh": "rm -rf in out; mkdir in out; ruby w.rb & S=$!\n"
            "for i in 1 2 3; do : > in/$i; while [ ! -e out/$i ]; do sleep 0.02; done; done\nkill $S\n",
        },
    ),
    Plant(
        "sleep-start",
        "nap",
        "node server sh",
        "the script sleeps 3 s for a server that is ready after 0.2 s",
        r"sleep",
        {
            "srv.js": NODE_SERVER,
            "run.sh": 'rm -f ready; node srv.js 18213 0 & S=$!\nif [ -n "$FIX" ]; then\n' + READY + "else sleep 3; fi\n"
            "curl -s -o /dev/null 127.0.0.1:18213/\nkill $S\n",
        },
    ),
    Plant(
        "curl-serial",
        "server",
        "curl node server event-loop",
        "curl asks ten times in turn for an answer that takes 0.25 s",
        r"curl|srv\.js|node",
        {
            "srv.js": NODE_SERVER,
            "run.sh": "rm -f ready; node srv.js 18214 250 & S=$!\n"
            + READY
            + 'P=1; [ -z "$FIX" ] || P=10\n'
            + "seq 10 | xargs -n1 -P$P sh -c 'curl -s -o /dev/null 127.0.0.1:18214/$0'\nkill $S\n",
        },
    ),
    Plant(
        "redis-blpop",
        "none",
        "redis server",
        "a client waits in BLPOP for a worker that computes for 1.2 s",
        r"cpu\.pl|your code",
        {
            "cpu.pl": PERL_CPU,
            "run.sh": "redis-server --port 18215 --save '' >/dev/null & S=$!\n"
            "until redis-cli -p 18215 ping >/dev/null 2>&1; do sleep 0.02; done\n"
            "(perl cpu.pl 1.2; redis-cli -p 18215 lpush q 1) >/dev/null &\n"
            "redis-cli -p 18215 blpop q 20 >/dev/null\nkill $S\n",
        },
    ),
    Plant(
        "php-procpoll",
        "none",
        "php background poll",
        "php looks every 50 ms for the end of a child of 1.5 s",
        r"cpu\.pl|your code|perl",
        {
            "cpu.pl": PERL_CPU,
            "t.php": "<?php $p = proc_open(['perl', 'cpu.pl', '1.5'], [], $pipes);\n"
            "while (proc_get_status($p)['running']) usleep(50000);\n",
            "run.sh": "php t.php\n",
        },
    ),
]
