"""Twenty-eighth set: a day in the CI of a middle-sized company: lint, build, unit, integration and packaging jobs of its monorepo."""

from waits import Plant

PLANTS = [
    Plant(
        "w28-libs-unit",
        "serial",
        "Ruby, Perl, Python; three independent test suites one after another; CI job script",
        "ci/unit.sh runs the suites of the three libraries (rspec in libs/pricing, prove in libs/feed, pytest in libs/textindex) one after another though none needs another; run them at the same time (in the background and wait, or xargs -P).",
        r"(?i)(unit\.sh|rspec|prove|pytest|xargs)",
        {
            "run.sh": r"""#!/bin/bash
# job: libs (lint, unit, package)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf out && mkdir -p out

echo "== lint"
ruby -c libs/pricing/lib/pricing.rb
perl -c -Ilibs/feed/lib libs/feed/lib/Feed.pm
/usr/bin/python3 -m py_compile libs/textindex/textindex.py

echo "== unit"
if [ -n "${FIX:-}" ]; then
  export UNIT_JOBS=2
fi
bash ci/unit.sh pricing feed textindex

echo "== package"
for lib in pricing feed textindex; do
  tar -czf out/$lib.tar.gz -C libs $lib
done
(cd out && sha256sum *.tar.gz > SHA256SUMS && cat SHA256SUMS)
""",
            "ci/unit.sh": r"""#!/bin/bash
# ci/unit.sh LIB...: the unit tests of the libraries named
suite() {
  cd "libs/$1"
  case $1 in
    pricing) rspec --no-color spec ;;
    feed) prove -Ilib t ;;
    textindex) /usr/bin/python3 -m pytest -q -p no:cacheprovider tests ;;
  esac
}
export -f suite
export LOGS=$PWD/out
mkdir -p "$LOGS"
printf '%s\n' "$@" | xargs -P "${UNIT_JOBS:-1}" -I{} bash -c 'suite {} > "$LOGS/{}.log" 2>&1' || {
  cat out/*.log 2>/dev/null; exit 1
}
tail -n 3 out/*.log 2>/dev/null || true
""",
            "libs/feed/lib/Feed.pm": r"""package Feed;
use strict;
use warnings;

# One line of a supplier's feed: quoted fields with separators.
sub fields {
    my ($line) = @_;
    my @out;
    while ($line =~ /\G(?:"((?:[^"]|"")*)"|([^;]*))(;|$)/gc) {
        my ($quoted, $plain, $end) = ($1, $2, $3);
        push @out, defined $quoted ? $quoted =~ s/""/"/gr : $plain;
        last if $end eq '';
    }
    return \@out;
}

sub join_fields {
    return join ';', map { /[;"]/ ? '"' . s/"/""/gr . '"' : $_ } @_;
}

1;
""",
            "libs/feed/t/roundtrip.t": r'''use strict;
use warnings;
use Test::More tests => 3;
use Feed;

is_deeply(Feed::fields('a;"b;c";d'), ['a', 'b;c', 'd'], 'quoted separator');
is_deeply(Feed::fields('"say ""hi""";x'), ['say "hi"', 'x'], 'quoted quote');

srand 11;
my @alphabet = ('a' .. 'h', ';', '"', ' ');
my $bad = 0;
for my $row (1 .. 40000) {
    my @fields = map { join '', map { $alphabet[rand @alphabet] } 1 .. 6 } 1 .. 10;
    my $back = Feed::fields(Feed::join_fields(@fields));
    $bad++ if join("\0", @fields) ne join("\0", @$back);
}
is($bad, 0, 'every row comes back as it was');
''',
            "libs/pricing/lib/pricing.rb": r"""# Tiered prices with rounding to the nearest five cents.
class Pricing
  TIERS = [[10, 100], [50, 92], [200, 85], [Float::INFINITY, 78]].freeze

  def initialize(list)
    @list = list
  end

  def unit(sku, quantity)
    percent = TIERS.find { |limit, _| quantity <= limit }[1]
    cents = @list.fetch(sku) * percent
    (cents / 500.0).round * 5
  end

  def total(lines)
    lines.sum { |sku, quantity| unit(sku, quantity) * quantity }
  end
end
""",
            "libs/pricing/spec/pricing_spec.rb": r"""require_relative "../lib/pricing"

RSpec.describe Pricing do
  let(:list) { (1..400).to_h { |i| ["sku#{i}", 95 + i * 37 % 9000] } }
  let(:pricing) { described_class.new(list) }

  it "takes the tier of the quantity" do
    one = described_class.new("a" => 1000)
    expect(one.unit("a", 1)).to eq(1000)
    expect(one.unit("a", 51)).to eq(850)
  end

  it "never charges more for a unit when more is bought" do
    list.each_key do |sku|
      last = nil
      (1..260).step(1) do |quantity|
        price = pricing.unit(sku, quantity)
        raise "#{sku} #{quantity}" if last && price > last
        last = price
      end
    end
  end

  it "adds up to whole multiples of five" do
    random = Random.new(7)
    24000.times do
      lines = Array.new(60) { ["sku#{random.rand(1..400)}", random.rand(1..300)] }
      expect(pricing.total(lines) % 5).to eq(0)
    end
  end
end
""",
            "libs/textindex/tests/test_index.py": r"""import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from textindex import Index


def pages(count):
    rng = random.Random(3)
    words = ["w%d" % i for i in range(900)]
    for key in range(count):
        yield key, " ".join(rng.choice(words) for _ in range(160))


def test_rare_words_win():
    index = Index()
    index.add("a", "invoice invoice print")
    index.add("b", "invoice refund")
    index.add("c", "invoice")
    assert index.find("refund invoice")[0] == "b"


def test_every_page_is_found_by_its_words():
    index = Index()
    texts = dict(pages(7500))
    for key, text in texts.items():
        index.add(key, text)
    for key in list(texts)[:160]:
        query = " ".join(sorted(set(texts[key].split()))[:12])
        assert key in index.find(query)[:60]
""",
            "libs/textindex/textindex.py": r'''"""A small inverted index for the help pages."""
import collections
import re

WORD = re.compile(r"[a-z0-9]+")


class Index:
    def __init__(self):
        self.postings = collections.defaultdict(dict)
        self.count = 0

    def add(self, key, text):
        self.count += 1
        for word in WORD.findall(text.lower()):
            entry = self.postings[word]
            entry[key] = entry.get(key, 0) + 1

    def find(self, query):
        scores = collections.Counter()
        for word in WORD.findall(query.lower()):
            entry = self.postings.get(word, {})
            for key, times in entry.items():
                scores[key] += times * (1 + self.count / (1 + len(entry)))
        return [key for key, _ in sorted(scores.items(), key=lambda e: (-e[1], e[0]))]
''',
        },
        "",
    ),
    Plant(
        "w28-mailer-stop",
        "shutdown",
        "bash wrapper, Ruby server, Python tests; a TERM that reaches only the wrapper; teardown of an integration job",
        "bin/mailer runs ruby in the foreground, so its TERM trap runs only once ruby has ended and the TERM never reaches ruby; ci/services.sh waits 3 s and kills the group; let bin/mailer start ruby in the background, pass the TERM on and wait (or exec ruby).",
        r"(?i)(bin/mailer|services\.sh|mailer\.rb|SIGTERM|SIGKILL|for the end of mailer, and kills)",
        {
            "run.sh": r"""#!/bin/bash
# job: mailer (lint, integration)
set -euo pipefail
cd "$(dirname "$0")"
export MAILER_PORT=18880
rm -rf var && mkdir -p var
if [ -n "${FIX:-}" ]; then
  export MAILER_FORWARD=1
fi
. ci/services.sh
trap stop_all EXIT

echo "== lint"
ruby -wc service/mailer.rb
/usr/bin/python3 -m py_compile tests/test_mailer.py tests/test_limits.py
bash -n bin/mailer

echo "== integration"
start mailer bin/mailer
wait_port $MAILER_PORT
/usr/bin/python3 -m unittest -q tests.test_mailer
/usr/bin/python3 -m unittest -q tests.test_limits
stop mailer

echo "== spool"
grep -c '^Subject:' var/spool.txt
gzip -9 < var/spool.txt > var/spool.txt.gz
""",
            "bin/mailer": r"""#!/bin/bash
# The mailer with its defaults; removes its pid file when it is stopped.
cd "$(dirname "$0")/.."
echo $$ > var/mailer.pid
trap 'rm -f var/mailer.pid; exit 0' TERM INT
if [ -n "${MAILER_FORWARD:-}" ]; then
  ruby service/mailer.rb --port "${MAILER_PORT:-2525}" --spool var/spool.txt &
  child=$!
  trap 'kill -TERM $child; wait $child; rm -f var/mailer.pid; exit 0' TERM INT
  wait $child
else
  ruby service/mailer.rb --port "${MAILER_PORT:-2525}" --spool var/spool.txt
fi
""",
            "ci/services.sh": r"""# start NAME COMMAND..., stop NAME, stop_all; every service is a group of its own
declare -A pids=()

start() {
  local name=$1
  shift
  setsid bash "$@" > "var/$name.log" 2>&1 &
  pids[$name]=$!
}

wait_port() {
  local i
  for i in $(seq 200); do
    if (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; then return 0; fi
    sleep 0.05
  done
  echo "nothing listens on $1" >&2
  return 1
}

stop() {
  local pid=${pids[$1]} i
  unset "pids[$1]"
  kill -TERM "$pid" 2> /dev/null || true
  for i in $(seq 60); do
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.05
  done
  kill -KILL -- "-$pid" 2> /dev/null || true
  wait "$pid" 2> /dev/null || true
}

stop_all() {
  local name
  for name in "${!pids[@]}"; do stop "$name"; done
}
""",
            "service/mailer.rb": r"""# Takes mails line by line, answers with their number, spools them.
require "socket"
require "optparse"
require "digest"

options = { port: 2525, spool: "spool.txt" }
OptionParser.new do |o|
  o.on("--port N", Integer) { |v| options[:port] = v }
  o.on("--spool FILE") { |v| options[:spool] = v }
end.parse!

spool = File.open(options[:spool], "a")
server = TCPServer.new("127.0.0.1", options[:port])
lock = Mutex.new
count = 0

Thread.new do
  sleep 90
  abort "mailer: too old"
end

stopping = false
trap("TERM") do
  stopping = true
  Thread.new { server.close }
end

begin
  loop do
    client = server.accept
    Thread.new(client) do |c|
      while (subject = c.gets)
        subject.chomp!
        if subject.bytesize > 200
          c.puts "552 too long"
          next
        end
        token = subject
        40.times { token = Digest::SHA256.hexdigest(token) }
        lock.synchronize do
          count += 1
          spool.puts "Subject: #{subject}", "Message-Id: #{token}", ""
          spool.flush
          c.puts "250 #{count}"
        end
      end
      c.close
    end
  end
rescue IOError, Errno::EBADF
  raise unless stopping
end
spool.fsync
""",
            "tests/test_limits.py": r"""import os
import socket
import unittest


class Limits(unittest.TestCase):
    def test_long_subjects_are_refused(self):
        address = ("127.0.0.1", int(os.environ["MAILER_PORT"]))
        for size in (1, 200, 201, 4000):
            with socket.create_connection(address, 10) as sock:
                sock.sendall(b"x" * size + b"\n")
                answer = sock.makefile().readline()
            self.assertEqual(answer.startswith("250 "), size <= 200)
""",
            "tests/test_mailer.py": r"""import os
import socket
import unittest


class Mailer(unittest.TestCase):
    def setUp(self):
        self.sock = socket.create_connection(("127.0.0.1", int(os.environ["MAILER_PORT"])), 10)
        self.lines = self.sock.makefile("rw", newline="\n")

    def tearDown(self):
        self.lines.close()
        self.sock.close()

    def send(self, subject):
        self.lines.write(subject + "\n")
        self.lines.flush()
        return self.lines.readline().strip()

    def test_numbers_grow(self):
        last = 0
        for i in range(6000):
            number = int(self.send("order %d has left" % i).split()[1])
            self.assertGreater(number, last)
            last = number

    def test_umlauts(self):
        self.assertTrue(self.send("Grüße aus Köln").startswith("250 "))
""",
        },
        "",
    ),
    Plant(
        "w28-storage-flock",
        "lock",
        "PHP, Perl; flock(2) held while computing; two jobs of one integration step side by side",
        "bin/warm-cache.php takes the exclusive flock on var/storage.lock at its start and keeps it while it renders all pages (2 s of CPU); bin/export.pl waits for that lock before it begins its own work; render first and take the lock only around the writing.",
        r"(?i)(storage\.lock|flock|warm-cache.*(lock|hold|held|wait)|(lock|hold|held|wait).*warm-cache)",
        {
            "run.sh": r"""#!/bin/bash
# job: shop-storage (lint, unit, integration, package)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf var && mkdir -p var/cache var/export
[ -n "${FIX:-}" ] && export WARM_LATE_LOCK=1

echo "== lint"
php -l bin/warm-cache.php
php -l lib/Page.php
perl -c bin/export.pl

echo "== unit"
php ci/unit.php

echo "== integration: nightly jobs on one storage"
php bin/warm-cache.php 1500 > var/warm.log & warm=$!
perl bin/export.pl 30000 > var/export.log & export_pid=$!
wait $warm
wait $export_pid
cat var/warm.log var/export.log
test "$(ls var/cache | wc -l)" = 1500
test "$(wc -l < var/export/orders.tsv)" = 30000
sort var/runs.log

echo "== package"
tar -czf var/storage.tar.gz -C var cache export
""",
            "bin/export.pl": r"""#!/usr/bin/perl
# export.pl COUNT: the orders for the accountants
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Fcntl qw(:flock);
use FindBin;

my $count = shift // 100;
my $var = "$FindBin::Bin/../var";

sub with_storage {
    my ($action) = @_;
    open my $lock, '>>', "$var/storage.lock" or die "storage.lock: $!";
    flock $lock, LOCK_EX or die "flock: $!";
    my @result = $action->();
    close $lock;
    return @result;
}

sub note {
    open my $log, '>>', "$var/runs.log" or die "runs.log: $!";
    print $log "$_[0]\n";
    close $log;
}

# the customers' names
my %names = map { $_ => join ' ', map { ucfirst } substr(sha256_hex("n$_"), 0, 6), substr(sha256_hex("s$_"), 0, 9) } 1 .. 40000;

with_storage(sub { note('export begins') });

my @lines;
for my $order (1 .. $count) {
    my $sign = sha256_hex("order $order");
    $sign = sha256_hex($sign) for 1 .. 45;
    push @lines, join("\t", $order, $names{1 + $order % 40000}, hex(substr $sign, 0, 4), $sign) . "\n";
}
@lines = sort { (split /\t/, $a)[3] cmp (split /\t/, $b)[3] } @lines;

with_storage(sub {
    open my $out, '>', "$var/export/orders.tsv" or die "orders.tsv: $!";
    print $out @lines;
    close $out;
    note('export ends');
});
print "exported $count orders\n";
""",
            "bin/warm-cache.php": r"""<?php
declare(strict_types=1);
// warm-cache.php COUNT: renders the first COUNT pages into var/cache
require __DIR__ . '/../lib/Page.php';

$count = (int) ($argv[1] ?? 10);
$root = dirname(__DIR__);

function with_storage(string $root, callable $action): void
{
    $lock = fopen("$root/var/storage.lock", 'c');
    flock($lock, LOCK_EX);
    $action();
    file_put_contents("$root/var/runs.log", "warm-cache\n", FILE_APPEND);
    flock($lock, LOCK_UN);
    fclose($lock);
}

if (getenv('WARM_LATE_LOCK')) {
    $pages = [];
    for ($id = 1; $id <= $count; $id++) {
        $pages[$id] = Page::render($id);
    }
    with_storage($root, static function () use ($pages, $root): void {
        foreach ($pages as $id => $page) {
            file_put_contents("$root/var/cache/$id.html", $page);
        }
    });
} else {
    with_storage($root, static function () use ($count, $root): void {
        for ($id = 1; $id <= $count; $id++) {
            file_put_contents("$root/var/cache/$id.html", Page::render($id));
        }
    });
}
echo "warmed $count pages\n";
""",
            "ci/unit.php": r"""<?php
declare(strict_types=1);
require __DIR__ . '/../lib/Page.php';

$failed = 0;
foreach ([1, 2, 77] as $id) {
    $page = Page::render($id);
    if ($page !== Page::render($id) || substr_count($page, '<li') !== 12) {
        echo "page $id\n";
        $failed++;
    }
}
printf("%d passed, %d failed\n", 3 - $failed, $failed);
exit($failed ? 1 : 0);
""",
            "lib/Page.php": r"""<?php
declare(strict_types=1);

/** A product page: text, related products, and its checksum for the CDN. */
final class Page
{
    public static function render(int $id): string
    {
        $state = $id * 2654435761 % 4294967296;
        $rows = [];
        for ($i = 0; $i < 900; $i++) {
            $state = ($state * 1103515245 + 12345) % 2147483648;
            $rows[] = sprintf('<li data-sku="%06d">%s</li>', $state % 1000000, md5((string) $state));
        }
        usort($rows, static fn (string $a, string $b): int => strcmp(substr($a, 22), substr($b, 22)));
        $body = '<ul>' . implode("\n", array_slice($rows, 0, 12)) . '</ul>';
        return "<h1>Product $id</h1>\n$body\n<!-- " . hash('sha256', implode('', $rows)) . " -->\n";
    }
}
""",
        },
        "",
    ),
    Plant(
        "w28-metrics-udp",
        "timer",
        "Perl tests, Python stub; UDP acknowledgement that never comes, select(2) with a time-out and resends on loopback",
        "the Perl tests (Metrics::Client) send their metrics to UDP 127.0.0.1:18882 where nobody listens - the collector stub of the job is on 18881 - and each flush waits twice 0.6 s in select for an acknowledgement; point METRICS_PORT (conf/test.ini) to the stub.",
        r"(?i)(18882|Metrics|test\.ini|\b(checkout|basket|refund)\.t\b)",
        {
            "run.sh": r"""#!/bin/bash
# job: checkout (lint, unit, integration)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf var && mkdir -p var
collector=
trap '[ -z "$collector" ] || kill $collector 2> /dev/null || true' EXIT

echo "== lint"
for f in lib/*.pm lib/Metrics/*.pm; do perl -Ilib -wc "$f"; done
/usr/bin/python3 -m py_compile tools/collector.py

echo "== unit"
/usr/bin/python3 tools/golden.py 60000 > var/golden.tsv
perl -Ilib ci/golden.pl var/golden.tsv

echo "== integration"
/usr/bin/python3 tools/collector.py 18881 var/metrics.log & collector=$!
for _ in $(seq 100); do [ -e var/metrics.log ] && break; sleep 0.02; done
[ -n "${FIX:-}" ] && export METRICS_PORT=18881
prove -Ilib t
kill $collector
wait $collector 2> /dev/null || true
collector=

echo "== package"
tar -czf var/checkout.tar.gz lib conf
""",
            "ci/golden.pl": r"""# golden.pl FILE: compares Checkout's rounding with the accountants' table
use strict;
use warnings;
use Checkout;

my ($good, $bad) = (0, 0);
while (<>) {
    chomp;
    my ($want, @lines) = split /\t/;
    my $sum = 0;
    for (@lines) {
        my ($cents, $quantity) = split /\*/;
        $sum += $cents * $quantity;
    }
    Checkout::rounded($sum, 5) == $want ? $good++ : $bad++;
}
print "$good passed, $bad failed\n";
exit($bad ? 1 : 0);
""",
            "conf/test.ini": r"""[checkout]
currency = EUR
rounding = 5

[metrics]
host = 127.0.0.1
port = 18882
ack = 0.6
tries = 2
""",
            "lib/Checkout.pm": r"""package Checkout;
use strict;
use warnings;
use Metrics::Client;

sub conf {
    my ($file) = @_;
    my (%conf, $section);
    open my $in, '<', $file or die "$file: $!";
    while (<$in>) {
        if (/^\[(\w+)\]/) { $section = $1 }
        elsif (/^(\w+)\s*=\s*(\S+)/) { $conf{$section}{$1} = $2 }
    }
    return \%conf;
}

sub new {
    my ($class, $conf) = @_;
    return bless { lines => [], round => $conf->{checkout}{rounding}, metrics => Metrics::Client->new(%{ $conf->{metrics} }) }, $class;
}

sub add {
    my ($self, $cents, $quantity) = @_;
    push @{ $self->{lines} }, [$cents, $quantity];
    $self->{metrics}->count('checkout.line');
}

sub rounded {
    my ($cents, $step) = @_;
    return int($cents / $step + 0.5) * $step;
}

sub total {
    my ($self) = @_;
    my $sum = 0;
    $sum += $_->[0] * $_->[1] for @{ $self->{lines} };
    return rounded($sum, $self->{round});
}

sub close {
    my ($self) = @_;
    my $total = $self->total;
    $self->{metrics}->count('checkout.cents', $total);
    $self->{metrics}->flush;
    $self->{lines} = [];
    return $total;
}

1;
""",
            "lib/Metrics/Client.pm": r"""package Metrics::Client;
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use Socket qw(inet_aton pack_sockaddr_in);

sub new {
    my ($class, %conf) = @_;
    my $self = bless { lines => [], %conf }, $class;
    $self->{port} = $ENV{METRICS_PORT} if $ENV{METRICS_PORT};
    $self->{socket} = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1') or die "udp: $!";
    $self->{to} = pack_sockaddr_in($self->{port}, inet_aton($self->{host}));
    return $self;
}

sub count {
    my ($self, $name, $value) = @_;
    push @{ $self->{lines} }, "$name:" . ($value // 1) . '|c';
}

# Sends what has been counted; the collector acknowledges the packet.
sub flush {
    my ($self) = @_;
    my $packet = join "\n", splice @{ $self->{lines} };
    my $select = IO::Select->new($self->{socket});
    for my $try (1 .. $self->{tries}) {
        $self->{socket}->send($packet, 0, $self->{to});
        next unless $select->can_read($self->{ack});
        $self->{socket}->recv(my $answer, 64);
        return 1;
    }
    return 0;
}

1;
""",
            "t/basket.t": r"""use strict;
use warnings;
use Test::More tests => 2;
use Checkout;

my $checkout = Checkout->new(Checkout::conf('conf/test.ini'));
$checkout->add(199, 3);
$checkout->add(50, 1);
is($checkout->total, 645, 'rounded to five');
is($checkout->close, 645, 'closed with the same total');
""",
            "t/checkout.t": r"""use strict;
use warnings;
use Test::More tests => 2;
use Checkout;

my $checkout = Checkout->new(Checkout::conf('conf/test.ini'));
is($checkout->total, 0, 'nothing bought');
$checkout->add(1000, $_) for 1 .. 40;
is($checkout->close, 820000, 'many lines');
""",
            "t/refund.t": r"""use strict;
use warnings;
use Test::More tests => 2;
use Checkout;

my $checkout = Checkout->new(Checkout::conf('conf/test.ini'));
$checkout->add(1998, 1);
$checkout->add(-998, 1);
is($checkout->close, 1000, 'part of it given back');
is($checkout->total, 0, 'empty afterwards');
""",
            "tools/collector.py": r'''"""collector.py PORT FILE: takes metrics by UDP, acknowledges and writes them."""
import signal
import socket
import sys

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.alarm(90)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("127.0.0.1", int(sys.argv[1])))
with open(sys.argv[2], "w") as out:
    while True:
        packet, peer = sock.recvfrom(65536)
        out.write(packet.decode() + "\n")
        out.flush()
        sock.sendto(b"ok", peer)
''',
            "tools/golden.py": r'''"""golden.py COUNT: totals of baskets as the accountants round them."""
import decimal
import random
import sys

rng = random.Random(4)
for _ in range(int(sys.argv[1])):
    lines = [(rng.randrange(1, 9999), rng.randrange(1, 9)) for _ in range(rng.randrange(1, 5))]
    total = sum(c * q for c, q in lines)
    fives = (decimal.Decimal(total) / 5).quantize(decimal.Decimal(1), decimal.ROUND_HALF_UP)
    print(int(fives) * 5, *("%d*%d" % line for line in lines), sep="\t")
''',
        },
        "",
    ),
    Plant(
        "w28-catalog-ready",
        "poll",
        "Go test binary waiting for a Java server; doubling sleeps between health checks on loopback",
        "catalog-itest asks the catalogue server's port with pauses that double (0.5, 1, 2 s), so it still sleeps long after the Java server is ready; ask at a short constant pause (ITEST_WAIT_MAX=50ms) or have the server announce that it is ready.",
        r"(?i)catalog-itest",
        {
            "run.sh": r"""#!/bin/bash
# job: catalog (lint, index, integration)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf var && mkdir -p var
server=
trap '[ -z "$server" ] || kill $server 2> /dev/null || true' EXIT
[ -n "${FIX:-}" ] && export ITEST_WAIT_MAX=50ms

echo "== lint"
test -z "$(gofmt -l itest)"
javac -Xlint:all -proc:none -d var/lint service/Catalog.java

echo "== data"
awk 'BEGIN { srand(5); for (i = 1; i <= 150000; i++) printf "%d\tproduct %d %x\t%d\n", i, i % 977, i * 7919 % 65521, 100 + int(rand() * 90000) }' > var/products.tsv

echo "== integration"
timeout 90 java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m -Dsun.net.httpserver.nodelay=true -cp classes Catalog 18883 var/products.tsv > var/server.log 2>&1 & server=$!
bin/catalog-itest -base http://127.0.0.1:18883 -products var/products.tsv
kill $server
wait $server 2> /dev/null || true
server=
cat var/server.log
""",
            "setup.sh": r"""set -e
export GOCACHE=$PWD/.gocache GOFLAGS=-mod=mod GOPROXY=off
mkdir -p bin classes
(cd itest && go build -p 1 -o ../bin/catalog-itest .)
rm -rf .gocache
javac -d classes service/Catalog.java
""",
            "itest/go.mod": r"""module example.com/shop/catalog/itest

go 1.19
""",
            "itest/main.go": r"""// catalog-itest checks a running catalogue server against the products' file.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

var client = &http.Client{Timeout: 5 * time.Second}

func get(url string) (int, string, error) {
	res, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// ready asks until the server answers.
func ready(base string, limit time.Duration) error {
	most := limit
	if text := os.Getenv("ITEST_WAIT_MAX"); text != "" {
		given, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		most = given
	}
	end := time.Now().Add(limit)
	pause := 500 * time.Millisecond
	for time.Now().Before(end) {
		if status, _, err := get(base + "/health"); err == nil && status == 200 {
			return nil
		}
		if pause > most {
			pause = most
		}
		time.Sleep(pause)
		pause *= 2
	}
	return fmt.Errorf("%s not ready after %s", base, limit)
}

func run(base, products string) (passed, failed int, err error) {
	if err := ready(base, 30*time.Second); err != nil {
		return 0, 0, err
	}
	file, err := os.Open(products)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	counts := map[string]int{}
	in := bufio.NewScanner(file)
	for n := 0; in.Scan(); n++ {
		fields := strings.Split(in.Text(), "\t")
		for _, word := range strings.Fields(fields[1]) {
			counts[word]++
		}
		if n%500 != 0 {
			continue
		}
		status, body, err := get(base + "/product/" + fields[0])
		if err == nil && status == 200 && strings.HasPrefix(body, fields[1]+"\t"+fields[2]+"\t") {
			passed++
		} else {
			failed++
		}
	}
	for _, word := range []string{"product", "1", "976", "nothing"} {
		_, body, err := get(base + "/word/" + word)
		if err == nil && body == fmt.Sprint(counts[word]) {
			passed++
		} else {
			failed++
		}
	}
	return passed, failed, in.Err()
}

func main() {
	base := flag.String("base", "http://127.0.0.1:8080", "address of the server")
	products := flag.String("products", "products.tsv", "products the server has loaded")
	flag.Parse()
	passed, failed, err := run(*base, *products)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
""",
            "service/Catalog.java": r"""import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Catalogue of products in memory: by number and by word. */
public final class Catalog {
    private final Map<String, String> products = new HashMap<>();
    private final Map<String, List<String>> words = new TreeMap<>();

    private void load(Path file) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t");
            byte[] sign = line.getBytes(StandardCharsets.UTF_8);
            for (int i = 0; i < ROUNDS; i++) {
                sign = digest.digest(sign);
            }
            products.put(fields[0], fields[1] + "\t" + fields[2] + "\t" + (sign[0] & 255));
            for (String word : fields[1].split(" ")) {
                words.computeIfAbsent(word, w -> new ArrayList<>()).add(fields[0]);
            }
        }
    }

    private static final int ROUNDS = Integer.getInteger("catalog.rounds", 16);

    private static void answer(HttpExchange exchange, int status, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws Exception {
        Catalog catalog = new Catalog();
        catalog.load(Path.of(args[1]));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/health", e -> answer(e, 200, "ok"));
        server.createContext("/product/", e -> {
            String found = catalog.products.get(e.getRequestURI().getPath().substring(9));
            answer(e, found == null ? 404 : 200, found == null ? "none" : found);
        });
        server.createContext("/word/", e -> {
            List<String> found = catalog.words.getOrDefault(e.getRequestURI().getPath().substring(6), List.of());
            answer(e, 200, String.valueOf(found.size()));
        });
        server.start();
        System.out.println("catalogue of " + catalog.products.size() + " products");
    }
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w28-web-shards",
        "pool",
        "JavaScript, node:test; two shards cut alphabetically, waited for together",
        "scripts/shard.sh gives the first half of the sorted test files to shard 1 and the second half to shard 2; shard 2 has all the long ones (render, search, sitemap, tax) and runs alone for most of the time; deal the files by their durations (or let both take from one queue).",
        r"(?i)(shard|\b(render|search|sitemap|tax)\.test)",
        {
            "run.sh": r"""#!/bin/bash
# job: web (lint, unit in two shards, bundle)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf out && mkdir -p out

echo "== lint"
for f in src/*.js test/*.js; do echo "$f"; done | xargs -n 4 node scripts/syntax.js

echo "== unit"
if [ -n "${FIX:-}" ]; then
  export SHARD_TIMES=scripts/times.tsv
fi
bash scripts/shard.sh 1 2 > out/shard1.log 2>&1 & one=$!
bash scripts/shard.sh 2 2 > out/shard2.log 2>&1 & two=$!
wait $one
wait $two
grep -hE '^# (pass|fail) ' out/shard*.log | sort | uniq -c

echo "== bundle"
cat src/*.js | gzip -9 > out/web.js.gz
""",
            "scripts/shard.sh": r"""#!/bin/bash
# shard.sh I N: the I-th part of N of the test files, one process each
set -euo pipefail
i=$1 n=$2
mapfile -t files < <(ls test/*.test.js | LC_ALL=C sort)
count=${#files[@]}
if [ -n "${SHARD_TIMES:-}" ]; then
  mapfile -t mine < <(awk -v i="$i" -v n="$n" '
    { best = 1; for (k = 2; k <= n; k++) if (load[k] < load[best]) best = k; load[best] += $1; if (best == i) print "test/" $2 }
  ' <(sort -rn "$SHARD_TIMES"))
else
  per=$(((count + n - 1) / n))
  mine=("${files[@]:(i - 1) * per:per}")
fi
for file in "${mine[@]}"; do
  echo "# $file"
  node --test-reporter=tap "$file"
done
""",
            "scripts/syntax.js": r"""// syntax.js FILE...: parses the files and refuses tabs and var
const fs = require("fs");
const vm = require("vm");
const { Module } = require("module");
let bad = 0;
for (const file of process.argv.slice(2)) {
  const text = fs.readFileSync(file, "utf8");
  new vm.Script(Module.wrap(text), { filename: file });
  if (/\t|^\s*var /m.test(text)) {
    console.error(`${file}: style`);
    bad = 1;
  }
}
process.exit(bad);
""",
            "scripts/times.tsv": r"""0.2	address.test.js
0.2	auth.test.js
0.2	basket.test.js
0.2	currency.test.js
1.1	render.test.js
1.1	search.test.js
0.9	sitemap.test.js
0.8	tax.test.js
""",
            "src/money.js": r""""use strict";
function format(cents, currency) {
  const sign = cents < 0 ? "-" : "";
  const whole = Math.floor(Math.abs(cents) / 100).toString().replace(/\B(?=(\d{3})+$)/g, ".");
  return `${sign}${whole},${String(Math.abs(cents) % 100).padStart(2, "0")} ${currency}`;
}
function parse(text) {
  const found = /^(-?)([\d.]+),(\d\d) [A-Z]{3}$/.exec(text);
  if (!found) throw new RangeError(text);
  return (found[1] ? -1 : 1) * (Number(found[2].replaceAll(".", "")) * 100 + Number(found[3]));
}
function tax(lines, rates) {
  const sums = {};
  for (const { cents, rate } of lines) sums[rate] = (sums[rate] || 0) + cents;
  return Object.entries(sums).reduce((all, [rate, cents]) => all + Math.round((cents * rates[rate]) / 100), 0);
}
module.exports = { format, parse, tax };
""",
            "src/render.js": r""""use strict";
const escapes = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };
const escape = (text) => text.replace(/[<>&"]/g, (c) => escapes[c]);
function render(template, values) {
  return template.replace(/\{\{(\w+)(?:\|(\w+))?\}\}/g, (_, name, how) => {
    const value = String(values[name] ?? "");
    return how === "raw" ? value : escape(value);
  });
}
function sitemap(paths) {
  const tree = new Map();
  for (const path of paths) {
    let at = tree;
    for (const part of path.split("/").filter(Boolean)) {
      if (!at.has(part)) at.set(part, new Map());
      at = at.get(part);
    }
  }
  const out = [];
  const walk = (at, prefix) => {
    for (const key of [...at.keys()].sort()) {
      out.push(`${prefix}/${key}`);
      walk(at.get(key), `${prefix}/${key}`);
    }
  };
  walk(tree, "");
  return out;
}
module.exports = { escape, render, sitemap };
""",
            "src/search.js": r""""use strict";
// Distance of two words (insert, delete, replace).
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    let corner = row[0];
    row[0] = i;
    for (let j = 1; j <= b.length; j++) {
      const up = row[j];
      row[j] = Math.min(up + 1, row[j - 1] + 1, corner + (a[i - 1] === b[j - 1] ? 0 : 1));
      corner = up;
    }
  }
  return row[b.length];
}
function nearest(word, words) {
  let best = words[0];
  let least = Infinity;
  for (const other of words) {
    const d = distance(word, other);
    if (d < least) [best, least] = [other, d];
  }
  return best;
}
module.exports = { distance, nearest };
""",
            "src/util.js": r""""use strict";
// A small generator of repeatable numbers for fixtures.
function numbers(seed) {
  let state = seed >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * limit);
  };
}
module.exports = { numbers };
""",
            "test/address.test.js": r""""use strict";
const test = require("node:test");
const assert = require("node:assert");
const { numbers } = require("../src/util");
const { escape } = require("../src/render");

test("addresses are escaped", () => {
  assert.equal(escape('<b>"A & B"</b>'), "&lt;b&gt;&quot;A &amp; B&quot;&lt;/b&gt;");
  const next = numbers(1);
  for (let i = 0; i < 40000; i++) assert.ok(!/[<>]/.test(escape(String.fromCharCode(32 + next(90), 60, 32 + next(90)))));
});
""",
            "test/auth.test.js": r""""use strict";
const test = require("node:test");
const assert = require("node:assert");
const { numbers } = require("../src/util");
const crypto = require("node:crypto");

test("a derived key is the same again", () => {
  const next = numbers(2);
  for (let i = 0; i < 6; i++) {
    const salt = String(next(1e9));
    const key = crypto.pbkdf2Sync("secret", salt, 6000, 32, "sha256");
    assert.deepEqual(crypto.pbkdf2Sync("secret", salt, 6000, 32, "sha256"), key);
  }
});
""",
            "test/basket.test.js": r""""use strict";
const test = require("node:test");
const assert = require("node:assert");
const { numbers } = require("../src/util");
const { tax } = require("../src/money");

test("a basket is taxed per rate", () => {
  assert.equal(tax([{ cents: 1000, rate: "full" }, { cents: 50, rate: "less" }], { full: 19, less: 7 }), 194);
  const next = numbers(3);
  for (let i = 0; i < 20000; i++) assert.ok(tax([{ cents: next(9999), rate: "full" }], { full: 19 }) >= 0);
});
""",
            "test/currency.test.js": r""""use strict";
const test = require("node:test");
const assert = require("node:assert");
const { numbers } = require("../src/util");
const { format } = require("../src/money");

test("sums are written as people read them", () => {
  assert.equal(format(123456789, "EUR"), "1.234.567,89 EUR");
  const next = numbers(4);
  for (let i = 0; i < 40000; i++) assert.match(format(next(1e9), "EUR"), /,\d\d EUR$/);
});
""",
            "test/render.test.js": r""""use strict";
const test = require("node:test");
const assert = require("node:assert");
const { numbers } = require("../src/util");
const { render } = require("../src/render");

test("templates of every size", () => {
  const next = numbers(5);
  for (let round = 0; round < 10000; round++) {
    const names = Array.from({ length: 60 }, (_, i) => `v${i}`);
    const template = names.map((name) => `<p class="x">{{${name}}} {{${name}|raw}}</p>`).join("\n");
    const values = Object.fromEntries(names.map((name) => [name, `<${next(1e6)}&${next(1e6)}>`]));
    const page = render(template, values);
    assert.ok(page.includes(`&lt;${values.v7.slice(1).split("&")[0]}&amp;`));
    assert.ok(!page.includes("{{"));
  }
});
""",
            "test/search.test.js": r""""use strict";
const test = require("node:test");
const assert = require("node:assert");
const { numbers } = require("../src/util");
const { nearest } = require("../src/search");

test("one typing error still finds the word", () => {
  const next = numbers(6);
  const letters = "abcdefghijklmnoprstuvwz";
  const words = Array.from({ length: 1500 }, () => Array.from({ length: 14 }, () => letters[next(letters.length)]).join(""));
  for (let i = 0; i < 340; i++) {
    const word = words[next(words.length)];
    const at = next(word.length);
    assert.equal(nearest(word.slice(0, at) + "x" + word.slice(at + 1), words), word);
  }
});
""",
            "test/sitemap.test.js": r""""use strict";
const test = require("node:test");
const assert = require("node:assert");
const { numbers } = require("../src/util");
const { sitemap } = require("../src/render");

test("every page of a large shop is listed once", () => {
  const next = numbers(7);
  for (let round = 0; round < 24; round++) {
    const paths = Array.from({ length: 18000 }, () => `/shop/${next(300)}/${next(40)}/item-${next(900)}`);
    const listed = sitemap(paths);
    assert.equal(new Set(listed).size, listed.length);
    assert.ok(paths.every((path) => path.startsWith("/shop")));
  }
});
""",
            "test/tax.test.js": r""""use strict";
const test = require("node:test");
const assert = require("node:assert");
const { numbers } = require("../src/util");
const { tax, format, parse } = require("../src/money");

test("written sums are read back", () => {
  const next = numbers(8);
  for (let i = 0; i < 1200000; i++) {
    const cents = next(1e9) - 5e8;
    if (parse(format(cents, "EUR")) !== cents) assert.fail(String(cents));
  }
  assert.equal(tax([], {}), 0);
});
""",
        },
        "",
    ),
    Plant(
        "w28-wire-late",
        "order",
        "C++, make -j2; the longest object of a build comes last in alphabetical order",
        "make -j2 compiles the objects in the order of their names, so src/wire_schema.cpp, by far the longest compilation, starts last and runs alone; start it first (FIRST=wire_schema) or split it.",
        r"(?i)wire_schema",
        {
            "run.sh": r"""#!/bin/bash
# job: wire (lint, build, unit, package)
set -euo pipefail
cd "$(dirname "$0")"
export CCACHE_DISABLE=1
rm -rf build && mkdir -p build

echo "== lint"
/usr/bin/python3 tools/style.py src tests

echo "== build"
if [ -n "${FIX:-}" ]; then
  make -s -j2 FIRST=wire_schema build/wire-test
else
  make -s -j2 build/wire-test
fi

echo "== unit"
build/wire-test

echo "== package"
size build/libwire.a | tail -n 1
tar -czf build/wire.tar.gz -C build libwire.a
""",
            "setup.sh": r"""set -e
/usr/bin/python3 tools/schema.py 40 > src/wire_schema.cpp
""",
            "Makefile": r"""CXX = g++
CXXFLAGS = -std=c++17 -O2 -Wall -Isrc
NAMES := $(sort $(basename $(notdir $(wildcard src/*.cpp))))
OBJS := $(patsubst %,build/%.o,$(FIRST) $(filter-out $(FIRST),$(NAMES)))

build/wire-test: build/libwire.a tests/main.cpp
	$(CXX) $(CXXFLAGS) -O0 -o $@ tests/main.cpp build/libwire.a

build/libwire.a: $(OBJS)
	rm -f $@
	ar rcs $@ $(sort $^)

build/%.o: src/%.cpp src/wire.h
	$(CXX) $(CXXFLAGS) -c -o $@ $<
""",
            "src/checksum.cpp": r"""#include "wire.h"
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace wire {
static std::array<uint32_t, 256> table() {
    std::array<uint32_t, 256> t{};
    std::iota(t.begin(), t.end(), 0u);
    std::transform(t.begin(), t.end(), t.begin(), [](uint32_t c) {
        for (int i = 0; i < 8; i++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        return c;
    });
    return t;
}

uint32_t checksum(const Bytes& in) {
    static const std::function<std::array<uint32_t, 256>()> make = table;
    static const auto t = make();
    return ~std::accumulate(in.begin(), in.end(), ~0u, [](uint32_t c, unsigned char b) { return t[(c ^ b) & 255] ^ (c >> 8); });
}
}
""",
            "src/escape.cpp": r"""#include "wire.h"
#include <algorithm>
#include <cctype>
#include <iomanip>
#include <sstream>

namespace wire {
Bytes escape(const Bytes& in) {
    if (std::all_of(in.begin(), in.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; })) return in;
    std::ostringstream out;
    for (unsigned char c : in) {
        if (std::isalnum(c)) out << c;
        else out << '%' << std::hex << std::setw(2) << std::setfill('0') << int(c);
    }
    return out.str();
}
}
""",
            "src/frames.cpp": r"""#include "wire.h"
#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <variant>

namespace wire {
std::vector<Bytes> frames(const Bytes& in) {
    std::vector<std::variant<size_t, Bytes>> parts;
    size_t at = 0;
    while (at < in.size()) {
        size_t length = take(in, at);
        if (length > in.size() - at) throw std::out_of_range("frame");
        parts.emplace_back(in.substr(at, length));
        at += length;
    }
    std::vector<Bytes> out;
    for (auto& part : parts) if (auto* bytes = std::get_if<Bytes>(&part)) out.push_back(*bytes);
    std::stable_sort(out.begin(), out.end(), [](const Bytes& a, const Bytes& b) { return a.size() < b.size(); });
    return out;
}
}
""",
            "src/header.cpp": r"""#include "wire.h"
#include <algorithm>
#include <sstream>

namespace wire {
static std::string trim(const std::string& text) {
    size_t from = text.find_first_not_of(" \t\r"), to = text.find_last_not_of(" \t\r");
    return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

std::map<std::string, std::string> header(const std::string& text) {
    std::map<std::string, std::string> out;
    std::istringstream in(text);
    std::string row;
    while (std::getline(in, row)) {
        size_t colon = row.find(':');
        if (colon != std::string::npos) out[trim(row.substr(0, colon))] = trim(row.substr(colon + 1));
    }
    return out;
}
}
""",
            "src/names.cpp": r"""#include "wire.h"
#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace wire {
std::string name(const std::string& text) {
    auto upper = [&](size_t i) { return i < text.size() && std::isupper((unsigned char)text[i]); };
    std::vector<std::string> words;
    for (size_t i = 0; i < text.size(); i++) {
        bool first = words.empty() || (upper(i) && (!upper(i - 1) || (i + 1 < text.size() && !upper(i + 1))));
        if (first) words.emplace_back();
        words.back() += char(std::tolower((unsigned char)text[i]));
    }
    return std::accumulate(words.begin(), words.end(), std::string(), [](const std::string& a, const std::string& b) { return a.empty() ? b : a + "_" + b; });
}
}
""",
            "src/varint.cpp": r"""#include "wire.h"
#include <stdexcept>

namespace wire {
void put(Bytes& out, uint64_t number) {
    while (number > 127) {
        out += char(number | 128);
        number >>= 7;
    }
    out += char(number);
}

uint64_t take(const Bytes& in, size_t& at) {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (at >= in.size()) throw std::out_of_range("varint");
        unsigned char c = in[at++];
        number |= uint64_t(c & 127) << shift;
        if (c < 128) return number;
    }
    throw std::out_of_range("varint");
}
}
""",
            "src/wire.h": r"""#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace wire {
using Bytes = std::string;
void put(Bytes& out, uint64_t number);
uint64_t take(const Bytes& in, size_t& at);
Bytes escape(const Bytes& in);
std::map<std::string, std::string> header(const std::string& text);
std::string name(const std::string& text);
uint32_t checksum(const Bytes& in);
std::vector<Bytes> frames(const Bytes& in);
bool roundtrip(unsigned message, uint64_t seed);
unsigned messages();
}
""",
            "tests/main.cpp": r"""#include "wire.h"
#include <cstdio>

static int passed, failed;
static void check(bool good, const char* what) {
    if (good) passed++;
    else { failed++; std::printf("failed: %s\n", what); }
}

int main() {
    for (unsigned m = 0; m < wire::messages(); m++)
        for (uint64_t seed = 1; seed < 200; seed++) check(wire::roundtrip(m, seed), "message");
    check(wire::checksum("123456789") == 0xCBF43926u, "checksum");
    check(wire::name("OrderIDList") == "order_id_list", "name");
    check(wire::escape("a b") == "a%20b", "escape");
    check(wire::header("To: me\nFrom : you \n")["From"] == "you", "header");
    check(wire::frames(std::string("\x02hi\x01x")).size() == 2, "frames");
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
""",
            "tools/schema.py": r'''"""schema.py COUNT: the messages of the protocol as C++."""
import random
import sys

rng = random.Random(12)
count = int(sys.argv[1])
print('#include "wire.h"\n#include <optional>\n#include <tuple>\n\nnamespace wire {')
for m in range(count):
    fields = [rng.choice(["uint64_t", "std::string", "std::optional<uint64_t>"]) for _ in range(rng.randint(5, 9))]
    print("struct M%d {" % m)
    for i, kind in enumerate(fields):
        print("    %s f%d{};" % (kind, i))
    every = ", ".join("f%d" % i for i in range(len(fields)))
    print("    auto all() const { return std::tie(%s); }" % every)
    print("    Bytes write() const {\n        Bytes out;")
    for i, kind in enumerate(fields):
        if kind == "uint64_t":
            print("        put(out, f%d);" % i)
        elif kind == "std::string":
            print("        put(out, f%d.size());\n        out += f%d;" % (i, i))
        else:
            print("        put(out, f%d ? 1 : 0);\n        if (f%d) put(out, *f%d);" % (i, i, i))
    print("        return out;\n    }\n    static M%d read(const Bytes& in) {\n        M%d m;\n        size_t at = 0;" % (m, m))
    for i, kind in enumerate(fields):
        if kind == "uint64_t":
            print("        m.f%d = take(in, at);" % i)
        elif kind == "std::string":
            print("        { size_t n = take(in, at); m.f%d = in.substr(at, n); at += n; }" % i)
        else:
            print("        if (take(in, at)) m.f%d = take(in, at);" % i)
    print("        return m;\n    }\n    static bool same(uint64_t s) {\n        M%d m;" % m)
    for i, kind in enumerate(fields):
        if kind == "std::string":
            print("        m.f%d = std::to_string(s * %d);" % (i, i + 3))
        else:
            print("        m.f%d = s * %d;" % (i, 97 * i + 1))
    print("        return read(m.write()).all() == m.all();\n    }\n};\n")
print("unsigned messages() { return %d; }\n\nbool roundtrip(unsigned message, uint64_t seed) {\n    switch (message) {" % count)
for m in range(count):
    print("    case %d: return M%d::same(seed);" % (m, m))
print("    }\n    return false;\n}\n}")
''',
            "tools/style.py": r'''"""style.py DIR...: no tabs, no lines of more than 160 characters, a newline at the end."""
import pathlib
import sys

bad = 0
for root in sys.argv[1:]:
    for path in sorted(pathlib.Path(root).glob("*.[ch]*")):
        text = path.read_text()
        if "\t" in text or not text.endswith("\n") or max(map(len, text.splitlines())) > 160:
            print("style:", path)
            bad = 1
sys.exit(bad)
''',
        },
        "sh setup.sh",
    ),
    Plant(
        "w28-ui-eslint",
        "repeat",
        "JavaScript, eslint started once per file by a shell script; npm packages",
        "scripts/lint.sh starts eslint anew for each of the 16 files, and each start loads node and all of eslint (0.3 s and more); give all files to one eslint.",
        r"(?i)(eslint|lint\.sh)",
        {
            "run.sh": r"""#!/bin/bash
# job: ui (lint, unit, package)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf out && mkdir -p out
export PATH="$PWD/node_modules/.bin:$PATH"
[ -n "${FIX:-}" ] && export LINT_BATCH=200

echo "== lint"
bash scripts/lint.sh packages

echo "== unit"
for p in packages/*; do
  node scripts/unit.js "$p"
done

echo "== package"
for p in packages/*; do
  tar -czf out/"$(basename "$p")".tgz -C packages "$(basename "$p")"
done
""",
            "setup.sh": r"""set -e
npm install --no-audit --no-fund --no-progress --ignore-scripts --prefix . eslint@8.57.0
/usr/bin/python3 scripts/fixtures.py
""",
            ".eslintrc.json": r"""{
  "root": true,
  "env": { "node": true, "es2022": true },
  "extends": "eslint:recommended",
  "rules": { "eqeqeq": "error", "no-shadow": "error", "prefer-const": "error", "complexity": ["error", 12] }
}
""",
            "package.json": r"""{
  "name": "ui-monorepo",
  "private": true,
  "version": "4.2.0",
  "scripts": { "lint": "bash scripts/lint.sh" },
  "devDependencies": { "eslint": "8.57.0" }
}
""",
            "scripts/fixtures.py": r'''"""Lays out the packages: four of them with a few modules each."""
import pathlib

root = pathlib.Path("packages")
for package in ("button", "dialog", "grid", "theme"):
    for module in ("index", "layout", "state", "style"):
        path = root / package / "src" / (module + ".js")
        path.parent.mkdir(parents=True, exist_ok=True)
        out = ['"use strict";', "// %s of %s" % (module, package), ""]
        for i in range(24):
            out += [
                "function step%d(value) {" % i,
                "  if (value %% %d === 0) {" % (i + 2),
                "    return value / %d;" % (i + 2),
                "  }",
                "  return value * %d + %d;" % (i % 3 + 1, i),
                "}",
                "",
            ]
        out += ["const steps = [%s];" % ", ".join("step%d" % i for i in range(24)),
                "const run = (value) => steps.reduce((all, step) => Math.floor(step(all)) % 10007, value);",
                "const checks = [1, 2, 3, 500].map((value) => [value, run(value)]);",
                "", "module.exports = { run, checks };", ""]
        path.write_text("\n".join(out))
''',
            "scripts/lint.sh": r"""#!/bin/bash
# lint.sh DIR: every source file of the packages below DIR
find "$1" -name '*.js' | LC_ALL=C sort | xargs -n "${LINT_BATCH:-1}" eslint --max-warnings 0
""",
            "scripts/unit.js": r"""// unit.js PACKAGE: runs the checks that every module of the package exports
const fs = require("fs");
const path = require("path");
const dir = path.resolve(process.argv[2], "src");
let passed = 0;
let failed = 0;
for (const file of fs.readdirSync(dir).sort()) {
  const unit = require(path.join(dir, file));
  for (const [input, output] of unit.checks) {
    if (unit.run(input) === output) passed++;
    else failed++;
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w28-rust-flags",
        "cache",
        "Rust, cargo workspace; RUSTFLAGS set for one of two steps, so that everything is compiled twice",
        'the step unit runs cargo test with RUSTFLAGS="-D warnings" while the step build ran cargo build without it, so cargo throws its own results away and rustc compiles the crates codec and rules a second time; give both steps the same RUSTFLAGS.',
        r"(?i)(RUSTFLAGS|-D warnings|cargo test|twice|again|second time|\b2 times)",
        {
            "run.sh": r"""#!/bin/bash
# job: rules-service (style, build, unit, smoke, package)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf target out && mkdir -p out
export CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=never CARGO_NET_OFFLINE=true CARGO_BUILD_JOBS=2
export PATH="$PATH:$HOME/.cargo/bin"
unset RUSTFLAGS CARGO_TARGET_DIR RUSTC_WRAPPER
[ -n "${FIX:-}" ] && export RUSTFLAGS="-D warnings"

echo "== style"
perl -ne 'die "$ARGV: tab in line $.\n" if /\t/; close ARGV if eof' codec/src/*.rs rules/src/*.rs service/src/*.rs

echo "== build"
cargo build --workspace

echo "== unit"
RUSTFLAGS="-D warnings" cargo test --workspace --quiet

echo "== smoke"
seq 1 2000 | target/debug/service > out/smoke.txt
tail -n 1 out/smoke.txt

echo "== package"
cp target/debug/service out/
gzip -1 out/service
""",
            "setup.sh": r"""set -e
mkdir -p codec/src rules/src
/usr/bin/python3 tools/generate.py 165
""",
            "Cargo.toml": r"""[workspace]
members = ["codec", "rules", "service"]
resolver = "2"

[profile.dev]
debug = 0
""",
            "codec/Cargo.toml": r"""[package]
name = "codec"
version = "3.1.0"
edition = "2021"

[dependencies]

[lib]
test = false
doctest = false
""",
            "codec/tests/roundtrip.rs": r"""#[test]
fn every_record_comes_back() {
    for kind in 0..codec::KINDS {
        for seed in 1..40u64 {
            let bytes = codec::sample(kind, seed);
            assert_eq!(codec::rewrite(kind, &bytes), Some(bytes));
        }
    }
}
""",
            "rules/Cargo.toml": r"""[package]
name = "rules"
version = "3.1.0"
edition = "2021"

[dependencies]
codec = { path = "../codec" }

[lib]
test = false
doctest = false
""",
            "rules/tests/apply.rs": r"""#[test]
fn rules_are_the_same_again() {
    for number in 0..500 {
        assert_eq!(rules::apply(number), rules::apply(number));
    }
}

#[test]
fn nothing_is_free() {
    assert!((1..500).all(|number| rules::apply(number) > 0));
}
""",
            "service/Cargo.toml": r"""[package]
name = "service"
version = "3.1.0"
edition = "2021"

[dependencies]
codec = { path = "../codec" }
rules = { path = "../rules" }

[[bin]]
name = "service"
path = "src/main.rs"
test = false
""",
            "service/src/main.rs": r"""use std::io::BufRead;

fn main() {
    let mut sum = 0u64;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.trim().parse() {
            Ok(number) => {
                let price = rules::apply(number);
                sum = sum.wrapping_add(price);
                println!("{number}\t{price}");
            }
            Err(error) => eprintln!("{line}: {error}"),
        }
    }
    println!("sum\t{sum}\tof {} kinds", codec::KINDS);
}
""",
            "tools/generate.py": r'''"""generate.py COUNT: the records of the codec and the price rules as Rust."""
import random
import sys

rng = random.Random(21)
count = int(sys.argv[1])
out = ["//! Records, generated from the schema.", "", "pub const KINDS: u32 = %d;" % count, ""]
for k in range(count):
    fields = [(("f%d" % i), rng.choice(["u64", "String"])) for i in range(rng.randint(4, 7))]
    out += ["#[derive(Debug, Clone, PartialEq, Default)]", "pub struct R%d {" % k]
    out += ["    pub %s: %s," % f for f in fields]
    out += ["}", "", "impl R%d {" % k, "    fn write(&self) -> Vec<u8> {", "        let mut out = Vec::new();"]
    for name, kind in fields:
        if kind == "u64":
            out.append("        out.extend_from_slice(&self.%s.to_le_bytes());" % name)
        else:
            out.append("        out.push(self.%s.len() as u8);" % name)
            out.append("        out.extend_from_slice(self.%s.as_bytes());" % name)
    out += ["        out", "    }", "", "    fn read(mut bytes: &[u8]) -> Option<Self> {", "        let mut r = Self::default();"]
    for name, kind in fields:
        if kind == "u64":
            out.append("        r.%s = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);" % name)
            out.append("        bytes = &bytes[8..];")
        else:
            out.append("        let n = *bytes.first()? as usize;")
            out.append("        r.%s = String::from_utf8(bytes.get(1..1 + n)?.to_vec()).ok()?;" % name)
            out.append("        bytes = &bytes[1 + n..];")
    out += ["        bytes.is_empty().then_some(r)", "    }", "", "    fn sample(s: u64) -> Self {", "        Self {"]
    for i, (name, kind) in enumerate(fields):
        out.append("            %s: %s," % (name, "s * %d" % (i + 3) if kind == "u64" else 'format!("x{}", s + %d)' % i))
    out += ["        }", "    }", "}", ""]
out += ["pub fn sample(kind: u32, s: u64) -> Vec<u8> {", "    match kind {"]
out += ["        %d => R%d::sample(s).write()," % (k, k) for k in range(count)]
out += ["        _ => Vec::new(),", "    }", "}", "", "pub fn rewrite(kind: u32, bytes: &[u8]) -> Option<Vec<u8>> {", "    match kind {"]
out += ["        %d => R%d::read(bytes).map(|r| r.write())," % (k, k) for k in range(count)]
out += ["        _ => None,", "    }", "}", ""]
open("codec/src/lib.rs", "w").write("\n".join(out))

out = ["//! Price rules, generated from the table of the purchasing department.", ""]
for k in range(count * 2):
    out += ["fn rule%d(number: u64, tags: &[String]) -> u64 {" % k,
            "    let hits = tags.iter().filter(|t| t.len() > %d && t.contains(\"%d\")).count() as u64;" % (k % 5, k % 10),
            "    let mut parts: Vec<u64> = (1..%d).map(|i| (number ^ i).wrapping_mul(%d) %% 9973).collect();" % (4 + k % 5, 2 * k + 3),
            "    parts.sort_unstable();",
            "    parts.iter().fold(hits, |all, part| all.wrapping_mul(31).wrapping_add(*part)) % 100_000 + 1",
            "}", ""]
out += ["pub fn apply(number: u64) -> u64 {",
        "    let tags: Vec<String> = codec::sample((number % codec::KINDS as u64) as u32, number + 1).chunks(4).map(|c| format!(\"{c:?}\")).collect();",
        "    match number %% %d {" % (count * 2)]
out += ["        %d => rule%d(number, &tags)," % (k, k) for k in range(count * 2)]
out += ["        _ => 1,", "    }", "}", ""]
open("rules/src/lib.rs", "w").write("\n".join(out))
''',
        },
        "sh setup.sh",
    ),
    Plant(
        "w28-retry-meant",
        "none",
        "Ruby client, Node stub; Retry-After honoured in a test that asserts the time",
        "nothing to change: the Ruby test checks that Retry is as patient as the server's Retry-After headers (1 s, then 2 s) ask and asserts the elapsed time; the sleeps are what is tested.",
        r"nothing",
        {
            "run.sh": r"""#!/bin/bash
# job: http-client (lint, unit, integration, package)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf out && mkdir -p out
stub=
trap '[ -z "$stub" ] || kill $stub 2> /dev/null || true' EXIT

echo "== lint"
ruby -wc lib/retry.rb
node --check stub/server.js

echo "== unit"
ruby test/delays_test.rb

echo "== integration"
node stub/server.js 18884 > out/stub.log & stub=$!
timeout 10 bash -c "until (exec 3<> /dev/tcp/127.0.0.1/18884) 2> /dev/null; do sleep 0.02; done"
STUB=http://127.0.0.1:18884 ruby test/retry_test.rb
kill $stub
wait $stub 2> /dev/null || true
stub=
cat out/stub.log

echo "== package"
tar -czf out/retry.tar.gz lib
""",
            "lib/retry.rb": r"""require "net/http"
require "uri"

# GET that tries again when the server asks for it.
class Retry
  Refused = Class.new(StandardError)

  def initialize(tries: 4, most: 30)
    @tries = tries
    @most = most
  end

  # Seconds to stay away: what the server says, or doubling from 1 s.
  def delay(header, attempt)
    seconds = header ? Integer(header, 10) : 2**attempt
    [seconds, @most].min
  end

  def get(url)
    uri = URI(url)
    @tries.times do |attempt|
      response = Net::HTTP.get_response(uri)
      return response.body if response.is_a?(Net::HTTPSuccess)
      raise Refused, response.code unless %w[429 503].include?(response.code)

      sleep delay(response["Retry-After"], attempt)
    end
    raise Refused, "after #{@tries} tries"
  end
end
""",
            "stub/server.js": r"""// server.js PORT: a stock service that is overloaded twice and counts whoever comes back too early
const http = require("http");
const answers = [
  [429, "1"],
  [503, "2"],
];
let allowed = 0;
setTimeout(() => process.exit(1), 90000);
http
  .createServer((request, response) => {
    const now = Date.now();
    if (now < allowed) console.log(`too early by ${allowed - now} ms`);
    const next = answers.shift();
    if (next) {
      allowed = now + Number(next[1]) * 1000;
      response.writeHead(next[0], { "Retry-After": next[1], Connection: "close" });
      response.end();
    } else {
      response.writeHead(now < allowed ? 400 : 200, { Connection: "close" });
      response.end("stock 12");
      console.log(`${request.url} served`);
    }
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
""",
            "test/delays_test.rb": r"""require "minitest/autorun"
require_relative "../lib/retry"

class DelaysTest < Minitest::Test
  def test_header_wins
    assert_equal 7, Retry.new.delay("7", 3)
  end

  def test_doubles_without_a_header
    assert_equal [1, 2, 4], (0..2).map { |n| Retry.new.delay(nil, n) }
  end

  def test_never_longer_than_the_most
    assert_equal 5, Retry.new(most: 5).delay("3600", 0)
  end
end
""",
            "test/retry_test.rb": r"""require "minitest/autorun"
require_relative "../lib/retry"

class RetryTest < Minitest::Test
  def test_is_as_patient_as_the_server_asks
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    assert_equal "stock 12", Retry.new.get("#{ENV.fetch('STUB')}/stock")
    elapsed = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
    assert_operator elapsed, :>=, 3.0, "came back too early"
    assert_operator elapsed, :<, 6.0
  end
end
""",
        },
        "",
    ),
    Plant(
        "w28-ring-soak",
        "none",
        "Go soak test of fixed duration on one processor, time asked for by the job",
        "nothing to change: ring.test soaks the ring for the 4 s that RING_SOAK asks for, checking it against a model all the time; faster code only means more rounds.",
        r"nothing",
        {
            "run.sh": r"""#!/bin/bash
# job: ring-nightly (format, unit, soak, gate)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf out && mkdir -p out
export GOMAXPROCS=1

echo "== format"
test -z "$(gofmt -l ring)"

echo "== unit"
./ring.test -test.count 1

echo "== soak"
RING_SOAK=4s ./ring.test -test.run '^TestSoak$' -test.v -test.timeout 60s | tee out/soak.txt

echo "== gate"
awk '/ rounds$/ { seen = $(NF - 1) } END { if (seen < 1000) { print "only " seen + 0 " rounds"; exit 1 } }' out/soak.txt
""",
            "setup.sh": r"""set -e
export GOCACHE=$PWD/.gocache GOFLAGS=-mod=mod GOPROXY=off
(cd ring && go test -p 1 -c -o ../ring.test .)
rm -rf .gocache
""",
            "ring/go.mod": r"""module example.com/shop/ring

go 1.19
""",
            "ring/ring.go": r"""// Package ring keeps the last events of a session.
package ring

import "hash/fnv"

// Ring holds at most len(items) events.
type Ring struct {
	items []string
	next  int
	sums  map[uint64]int
}

// New makes a ring for size events.
func New(size int) *Ring {
	return &Ring{items: make([]string, size), sums: map[uint64]int{}}
}

func sum(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// Push adds an event and tells how often it is in the ring now.
func (r *Ring) Push(event string) int {
	if old := r.items[r.next]; old != "" {
		key := sum(old)
		if r.sums[key]--; r.sums[key] == 0 {
			delete(r.sums, key)
		}
	}
	r.items[r.next] = event
	r.next = (r.next + 1) % len(r.items)
	key := sum(event)
	r.sums[key]++
	return r.sums[key]
}
""",
            "ring/ring_test.go": r"""package ring

import (
	"fmt"
	"math/rand"
	"os"
	"testing"
	"time"
)

func TestCountsOnlyWhatIsKept(t *testing.T) {
	r := New(3)
	for i, want := range []int{1, 2, 3, 3, 3} {
		if got := r.Push("click"); got != want {
			t.Errorf("push %d: %d, not %d", i, got, want)
		}
	}
}

func TestForgets(t *testing.T) {
	r := New(2)
	r.Push("a")
	r.Push("b")
	r.Push("c")
	if got := r.Push("a"); got != 1 {
		t.Errorf("a: %d", got)
	}
}

// TestSoak compares the ring with a slow model for as long as RING_SOAK says.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("RING_SOAK"))
	if err != nil {
		t.Skip("RING_SOAK is not set")
	}
	random := rand.New(rand.NewSource(1))
	r := New(64)
	var model []string
	rounds := 0
	for end := time.Now().Add(length); time.Now().Before(end); rounds++ {
		event := fmt.Sprintf("event %d of a session", random.Intn(97))
		if model = append(model, event); len(model) > 64 {
			model = model[1:]
		}
		want := 0
		for _, kept := range model {
			if kept == event {
				want++
			}
		}
		if got := r.Push(event); got != want {
			t.Fatalf("round %d: %s: %d, not %d", rounds, event, got, want)
		}
	}
	fmt.Println(rounds, "rounds")
}
""",
        },
        "sh setup.sh",
    ),
    Plant(
        "w28-rule-chain",
        "none",
        "C, Perl, make -j2; a chain of generators in which each step needs the one before",
        "nothing to change: grammar.pl writes parser.c, which becomes rulec, which writes rules.c, which becomes rulecheck; each step needs the result of the one before and is needed, so -j2 has nothing to run beside them.",
        r"nothing",
        {
            "run.sh": r"""#!/bin/bash
# job: rules (lint, build, check)
set -euo pipefail
cd "$(dirname "$0")"
export CCACHE_DISABLE=1
rm -rf build && mkdir -p build

echo "== lint"
perl -wc tools/grammar.pl
gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only src/check.c

echo "== build"
make -s -j2 build/rulecheck

echo "== check"
build/rulecheck 200000
""",
            "Makefile": r"""CC = gcc
CFLAGS = -std=c11 -O1 -Wall -Isrc

build/rulecheck: build/rules.o build/check.o
	$(CC) -o $@ $^

build/rules.o: build/rules.c src/rules.h
	$(CC) $(CFLAGS) -c -o $@ $<

build/rules.c: build/rulec
	build/rulec 170 > $@

build/rulec: build/parser.o build/rulec.o
	$(CC) -o $@ $^

build/parser.o: build/parser.c
	$(CC) $(CFLAGS) -c -o $@ $<

build/parser.c: tools/grammar.pl
	perl $< 110 > $@

build/%.o: src/%.c src/rules.h
	$(CC) $(CFLAGS) -c -o $@ $<
""",
            "src/check.c": r"""/* rulecheck ROUNDS: every rule gives the same for the same values */
#include "rules.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 10, failed = 0, passed = 0;
    for (long i = 0; i < rounds; i++) {
        long values[8];
        for (int k = 0; k < 8; k++) values[k] = i * (k + 3) % 9973;
        for (int r = (int)(i % 16); r < rules(); r += 16) {
            if (rule(r, values) == rule(r, values)) passed++;
            else failed++;
        }
    }
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed != 0;
}
""",
            "src/rulec.c": r"""/* rulec COUNT: compiles the rules to C with the parser made from the grammar */
#include "rules.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 10;
    unsigned state = 5;
    char text[1201];
    printf("#include \"rules.h\"\n\n");
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < 1200; i++) text[i] = 'a' + next(&state) % 26;
        text[1200] = 0;
        printf("static long r%d(const long *v) {\n    long sum = v[%d];\n", r, r % 8);
        for (int i = 0; i < 8; i++) {
            int best = 0;
            for (int p = 0; p < PRODUCTIONS; p++) {
                for (int w = 0; w < 60; w++) {
                    int score = parse(p, text + i * 100 + w);
                    if (score > best) best = score;
                }
            }
            printf("    if (sum %% %d > v[%d] %% 13) sum += v[%d] * %d;\n    else sum ^= v[%d] >> %d;\n", 3 + best % 29, i, (i + r) % 8, best, best % 8, i);
        }
        printf("    return sum;\n}\n\n");
    }
    printf("int rules(void) { return %d; }\n\nlong rule(int number, const long *v) {\n    switch (number) {\n", count);
    for (int r = 0; r < count; r++) printf("    case %d: return r%d(v);\n", r, r);
    printf("    }\n    return -1;\n}\n");
    return 0;
}
""",
            "src/rules.h": r"""#ifndef RULES_H
