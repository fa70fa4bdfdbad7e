"""Measured costs of jobs. `profiles.toml` has one table per machine, with one table per tool."""

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

FILE = Path(__file__).with_name("profiles.toml")


@dataclass(frozen=True)
class Work:
    """Costs of a job of one tool on an idle machine. Times are in seconds."""

    # From the free slot to the claimed job, then to the input in memory: database and S3, no CPU.
    claim: float
    fetch: float
    # Before and after the model, on the pixel pool, and the mean number of threads in use.
    before: float
    after: float
    pixel_threads: float
    # Inference. A model runs one picture at a time.
    model: float
    # Storing the result in S3 and its row in the database.
    store: float
    # CPU time of the API, the database and S3, if they run on the same machine.
    overhead: float = 0.0
    # Factors by which single jobs differ from the mean; each job draws one.
    spread: tuple = (1.0,)

    @property
    def alone(self):
        """The time from claimed to done."""
        return self.fetch + self.before + self.model + self.after + self.store


@dataclass(frozen=True)
class Machine:
    name: str
    cores: float
    # Threads that a model keeps busy; 0 on a GPU.
    model_threads: int
    # With half of its CPU time, a model takes 1 + barrier times as long: above 1 if its threads wait for each other.
    barrier: float = 1.0
    work: dict = field(default_factory=dict)

    @property
    def has_gpu(self):
        return self.model_threads == 0

    def kind(self, tool, tier):
        """Returns the key of the work: `tool:tier` if the tier has its own model, otherwise the tool."""
        own = f"{tool}:{tier}"
        return own if own in self.work else tool


def load(name, file=FILE):
    tables = tomllib.loads(file.read_text())
    if name not in tables:
        raise KeyError(f"{file.name} has no [{name}]; it has {', '.join(tables)}")
    table = dict(tables[name])
    tools = {tool: Work(**{**one, "spread": tuple(one.get("spread", (1.0,)))}) for tool, one in table.pop("work").items()}
    return Machine(name=name, work=tools, **table)


def with_model(machine, seconds):
    """Returns the machine with another time for the model."""
    return replace(machine, work={tool: replace(work, model=seconds) for tool, work in machine.work.items()})
