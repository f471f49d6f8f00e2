"""The block list: who holds against whom, expiry, lifting, and what an operator is told."""

from __future__ import annotations

import json
from dataclasses import replace

from geoflux.guard import Block, BlockList, Guard, GuardTuning
from guard_by_hand import LISBON, OSLO, Stage

MINE = Block("a", 10.0, None, "guard", "moved about", {"rounds": [1, 2]})


def test_a_block_can_expire_and_is_still_explained() -> None:
    blocks = BlockList().add(replace(MINE, until=70.0))
    assert blocks.at(69.9).blocked == {"a"}
    after = blocks.at(70.0)
    assert after.blocked == frozenset()
    assert [b.ended for b in after.explain("a")] == ["expired"]
    assert after.explain("a")[0].evidence == {"rounds": [1, 2]}


def test_a_block_can_be_lifted_and_there_may_be_none() -> None:
    blocks = BlockList().add(MINE)
    assert blocks.lift("b") is blocks
    assert blocks.lift("a").blocked == frozenset()
    assert blocks.lift("a").explain("a")[0].told() == "a was blocked (lifted) by guard: moved about"


def test_an_observed_block_refuses_nothing_and_is_listed() -> None:
    blocks = BlockList().add(replace(MINE, observed=True))
    assert blocks.blocked == frozenset()
    assert [b.told() for b in blocks.listed()] == ["a would be blocked by guard: moved about"]
    assert blocks.add(MINE).blocked == {"a"}
    assert BlockList().add(MINE).add(replace(MINE, observed=True)).blocked == {"a"}


def test_an_operators_block_is_not_replaced_by_guards() -> None:
    operators = Block("a", 5.0, None, "operator", "ticket 12")
    assert BlockList().add(operators).add(MINE).listed() == [operators]
    assert BlockList().add(MINE).add(operators).listed() == [operators]


def test_blocks_are_listed_oldest_first() -> None:
    blocks = BlockList().add(replace(MINE, user="b", since=20.0)).add(MINE)
    assert [b.user for b in blocks.listed()] == ["a", "b"]


def test_blocks_survive_json() -> None:
    blocks = (
        BlockList().add(MINE).add(Block("b", 1.0, 2.0, "operator", "x")).at(5.0).lift("a").add(MINE)
    )
    assert BlockList.from_dict(json.loads(json.dumps(blocks.to_dict()))) == blocks


def attacked(tuning: GuardTuning) -> Stage:
    stage = Stage(tuning)
    stage.warm_up()
    for at in (LISBON, OSLO):
        stage.place("mallory", 60, at)
        stage.hotspot(at)
        stage.close()
        stage.end("mallory", 60)
    return stage


def test_a_blocked_user_is_refused_and_may_still_terminate() -> None:
    stage = attacked(GuardTuning())
    assert stage.blocked == {"mallory"}
    assert stage.place("mallory", 5, LISBON) == 5
    assert stage.place("normal-1", 5) == 0
    stage.guard.lift("mallory")
    assert stage.place("mallory", 5, LISBON) == 0
    stage.guard.block("mallory", stage.now, "asked to", seconds=30.0)
    assert stage.end("mallory", 5) == 0
    stage.now += 30.0
    assert stage.place("mallory", 5, LISBON) == 0


def test_after_a_block_was_lifted_a_user_begins_anew() -> None:
    stage = attacked(GuardTuning())
    assert stage.guard.lift("mallory")
    assert not stage.guard.lift("mallory")
    stage.place("mallory", 60, LISBON)
    stage.hotspot(LISBON)
    assert stage.close().accused == ()


def test_observing_notes_once_what_would_have_been_done() -> None:
    stage = attacked(GuardTuning(observe_only=True))
    (noted,) = stage.guard.blocks.listed()
    assert (noted.user, noted.observed, noted.by) == ("mallory", True, "guard")
    assert stage.place("mallory", 5, LISBON) == 0
    stage.place("mallory", 60, LISBON)
    stage.hotspot(LISBON)
    stage.close()
    assert stage.guard.blocks.listed() == [noted]


def test_a_block_of_guard_has_its_evidence_on_record() -> None:
    stage = attacked(GuardTuning(block_seconds=600.0))
    (block,) = stage.guard.blocks.explain("mallory")
    evidence = json.loads(json.dumps(block.evidence))
    assert evidence["rounds"] == [5, 6]
    assert [h["hotspots"] for h in evidence["hotspots"]] == [[1], [2]]
    assert evidence["cluster"] == ["mallory"]
    assert evidence["features"]["new_queries"] == 60
    assert evidence["hotspots"][0]["rate"] == 1.0
    assert "places apart" in block.reason
    assert block.until == block.since + 600.0


def test_a_summary_that_comes_twice_counts_once() -> None:
    """One hotspot per donor and occasion, also when it is told again a round later."""
    stage = Stage(GuardTuning())
    stage.place("a", 9, LISBON)
    assert stage.hotspot(LISBON, donor=0) == 1
    stage.occasion -= 1
    assert stage.hotspot(LISBON, donor=0) is None
    stage.occasion -= 1
    assert stage.hotspot(LISBON, donor=1) == 2
    assert stage.close().hotspots == (1, 2)
    stage.occasion -= 1
    assert stage.hotspot(LISBON, donor=1) is None
    assert stage.hotspot(LISBON, donor=1) == 3


def test_a_change_of_mode_keeps_blocks_and_rounds() -> None:
    stage = attacked(GuardTuning())
    published = Guard.from_dict(GuardTuning.published(), stage.guard.to_dict())
    assert published.blocks == stage.guard.blocks
    assert published.rounds == stage.guard.rounds
    assert Guard.from_dict(GuardTuning(), {}).to_dict() == Guard(GuardTuning()).to_dict()
