"""Comparing rankings whose scores are float32: ids may differ only where scores nearly tie."""

import numpy as np


def assert_same_ranking(ids, scores, expected_ids, expected_scores, *, noise=2e-6):
    """Scores agree within `noise`; where ids differ, the id's expected score is within `noise` of its place's."""
    np.testing.assert_allclose(scores, expected_scores, atol=noise, rtol=0)
    for line, (found, wanted) in enumerate(zip(ids, expected_ids, strict=True)):
        place = dict(zip(wanted, expected_scores[line], strict=True))
        for i, id_ in enumerate(found):
            if id_ != wanted[i]:
                # An id that is not among the expected ones must tie with the last of them.
                score = place.get(id_, expected_scores[line][-1])
                assert abs(score - expected_scores[line][i]) <= noise, (line, i, id_, wanted[i])
        assert len(set(found)) == len(found)
