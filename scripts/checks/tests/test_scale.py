import unittest

from checks.scale.statements import times_in

LOG = """\
@@11|[unknown]|LOG:  duration: 1.500 ms  parse sqlx_s_1: select id
	from jobs
@@12|[unknown]|LOG:  duration: 9.000 ms  bind sqlx_s_1: select id
	from jobs
@@11|[unknown]|LOG:  duration: 0.500 ms  bind sqlx_s_1: select id
	from jobs
@@11|[unknown]|LOG:  duration: 2.000 ms  execute sqlx_s_1: select id
	from jobs
@@11|[unknown]|LOG:  duration: 3.000 ms  execute sqlx_s_1: select id from jobs
@@13|psql|LOG:  duration: 700.000 ms  statement: vacuum
@@11|[unknown]|LOG:  duration: 0.100 ms  statement: COMMIT
@@11|[unknown]|ERROR:  duplicate key
@@11|[unknown]|STATEMENT:  insert into jobs
"""


class StatementTest(unittest.TestCase):
    def test_parsing_and_planning_count_and_other_programs_do_not(self):
        found = times_in(LOG)
        self.assertEqual({text: times.all for text, times in found.items()}, {"select id from jobs": [4.0, 3.0], "COMMIT": [0.1]})

    def test_a_share_is_one_of_the_times(self):
        times = times_in("".join(f"@@1|x|LOG:  duration: {number}.0 ms  statement: ping\n" for number in range(1, 201)))["ping"]
        self.assertEqual((times.p50, times.p99), (100, 198))
