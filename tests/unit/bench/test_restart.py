"""The restart benchmark: its jobs, its right answer, and when a size counts as settled."""

from pathlib import Path

from gateway.db.engine import open_database
from tests.bench._restarting import end_one, first_of, raw_read
from tests.bench.restart import Start, begin_running, figures_of, fill, has_settled


def test_the_queue_whose_gang_ended_has_room_for_its_oldest_job(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/gateway.db"
    fill(url, 200)
    begin_running(url, 80)
    database = open_database(url)
    try:
        queue = end_one(database)
        expected = first_of(database, queue)
    finally:
        database.close()
    # Who waits, three charges of each that runs, nodes with three amounts each, and classes.
    assert raw_read(url) == 121 + 79 * 3 + 640 * 4 + 50
    assert expected >= 80


def test_the_ratio_is_taken_within_each_repetition() -> None:
    starts = [Start(3.0, 1.0, 1), Start(2.0, 2.0, 1), Start(4.0, 2.0, 1)]
    ratio, seconds = figures_of("postgresql", starts)
    assert (ratio.name, ratio.value, ratio.samples) == (
        "restart.ratio_to_raw_read",
        2.0,
        (3.0, 1.0, 2.0),
    )
    assert seconds.value == 3.0
    assert next(iter(figures_of("sqlite", starts))).name == "restart.ratio_to_raw_read_sqlite"


def test_a_size_has_settled_once_it_stayed_within_a_percent() -> None:
    assert not has_settled([100] * 10)
    assert not has_settled([*range(100, 200, 5), 200])
    assert has_settled([100, 150, *([200] * 14), 201])
