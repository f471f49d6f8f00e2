"""The HTTP API beside a run: subscriptions, matches as they come, questions, events in.

It reads what the run has committed and writes only where the run looks for control records and
events, so it can be killed, restarted and left away at any moment. Nothing here needs Spark.
"""
