"""The bucket, with `retouch-api admin objects`."""

from . import retouch_api

PREFIXES = ("images/", "results/")


class Bucket:
    def __init__(self, settings):
        self.settings = settings

    def first_key(self):
        """Returns a key of an image or a result in the bucket; None if there is none."""
        for prefix in PREFIXES:
            for key in retouch_api.answer(self.settings, "objects", "list", "--prefix", prefix, "--limit", "1"):
                return key
        return None

    def keys(self):
        """Returns the keys of all images and results in the bucket."""
        return {key for prefix in PREFIXES for key in retouch_api.answer(self.settings, "objects", "list", "--prefix", prefix)}

    def download(self, keys, folder):
        """Copies objects into a folder. Returns (size, checksum, type) by key, and the keys of missing objects."""
        copied = retouch_api.answer(self.settings, "objects", "download", folder, lines=keys)
        objects = {one["key"]: (one["size"], one["sha256"], one["contentType"]) for one in copied["objects"]}
        return objects, set(copied["missing"])

    def upload(self, objects, folder):
        """Copies objects from a folder. Creates the bucket if it does not exist."""
        lines = (f"{key}\t{size}\t{checksum}\t{kind}" for key, (size, checksum, kind) in sorted(objects.items()))
        retouch_api.answer(self.settings, "objects", "upload", folder, lines=lines)
