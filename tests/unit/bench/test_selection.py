"""The arithmetic of the device selection benchmark."""

from tests.bench.selection import WISHES, lists_seconds, questions, seconds_each
from tests.machines import catalogue_types, of_catalogue

H100 = of_catalogue("dgx-h100")


def test_every_machine_type_with_devices_is_asked_for_every_wish_it_can_meet() -> None:
    asked = questions([H100], seed=1)
    assert {wish for *_, wish in asked} == set(WISHES)
    assert all(
        gpus.bit_count() >= wish.gpus and nics.bit_count() >= wish.nics
        for _, gpus, nics, wish in asked
    )


def test_no_question_is_asked_twice_before_the_warm_rounds() -> None:
    asked = questions(catalogue_types(), seed=1)
    assert len(set(asked)) == len(asked) > 1_000


def test_seeds_ask_other_questions_and_the_same_seed_the_same() -> None:
    assert questions([H100], seed=1) == questions([H100], seed=1)
    assert set(questions([H100], seed=1)) != set(questions([H100], seed=2))


def test_times_are_those_of_one_answer_and_of_all_lists() -> None:
    asked = questions([H100], seed=3)
    assert 0 < seconds_each(asked) < 1
    assert 0 < seconds_each(asked * 10) < seconds_each(asked) + 1
    assert 0 <= lists_seconds([H100]) < 60
