"""The end of a run, in simulated time."""

from benchmarks.run_end import rule, simulate


def test_the_last_dialogs_do_not_wait_for_each_other() -> None:
    with rule("cautious"):
        cautious = simulate(80, 0.5, 16)
    own = simulate(80, 0.5, 16)
    assert own.plans == cautious.plans, "the same dialogs are accepted"
    assert cautious.more == 0 < own.more < 0.05
    assert own.seconds < 1.25 * own.ideal
    assert own.seconds < 0.9 * cautious.seconds


def test_one_dialog_at_a_time_starts_none_too_many() -> None:
    assert simulate(8, 0.5, 1).more == 0
