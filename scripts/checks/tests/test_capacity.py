import unittest

from checks import capacity


class CheckTest(unittest.TestCase):
    def test_the_photo_of_the_load_exists(self):
        # `scripts/capacity check` takes five minutes, so nothing else notices that the photo has moved.
        self.assertTrue(capacity.PHOTO.is_file(), capacity.PHOTO)