#define RULES_H
#define PRODUCTIONS 110
int parse(int production, const char *text);
long rule(int number, const long *values);
int rules(void);
#endif
""",
            "tools/grammar.pl": r"""#!/usr/bin/perl
# grammar.pl COUNT: the parser of the rule language, one function per production
use strict;
use warnings;

my $count = shift // 10;
srand 17;
print "#include <string.h>\nint parse(int production, const char *text);\n\n";
for my $p (0 .. $count - 1) {
    print "static int p$p(const char *text, int depth) {\n    int found = $p;\n";
    for my $i (1 .. 6) {
        my $c = chr(97 + int rand 26);
        my $n = 1 + int rand 9;
        print "    for (const char *at = strchr(text, '$c'); at && depth < $n; at = strchr(at + 1, '$c')) {\n";
        print "        found = found * 31 + (int)(at - text) % " . ($i + $n) . ";\n        depth++;\n    }\n";
    }
    print "    return found & 0xffff;\n}\n\n";
}
print "int parse(int production, const char *text) {\n    switch (production) {\n";
print "    case $_: return p$_(text, 0);\n" for 0 .. $count - 1;
print "    }\n    return -1;\n}\n";
""",
        },
        "",
    ),
    Plant(
        "w28-session-ttl",
        "none",
        "bats, redis-server, redis-cli, PHP; expiry of a sliding session",
        "nothing to change: test/session.bats checks that a session of 2 s is prolonged by each touch and is gone 2 s after the last; the sleeps between its steps are the time that is tested.",
        r"nothing",
        {
            "run.sh": r"""#!/bin/bash
