"""Standing queries of populations, in columns, against one deque per user."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from geoflux.workload.requests import REGISTER, TERMINATE, Standing

USERS = 4
placing = st.tuples(st.just("register"), st.lists(st.integers(0, USERS - 1), max_size=12))
keeping = st.tuples(st.just("keep"), st.lists(st.integers(0, 6), min_size=USERS, max_size=USERS))
ending = st.tuples(st.just("end"), st.tuples(st.integers(0, USERS - 1), st.integers(0, 9)))
writing = st.tuples(st.just("write"), st.none())


@given(st.lists(placing | keeping | ending | writing, max_size=30))
def test_the_oldest_end_first_and_keys_are_never_used_again(steps: list) -> None:
    standing = Standing([f"u{i}" for i in range(USERS)], population=3)
    held: list[deque[int]] = [deque() for _ in range(USERS)]
    expected: list[tuple[int, int, int]] = []
    seen: list[tuple[int, int, int]] = []
    following = 3 << 40

    def end(user: int, count: int) -> None:
        for _ in range(min(count, len(held[user]))):
            expected.append((TERMINATE, user, held[user].popleft()))

    def written() -> None:
        asked = standing.written()
        seen.extend(zip(asked.op.tolist(), asked.user.tolist(), asked.key.tolist(), strict=True))

    for what, value in steps:
        if what == "register":
            standing.register(value, [0.5] * len(value), [0.5] * len(value))
            for user in value:
                held[user].append(following)
                expected.append((REGISTER, user, following))
                following += 1
        elif what == "keep":
            standing.keep(value)
            for user, most in enumerate(value):
                end(user, len(held[user]) - most)
        elif what == "end":
            standing.end_oldest(*value)
            end(*value)
        else:
            written()
    written()
    assert seen == expected
    assert [standing.held(user) for user in range(USERS)] == [len(some) for some in held]
