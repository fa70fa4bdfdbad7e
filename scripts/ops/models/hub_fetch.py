"""Fetches the files of a model from a repository on a hub, converts them, and pins them in the manifest."""

import dataclasses
import shutil
from datetime import date

from common.console import Problem

from . import conversion, files, hub_source, licensing, manifest_text, staging
from .download import Refused
from .fetch_state import State
from .progress import amount, info

STATE = ".fetched.json"


def fetch(model, hub, is_accepted=False, today=date.today):
    """Fetches what is missing. A download that was interrupted resumes, in this run or a later one."""
    place = staging.aside(model.folder.parent, model.folder.name, "part")
    if model.is_template and model.folder.exists():
        raise Problem(
            f"{model.folder} exists, but has no model.toml. Move it away, or run `scripts/models adopt {model.name}` if it holds "
            "a pipeline that you have exported."
        )
    licensing.require(model, is_accepted, (model.folder, place))
    place.mkdir(parents=True, exist_ok=True)
    try:
        fetched = Fetch(model, hub, place, today).run()
    except Refused as reason:
        raise Problem(f"Could not fetch {model.name}: {reason}.") from None
    if model.is_template:
        text = manifest_text.head(model.manifest) + pinned(model.source, fetched, place)
        (place / "model.toml").write_text(text)
        staging.prune(place, {"model.toml", licensing.RECORD, *(file.file for file in fetched)})
        staging.swap(place, model.folder)
    else:
        staging.readable(place)
        for file in fetched:
            (model.folder / file.file).parent.mkdir(parents=True, exist_ok=True)
            (place / file.file).replace(model.folder / file.file)
        licensing.move(place, model.folder)
        shutil.rmtree(place)
    size = sum((model.folder / file.file).stat().st_size for file in fetched)
    info(f"{model.name}: {model.folder} ({amount(size)}, {model.license})")