# job: sessions (lint, unit, expiry)
set -euo pipefail
cd "$(dirname "$0")"
rm -rf var && mkdir -p var
export REDIS_PORT=18890
redis=
trap '[ -z "$redis" ] || kill $redis 2> /dev/null || true' EXIT

echo "== lint"
php -l Session.php
bash -n test/helper.bash

echo "== start"
timeout 90 redis-server --port $REDIS_PORT --bind 127.0.0.1 --save '' --appendonly no --dir "$PWD/var" --daemonize no > var/redis.log & redis=$!
for _ in $(seq 200); do
  redis-cli -p $REDIS_PORT ping > /dev/null 2>&1 && break
  sleep 0.02
done

echo "== unit"
php test/unit.php

echo "== expiry"
bats --tap test/session.bats

echo "== stop"
redis-cli -p $REDIS_PORT shutdown nosave || true
wait $redis
redis=
""",
            "Session.php": r"""<?php
declare(strict_types=1);

/** Sessions in Redis: they live as long as they are touched often enough. */
final class Session
{
    /** @var resource */
    private $socket;

    public function __construct(int $port, private int $seconds)
    {
        $this->socket = stream_socket_client("tcp://127.0.0.1:$port", $code, $text, 5) ?: throw new RuntimeException($text);
    }

