"""Runs work beside other work, in a process of its own whose output appears when the result is taken."""

import multiprocessing
import os
import tempfile

from common.console import Problem

# A forked process has the work already; others would get a pickled copy.
FORK = multiprocessing.get_context("fork")


class Beside:
    def __init__(self, work, niceness=0):
        self.output = tempfile.TemporaryFile()
        self.answers, answers = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=self.run, args=(work, niceness, answers), daemon=True)
        self.process.start()
        # Now only the process has it, so if that dies, `recv` ends.
        answers.close()

    def run(self, work, niceness, answers):
        for stream in (1, 2):
            os.dup2(self.output.fileno(), stream)
        os.nice(niceness)
        try:
            answers.send(work())
        except Problem as problem:
            answers.send(problem)

    def result(self):
        """Waits for the work, prints its output, and returns its result, or raises its Problem."""
        try:
            answer = self.answers.recv()
        except EOFError:
            answer = Problem("The process ended without a result; see its output above.")
        self.process.join()
        with self.output:
            self.output.seek(0)
            print(self.output.read().decode(errors="replace"), end="", flush=True)
        if isinstance(answer, Problem):
            raise answer
        return answer
