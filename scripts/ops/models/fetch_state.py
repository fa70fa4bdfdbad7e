"""Remembers what a fetch has decided and finished, beside its files."""

import json

from . import hub_source


class State:
    """The decisions and the progress of an earlier run, so that the next run continues with the same commit."""

    def __init__(self, path):
        self.path = path
        try:
            self.values = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            self.values = {"commits": {}, "files": {}, "sources": {}}

    def commit(self, file):
        return self.values["commits"].get(f"{file.repository}@{file.revision}")

    def sha256(self, file):
        return self.values["files"].get(file)

    def source(self, file):
        return self.values["sources"].get(file)

    def keep_commit(self, file, commit):
        if not hub_source.is_commit(file.revision):
            self.keep("commits", f"{file.repository}@{file.revision}", commit)

    def keep_file(self, file, sha256):
        self.keep("files", file, sha256)

    def keep_source(self, file, sha256):
        self.keep("sources", file, sha256)

    def keep(self, kind, key, value):
        self.values[kind][key] = value
        self.path.write_text(json.dumps(self.values))
