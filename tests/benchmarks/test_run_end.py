"""The end of a run, in simulated time."""

from benchmarks.run_end import rule, simulate


def test_the_last_dialogs_do_not_wait_for_each_other() -> None:
    with rule("before"):
        before = simulate(80, 0.5, 16)
    after = simulate(80, 0.5, 16)
    assert after.plans == before.plans, "the same dialogs are accepted"
    assert before.more == 0 < after.more < 0.05
    assert after.seconds < 1.25 * after.ideal
    assert after.seconds < 0.9 * before.seconds


def test_one_dialog_at_a_time_starts_none_too_many() -> None:
    assert simulate(8, 0.5, 1).more == 0
