import numpy as np
import pytest

from hsca_fast import CallableEmbedder, SemanticIndex


@pytest.fixture
def index(tmp_path):
    embedder = CallableEmbedder(lambda texts: [[len(t), 1.0] for t in texts], name="lengths", dim=2)
    with SemanticIndex.open(tmp_path / "index", embedder=embedder) as opened:
        wings = ["a", "b", "a", None, 3, "a", "b"]
        opened.append(
            [f"text {i}" for i in range(7)],
            metadata=[{} if wing is None else {"wing": wing} for wing in wings],
            timestamps=[float(i) for i in range(7)],
        )
        yield opened


@pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
def test_columns_are_those_of_the_records(index, batch_size):
    ids = [record.id for batch in index.iter_records() for record in batch]
    index.touch(ids[2:4], at=50.0)
    index.supersede(ids[0], ids[6])
    index.archive([ids[1]], reason="r")
    index.delete([ids[5]])
    batches = list(index.iter_columns(batch_size, after=1))
    assert [len(batch.sequence) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    records = index.get_many(ids[1:])

    def joined(name):
        return np.concatenate([getattr(batch, name) for batch in batches])

    assert joined("sequence").tolist() == [record.sequence for record in records]
    assert joined("live").tolist() == [record.status == "live" for record in records]
    assert joined("timestamp").tolist() == [record.timestamp for record in records]
    assert joined("superseded").tolist() == [record.superseded_by is not None for record in records]
    assert joined("compacted").tolist() == [record.compacted_into is not None for record in records]
    used = [None if np.isnan(at) else at for at in joined("last_access")]
    assert used == [record.last_access for record in records]


def test_counts_of_values(index):
    assert index.value_counts("wing") == [("a", 3), ("b", 2), (3, 1)]
    assert index.value_counts("room") == []
    index.archive([index.records_at([1])[0].id], reason="r")
    assert index.value_counts("wing") == [("a", 2), ("b", 2), (3, 1)]


def test_values_that_a_dict_would_take_for_one_are_counted_apart(index):
    index.append(["a", "b", "c", "d"], metadata=[{"mixed": value} for value in (1, True, 1.0, 1)])
    assert [(repr(value), n) for value, n in index.value_counts("mixed")] == [("1", 2), ("True", 1), ("1.0", 1)]


def test_records_by_sequence(index):
    assert [record.text for record in index.records_at([7, 1])] == ["text 6", "text 0"]
    with pytest.raises(KeyError):
        index.records_at([8])
