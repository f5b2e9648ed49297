"""Rankings made one."""

import pytest

from generator.retrievers.fusion import fused


def test_scores_are_those_of_the_formula() -> None:
    # By hand: row 7 is 1st and 2nd, row 3 only 2nd of the first, row 5 only 1st of the second.
    assert fused([[7, 3], [5, 7]], [1, 1], 60) == [
        (7, pytest.approx(1 / 61 + 1 / 62)),
        (5, pytest.approx(1 / 61)),
        (3, pytest.approx(1 / 62)),
    ]


def test_a_weight_counts() -> None:
    assert [row for row, _ in fused([[1, 2], [2, 1]], [1, 2], 10)] == [2, 1]
    assert [row for row, _ in fused([[1, 2], [2, 1]], [2, 1], 10)] == [1, 2]
    assert fused([[4]], [0.5], 1) == [(4, 0.25)]


def test_equal_scores_stand_in_the_order_of_rows() -> None:
    assert [row for row, _ in fused([[9, 2], [2, 9]], [1, 1], 60)] == [2, 9]


def test_a_small_constant_lets_the_first_ranks_stand_out() -> None:
    rankings = [[1, 2, 3], [3, 2, 4]]
    assert fused(rankings, [1, 1], 0)[0][0] == 3  # 1/3 + 1 against 1/2 + 1/2
    assert [row for row, _ in fused(rankings, [1, 1], 1000)][:2] == [3, 2]


def test_nothing_found_is_nothing_fused() -> None:
    assert fused([[], []], [1, 1], 60) == []
    assert [row for row, _ in fused([[], [3, 1]], [1, 1], 60)] == [3, 1]
