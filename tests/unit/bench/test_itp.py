"""The fill by real sizes: the counts of the lists, whole gangs, and a fleet that is filled."""

from tests.bench.itp import Filled, figures_of, filled, request_of, size_counts


def test_the_sizes_are_those_of_the_ten_clusters() -> None:
    counts = size_counts()
    assert sum(counts.values()) == 69_351
    assert (min(counts), max(counts)) == (1, 64)


def test_a_large_gang_takes_whole_nodes_and_a_small_one_is_a_single_pod() -> None:
    small, large = request_of(4), request_of(64)
    assert [(each.name, each.count, dict(each.per_pod)["gpu"]) for each in small.pod_sets] == [
        ("Master", 1, 4)
    ]
    assert [(each.name, each.count) for each in large.pod_sets] == [("Master", 1), ("Worker", 7)]


def test_everybody_gets_in_while_there_is_room_for_everybody() -> None:
    done = filled(200, seed=1)
    assert done.gangs == 200
    assert done.gpus >= 200


def test_paces_are_per_processor_second_and_the_share_is_of_the_whole_fleet() -> None:
    pace, gpus, share = figures_of([Filled(100, 20_000, 2.0)])
    assert (pace.value, gpus.value, share.value) == (50.0, 10_000.0, 0.5)
