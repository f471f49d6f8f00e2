"""The columns of the simulator's tables, by name."""

from __future__ import annotations

NEVER = 1 << 62
"""Later than any time, in nanoseconds."""
NONE = -1
US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000

# Of the clock.
NOW = 0
PHASE_END = 1
"""When the collection phase ends."""
REPORTS_DUE = 2
"""Sites whose reports are still to come, since they wait for their disks."""
NEXT_CHANGE = 3
"""Row of the next change of load."""
MOVES = 4
"""Moves under way."""
NET_TIME, NET_NEXT = 5, 6
"""Until when the transfers are worked out; when the next one ends."""
CLOCKS = 7

# Of a site.
NEXT = 0
"""When it acts next."""
BUSY_UNTIL = 1
"""Its CPU."""
BLOCKED_UNTIL = 2
"""Its consumer, by the disk."""
USED, SEQUENCE, FREE_NODE = 3, 4, 5
"""Tuples in its buffer, tuples ever put into it, the first unused node."""
HAND = 6
"""Partition of the tuple on which an Exchange is blocked."""
POLLED = 7
"""The connection that the consumer polls next."""
IDLE_SINCE = 8
"""NEVER: the consumer is not waiting for input."""
TURN_KIND, TURN_COUNT, TURN_LATENCY = 9, 10, 11
"""What the consumer is doing; its tuples (or its move), and the sum of their latencies."""
RESIDENT, CAPACITY = 12, 13
"""Bytes of states in memory, and room for them."""
BACKLOG = 14
"""The partition whose input set aside is being processed."""
PAGE = 15
"""Tuples in the unwritten page of the spool."""
SWAP_AT = 16
"""When the next swap may begin."""
DISK_COUNT = 17
"""Partitions on disk."""
OWES = 18
"""Whether its report of the phase is still to come."""
IDLE, IDLE_SEEN = 19, 20
"""Time waited for input in this phase; the same as it was when the phase ended."""
SITE_DONE, SITE_IDLE = 21, 22
"""Tuples processed and time waited, in the whole run."""
SITE_COLUMNS = 23

# What the consumer does in a turn.
NOTHING, TUPLES, EXTRACT, INSTALL = range(4)

# Of a site's pace, not whole numbers.
LOADED, BEFORE_LOAD = 0, 1
"""Whether an external process runs; what the operator computes before that takes the CPU."""
PACE_COLUMNS = 2

# Of a partition.
OWNER, ON_DISK, MOVING = 0, 1, 2
SINCE = 3
"""When it was last read or written, as a running number."""
SPOOL, SPOOL_ENTRY = 4, 5
"""Input set aside, and the sum of the times at which it came."""
COUNTED, COUNTED_SEEN = 6, 7
"""Tuples processed in this phase; the same as it was when the phase ended."""
PART_COLUMNS = 8

# Of a connection [d, s], of its ring, of a buffer's node, of a list of nodes.
CONN_HEAD, CONN_LEN, CONN_TUPLES = 0, 1, 2
"""Of the entries, most are tuples; some are acknowledgements of a pause."""
ENTRY, WHEN = 0, 1
"""Partition of a tuple, or below 0 the move that is acknowledged; when it is there."""
NODE_PART, NODE_SEQ, NODE_NEXT = 0, 1, 2
FIRST, LAST = 0, 1

# Of a move.
PART, FROM, TO, PHASE, TIME, ACKS, RESTARTS, LEFT = range(8)
"""TIME: when its last message is there; ACKS, RESTARTS: producers that have stalled, restarted;
LEFT: bytes still to be transferred."""
MOVE_COLUMNS = 8

# Of the totals, of what is kept per second, of a change of load.
PRODUCED, PROCESSED, DISK_OPERATIONS, SPOOLED, DISK_TURN = range(5)
DONE_TUPLES, LATENCIES = 0, 1
CHANGE_TIME, CHANGE_SITE, CHANGE_KIND, CHANGE_VALUE = range(4)
CPU_ON, CPU_OFF, MEMORY = range(3)
