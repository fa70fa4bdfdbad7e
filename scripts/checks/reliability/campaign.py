"""`scripts/reliability`: the long campaign, one stack for each scenario.

The numbers of every scenario are kept, so that a campaign can be continued or repeated by name.
"""

import argparse
import json
import shutil
import subprocess
import time
import urllib.parse
from contextlib import contextmanager

from common.config import CACHE, REPO
from common.console import Problem, line, took, warn
from devstack import build, prerequisites
from devstack.sandbox import Sandbox
from devstack.trial import report_of

from . import bystanders, report
from .scenarios import SCENARIOS, SHORT, WARM_JOBS, Skipped
from .stack import Keeper, Stack

RECORDS = CACHE / "test" / "reports" / "reliability.json"
CUSTOMERS = 30
# Real jobs take seconds: many run when a fault comes.
SETTINGS = {
    "RETOUCH_JOBS_IN_FLIGHT": "16",
    "RETOUCH_FAULT_DELAY_MS": "2000",
    "RETOUCH_VISITOR_RUNS_PER_HOUR": "1000",
}
# How long a customer insists on a result.
INSIST_SECONDS = 300
# Acceptable responses during an outage: a result, "in progress", "retry later", or no response.
ACCEPTABLE = {"200", "202", "409", "429", "503", "none"}


def main():
    options = arguments()
    if options.table:
        print(report.table(records()))
        return 0
    prerequisites.check()
    build.install_packages_of("standins/oidc")
    if options.build:
        build.build_programs()
    passed, failed = run([scenario for scenario in ALL if scenario.name in options.names] or SCENARIOS)
    line(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


ALL = (*SCENARIOS, SHORT)
NAMES = [scenario.name for scenario in ALL]


def arguments():
    text = "Injects faults into a whole stack under load, and checks that nothing is lost. Scenarios: " + ", ".join(NAMES) + "."
    parser = argparse.ArgumentParser(prog="scripts/reliability", description=text)
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help="run only these; default: all but the short form")
    parser.add_argument("--no-build", dest="build", action="store_false", help="use the programs that are there")
    parser.add_argument("--table", action="store_true", help="print the numbers of the last runs as a Markdown table, and run nothing")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"unknown scenario {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    return options


def run(scenarios):
    """Runs every scenario, even if one fails. Returns how many passed and how many failed."""
    passed = failed = 0
    for scenario in scenarios:
        line(f"• {scenario.name}: {scenario.promise}")
        started = time.monotonic()
        try:
            violations = prove(scenario)
        except Skipped as reason:
            warn(f"{scenario.name} was skipped: {reason}")
            continue
        except Problem as problem:
            violations = [str(problem)]
        passed += not violations
        failed += bool(violations)
        for violation in violations:
            warn(f"{scenario.name}: {violation}")
        line(f"  {'FAILED' if violations else 'kept'} ({took(time.monotonic() - started)})")
    return passed, failed


def prove(scenario):
    """Runs a scenario, prints its numbers in one line, and records them. Returns the broken promises."""
    with Sandbox(f"reliability-{scenario.name}") as sandbox, scenario.around(sandbox) as more:
        # Before the stack: a scenario that this machine cannot run is skipped here.
        worker_settings = scenario.worker_settings()
        with under_load(sandbox, scenario, SETTINGS | scenario.settings | more, worker_settings) as (stack, begin):
            scenario.fault(stack)
        numbers = measured(stack, scenario, begin)
        violations = numbers.violations(scenario.flow_seconds, scenario.pause_seconds, scenario.p99_seconds)
        line(f"  {scenario.name}: {numbers.text()}")
        record(scenario.name, numbers.record(violations))
    if not violations:
        shutil.rmtree(sandbox.settings.data, ignore_errors=True)
    return violations


@contextmanager
def under_load(sandbox, scenario, settings, worker_settings=()):
    """Starts a stack, on which customers run jobs and others buy, get refunds and delete. Waits for all of them at the end."""
    stack = Stack(sandbox, settings, worker_settings)
    people = stack.people(CUSTOMERS + bystanders.COUNT)
    stack.customers, others = people[:CUSTOMERS], people[CUSTOMERS:]
    stack.host = urllib.parse.urlsplit(stack.api).netloc
    with Keeper(stack, scenario.kept) as stack.keeper, bystanders.Bystanders(stack, others) as stack.bystanders:
        begin = time.time()
        seconds = 2 * scenario.jobs / scenario.rate
        load = stack.begin_load(stack.customers, rate=scenario.rate, jobs=scenario.jobs, seconds=seconds, insist=INSIST_SECONDS)
        try:
            stack.wait_for_done(WARM_JOBS)
            yield stack, begin
            stack.load_report = report_of(load)
        finally:
            load.kill()
        stack.bystanders.stop()
        stack.bystanders.settle()


def measured(stack, scenario, begin):
    customers = ", ".join(f"'{person.image}'" for person in stack.customers)
    jobs = f"from jobs where idempotency_key is not null and owner_id in (select owner_id from images where id in ({customers}))"
    found = stack.row(
        f"""(select count(*) {jobs} and state = 'failed') as failed,
            (select count(*) {jobs} and losses > 0) as suspects,
            (select coalesce(json_agg(distinct failure_code), '[]') {jobs} and failure_code is not null) as failures,
            (select json_agg(extract(epoch from finished_at) order by finished_at) {jobs} and state = 'done') as finishes,
            (select count(*) from ledger join jobs on jobs.id = ledger.job_id
             where jobs.state <> 'done' or (jobs.image_id is not null and not exists
                   (select from results where results.job_id = jobs.id))) as paid_without_result,
            (select count(*) from results join jobs on jobs.id = results.job_id
             where jobs.tier = 'paid' and not exists (select from ledger where ledger.job_id = jobs.id)) as results_without_debit"""
    )
    status, output = stack.program("retouch-api", "admin", "audit")
    answers = stack.load_report["answers"]
    strange = {answer: count for answer, count in answers.items() if answer not in ACCEPTABLE} | stack.bystanders.strange
    stack.expect(not strange or found["failed"], "A temporary outage gives 503, never another error", strange)
    finishes = found["finishes"] or []
    notes = [f"failures {found['failures']}"] if found["failures"] else []
    crowd = stack.bystanders
    notes += [f"{crowd.bought} purchases, {crowd.refunded} refunds, {crowd.deleted} pictures and {crowd.left} accounts deleted"]
    notes += [f"{stack.keeper.restarts} restarts"] if stack.keeper.restarts else []
    return report.Numbers(
        submitted=stack.load_report["begun"],
        done=stack.load_report["done"],
        failed=found["failed"],
        paid_without_result=found["paid_without_result"],
        results_without_debit=found["results_without_debit"],
        flows_after={name: report.recovery(finishes, at, scenario.rate) for name, at in stack.returns},
        pause=report.longest_pause(finishes, finishes[0] if finishes else begin, begin + scenario.jobs / scenario.rate),
        p99=stack.load_report["p99_ms"] / 1000,
        audit=output if status else "",
        suspects=found["suspects"],
        notes=notes + stack.notes,
        broken=stack.broken,
    )


def records():
    return json.loads(RECORDS.read_text()) if RECORDS.exists() else {}


def record(name, numbers):
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=REPO, stdout=subprocess.PIPE, text=True).stdout.strip()
    known = records() | {name: numbers | {"at": time.strftime("%Y-%m-%d %H:%M"), "commit": commit}}
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    RECORDS.write_text(json.dumps({name: known[name] for name in NAMES if name in known}, indent=1))
