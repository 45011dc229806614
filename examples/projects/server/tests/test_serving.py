import pytest
from server.engine import BUCKETS, Engine, Request


def requests():
    return [
        Request([5, 6, 7], tokens=4),
        Request(list(range(1, 12)), tokens=9, temperature=0.7),
        Request([9], tokens=2, temperature=1.3),
    ]


@pytest.mark.dynacheck(max_graphs=len(BUCKETS) + 1, graph_breaks=0, allow=["recompile:size:ids*"])
def test_one_entry_a_bucket_and_one_for_decoding(engine, dynacheck):
    engine.warm_up()
    assert dynacheck.report.counts["cache_entries"] == len(BUCKETS) + 1


@pytest.mark.dynacheck(allow=["recompile:size:ids*"])
def test_nothing_compiles_after_warming_up(engine, dynacheck):
    engine.warm_up()
    with dynacheck.steady():
        for request in requests():
            engine.answer(request)


@pytest.mark.dynacheck(allow=["recompile:size:ids*"])
def test_answers_are_those_of_eager(engine):
    plain = Engine(engine.model, compile=lambda fn, **options: fn)
    for request in requests():
        assert engine.answer(request) == plain.answer(request)
