from onebit.core.blocks import blocks


def test_blocks_follow_one_another_and_end_where_they_should():
    for n, ends in ((0, []), (1, [1]), (500, []), (500, [1, 2, 63, 64, 65, 400, 500, 700])):
        found = list(blocks(n, ends))
        assert [lo for lo, _ in found] == [0, *(hi for _, hi in found)][: len(found)]
        assert all(lo < hi for lo, hi in found)
        assert {end for end in ends if end <= n} <= {hi for _, hi in found} | {0}
        assert not found or found[-1][1] == n