class Fetch:
    def __init__(self, model, hub, place, today):
        self.model = model
        self.hub = hub
        self.place = place
        self.today = today
        self.listings = {}
        self.state = State(place / STATE)

    def run(self):
        """Returns the fetched files, each with its commit, path and checksums."""
        wanted = [file for file in self.model.source.files if not self.is_in_place(file)]
        known = [self.known(file) for file in wanted]
        needed = sum(self.still_needed(file) for file in known)
        staging.require_space(self.place, needed, self.model.name)
        commit = commit_of(self.model.source, known)
        licensing.record(self.model, commit, self.place, self.today())
        info(f"{self.model.name}: {amount(needed)} from {self.model.source.repository} on {self.hub.host}, commit {commit[:8]}")
        return [self.obtained(file) for file in known]

    def is_in_place(self, file):
        return not self.model.is_template and files.is_valid(self.model.folder / file.file, file.sha256)

    def known(self, file):
        """Completes what the manifest leaves open: the commit, the path, the size, and the hub's own checksum."""
        commit = file.revision if hub_source.is_commit(file.revision) else self.state.commit(file)
        is_complete = commit and file.path and file.size_bytes and file.download_sha256
        if is_complete and (file.repository, file.revision) not in self.listings:
            return dataclasses.replace(file, revision=commit)
        listing = self.listing(file, commit)
        if listing is None:
            return dataclasses.replace(file, revision=commit)
        if commit not in (None, listing.commit):
            raise Refused(f"{self.hub.host} answered with the commit {listing.commit} of {file.repository} instead of {commit}")
        path = file.path or self.path_of(file, listing)
        if path not in listing.files:
            raise Refused(f"{file.repository} has no {path} at {listing.commit}; it has {shown(sorted(listing.files))}")
        listed = listing.files[path]
        stated, published = file.download_sha256, listed.sha256
        if stated and published and stated != published:
            raise Refused(
                f"{path} in {file.repository} at {listing.commit} has the sha256 {published}, but the manifest expects {stated}; "
                "somebody has replaced the file, so name the commit that has the right one as source.revision"
            )
        self.state.keep_commit(file, listing.commit)
        size = listed.size_bytes if file.size_bytes is None else file.size_bytes
        field = "source_sha256" if file.convert else "sha256"
        return dataclasses.replace(file, revision=listing.commit, path=path, size_bytes=size, **{field: stated or published})

    def listing(self, file, commit):
        """Returns the file list of a repository; None if the hub has none to give and everything needed is known."""
        key = (file.repository, file.revision)
        if key not in self.listings:
            try:
                self.listings[key] = self.hub.listing(file.repository, commit or file.revision, self.place / ".listing.json")
            except Refused as reason:
                if not commit or not file.path:
                    raise
                info(f"  {file.repository}: no file list ({reason}); sizes and checksums follow from the download")
                self.listings[key] = None
        return self.listings[key]

    def path_of(self, file, listing):
        found = [path for path, listed in sorted(listing.files.items()) if listed.sha256 == file.sha256]
        if not found:
            raise Refused(f"no file of {file.repository} at {listing.commit} has the sha256 {file.sha256} of {file.file}")
        return found[0]

    def still_needed(self, file):
        """Returns how many bytes this file still adds to the disk."""
        whole = file.size_bytes or 0
        download = self.target(file)
        done = next((path.stat().st_size for path in (download, part_of(download)) if path.exists()), 0)
        converted = whole if file.convert and not (self.place / file.file).exists() else 0
        return max(whole - done, 0) + converted

    def target(self, file):
        return self.place / (f".source/{file.file}" if file.convert else file.file)

    def obtained(self, file):
        made = self.place / file.file
        kept = self.state.sha256(file.file)
        if kept and files.is_valid(made, kept) and file.sha256 in (None, kept):
            return self.pinned(file, kept)
        target = self.target(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        made.parent.mkdir(parents=True, exist_ok=True)
        expected = file.download_sha256
        if expected is None or not files.is_valid(target, expected):
            address = self.hub.address(file.repository, file.revision, file.path)
            actual = self.hub.download(file.repository, address, expected, target, f"{self.model.name} {file.path}")
            self.check(file, target)
            self.state.keep_source(file.file, actual)
        if file.convert:
            if said := conversion.run(conversion.PROGRAMS[file.convert], target, made):
                info(f"  {file.file}: {said}")
            target.unlink()
        actual = files.sha256_of(made)
        if file.sha256 not in (None, actual):
            made.unlink()
            raise Problem(
                f"{file.file} of {self.model.name} has the sha256 {actual} after its conversion; the manifest expects {file.sha256}. "
                "The conversion has changed since the manifest was written, or the manifest is wrong."
            )
        self.state.keep_file(file.file, actual)
        return self.pinned(file, actual)

    def check(self, file, target):
        """Checks a download beyond its checksum, which may be unknown."""
        if files.is_pointer(target):
            target.unlink()
            raise Refused(
                f"{self.hub.host} has only the Git LFS pointer of {file.path}, not the file itself; unset HF_ENDPOINT, or use another mirror"
            )
        size = target.stat().st_size
        if file.size_bytes not in (None, size):
            target.unlink()
            raise Refused(f"{file.path} from {file.repository} has {size} bytes; expected {file.size_bytes}")

    def pinned(self, file, sha256):
        source_sha256 = file.source_sha256 or self.state.source(file.file) if file.convert else None
        return dataclasses.replace(file, sha256=sha256, source_sha256=source_sha256)


def pinned(source, fetched, place):
    """Returns the part of a manifest that pins every file, and says which checksums nobody had published."""
    source = dataclasses.replace(source, revision=commit_of(source, fetched))
    published = {file.file for file in source.files if file.sha256}
    entries = [
        manifest_text.extra(
            file.file, file.sha256, (place / file.file).stat().st_size, "" if file.file in published else "recorded at the first fetch"
        )
        for file in fetched
    ]
    return manifest_text.mark("fetch") + hub_source.written(source, fetched) + "".join(entries)


def commit_of(source, fetched):
    own = (file.revision for file in fetched if file.repository == source.repository)
    return next(own, source.revision)


def shown(names):
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def part_of(path):
    return path.with_name(path.name + ".part")
