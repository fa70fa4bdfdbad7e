import unittest

from checks import prose
from checks.prose import prose_of


class ProseTest(unittest.TestCase):
    def test_translated_sentences_are_suspicious(self):
        for text in (
            "REDIS_URL is no address of a Redis server",
            "What waits is no longer taken",
            "Whoever asked gets the old answer",
            "The user is told when it ends",
            "CUDA works, else the CPU is used; else it fails",
            "The colours of the border",
        ):
            self.assertIsNotNone(prose.suspicion(text), text)

    def test_plain_sentences_are_not(self):
        for text in (
            "REDIS_URL is not a valid Redis URL",
            "Workers stop claiming queued jobs",
            "Returns the old answer",
            "There is no model named gone",
            'The field `licence` and the value "colour" are contracts',
        ):
            self.assertIsNone(prose.suspicion(text), text)

    def test_comments_and_messages_are_read_and_code_is_not(self):
        for suffix, text, expected in (
            (
                ".rs",
                'fn a() { // The first comment here\n  let sql = "select a from b where c";\n  fail("Five words make a message");\n}\n',
                [(1, "The first comment here"), (3, "Five words make a message")],
            ),
            (
                ".py",
                '"""A docstring of lines,\ntwo lines here."""\nname = "too short"  # A comment of words\n',
                [(1, "A docstring of lines,"), (2, "two lines here."), (3, "A comment of words")],
            ),
            (".md", "* A line of prose\n```\nin a fenced block\n```\n", [(1, "A line of prose")]),
        ):
            self.assertEqual(list(prose_of(suffix, text)), expected)
