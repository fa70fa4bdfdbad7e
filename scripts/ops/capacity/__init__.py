"""How much an installation carries: a simulator of workers and their queue, fed with measured times."""
