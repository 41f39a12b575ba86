"""An Ansible callback plugin: plays and tasks become steps of a recording by `tr-trace record`.

    ANSIBLE_CALLBACK_PLUGINS=integrations/ansible tr-trace record -- ansible-playbook site.yml

A task has its module, its name and its result; with several hosts each host has a step inside the
task. Outside of a recording the plugin does nothing.
"""

import json
import os
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: tr_marks
type: aggregate
short_description: writes plays and tasks as marks of a recording
description: Writes plays and tasks with their results to the file in TR_MARKS.
"""

# From the best to the worst; a task has the worst of its hosts.
RESULTS = ["skipped", "ok", "changed", "ignored", "unreachable", "failed"]


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "tr_marks"
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self):
        super().__init__()
        self.play = self.task = None
        self.hosts, self.result = {}, None
        try:
            self.file = os.open(os.environ["TR_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except (KeyError, OSError):
            self.disabled = True

    def write(self, name, event, **more):
        line = {"t": time.monotonic_ns(), "name": name, "ev": event, "kind": "job", "pid": os.getpid(), **more}
        try:
            os.write(self.file, (json.dumps(line) + "\n").encode())
        except OSError:
            pass  # a full disk must not fail a play

    def end_task(self):
        if self.task:
            self.write(self.task, "end", result=self.result or "skipped")
        self.task, self.result, self.hosts = None, None, {}

    def end_play(self):
        self.end_task()
        if self.play:
            self.write(self.play, "end")
        self.play = None

    def v2_playbook_on_play_start(self, play):
        self.end_play()
        self.play = "play " + (play.get_name() or "without a name").strip()
        self.write(self.play, "begin")

    def begin_task(self, task):
        self.end_task()
        module = task.action.removeprefix("ansible.builtin.")
        name = task.get_name().strip()
        self.task = module if name in (module, task.action) else f"{module}: {name}"
        self.write(self.task, "begin")

    def v2_playbook_on_task_start(self, task, is_conditional):
        self.begin_task(task)

    def v2_playbook_on_handler_task_start(self, task):
        self.begin_task(task)

    def v2_runner_on_start(self, host, task):
        self.hosts[host.get_name()] = time.monotonic_ns()

    def end_host(self, result, what):
        if self.result is None or RESULTS.index(what) > RESULTS.index(self.result):
            self.result = what
        host = result._host.get_name()
        begin = self.hosts.get(host)
        if begin and len(self.hosts) > 1:
            self.write(host, "begin", t=begin, id=host)
            self.write(host, "end", result=what, id=host)

    def v2_runner_on_ok(self, result):
        self.end_host(result, "changed" if result._result.get("changed") else "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.end_host(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_skipped(self, result):
        self.end_host(result, "skipped")

    def v2_runner_on_unreachable(self, result):
        self.end_host(result, "unreachable")

    def v2_playbook_on_stats(self, stats):
        self.end_play()
