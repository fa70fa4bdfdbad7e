"""What one job costs on one kind of machine, as it was measured: `profiles.toml`, one table a machine and a tool."""

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

FILE = Path(__file__).with_name("profiles.toml")


@dataclass(frozen=True)
class Work:
    """What a job of one tool needs, in seconds, when it is alone on the machine."""

    # From the free slot to the claimed job, and to the input in memory: database and S3, no processor.
    claim: float
    fetch: float
    # Before the model and after it, on the pool for pixels, and how many threads that keeps busy on average.
    before: float
    after: float
    pixel_threads: float
    # The model. It runs one picture at a time.
    model: float
    # The result to S3 and the row to the database.
    store: float
    # What each job takes off the processors beside all that: API, database, store, where they share them.
    overhead: float = 0.0
    # How single jobs differ from the mean: factors, drawn from.
    spread: tuple = (1.0,)

    @property
    def alone(self):
        """From claimed to done, alone on the machine."""
        return self.fetch + self.before + self.model + self.after + self.store


@dataclass(frozen=True)
class Machine:
    name: str
    cores: float
    # Threads that a model keeps busy; 0 where it runs on a GPU.
    model_threads: int
    # How much longer a model takes when it gets half of its threads' time: more than twice, because its threads wait
    # for each other. 1 is exactly twice.
    barrier: float = 1.0
    work: dict = field(default_factory=dict)

    @property
    def has_gpu(self):
        return self.model_threads == 0

    def kind(self, tool, tier):
        """What such a job counts as: `tool:tier` where that tier has a model of its own, else the tool."""
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
    """The same machine with another model, or a GPU of which only the model's time is known."""
    return replace(machine, work={tool: replace(work, model=seconds) for tool, work in machine.work.items()})