    private function call(string ...$words): string|int|null
    {
        $out = '*' . count($words) . "\r\n";
        foreach ($words as $word) {
            $out .= '$' . strlen($word) . "\r\n$word\r\n";
        }
        fwrite($this->socket, $out);
        $line = rtrim((string) fgets($this->socket), "\r\n");
        $rest = substr($line, 1);
        return match ($line[0]) {
            '+' => $rest,
            ':' => (int) $rest,
            '$' => $rest === '-1' ? null : substr((string) stream_get_contents($this->socket, (int) $rest + 2), 0, -2),
            default => throw new RuntimeException($line),
        };
    }

    public function open(string $id, string $user): void
    {
        $this->call('SET', "session:$id", $user, 'EX', (string) $this->seconds);
    }

    public function touch(string $id): bool
    {
        return $this->call('EXPIRE', "session:$id", (string) $this->seconds) === 1;
    }

    public function user(string $id): ?string
    {
        return $this->call('GET', "session:$id");
    }
}

if (PHP_SAPI === 'cli' && realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    $session = new Session((int) getenv('REDIS_PORT'), 2);
    [, $what, $id] = $argv;
    match ($what) {
        'open' => $session->open($id, $argv[3]),
        'touch' => exit($session->touch($id) ? 0 : 1),
        'user' => print(($session->user($id) ?? 'nobody') . "\n"),
    };
}
""",
            "test/helper.bash": r"""session() { php "$BATS_TEST_DIRNAME/../Session.php" "$@"; }
""",
            "test/session.bats": r"""load helper

@test "a session lives while it is touched and ends 2 s after the last touch" {
  session open a1 anna
  [ "$(session user a1)" = anna ]
  sleep 1.4
  session touch a1
  sleep 1.4
  [ "$(session user a1)" = anna ]
  session touch a1
  sleep 2.1
  [ "$(session user a1)" = nobody ]
  run session touch a1
  [ "$status" = 1 ]
}
""",
            "test/unit.php": r"""<?php
declare(strict_types=1);
require __DIR__ . '/../Session.php';

$session = new Session((int) getenv('REDIS_PORT'), 60);
$passed = $failed = 0;
for ($i = 0; $i < 3000; $i++) {
    $session->open("u$i", "user $i");
    $session->user("u$i") === "user $i" ? $passed++ : $failed++;
}
$session->touch('nothing') ? $failed++ : $passed++;
echo "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
""",
        },
        "",
    ),
]
