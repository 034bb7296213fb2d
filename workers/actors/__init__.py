"""The workers behind the queues: each message names a Job, which is claimed, supervised in a child, and concluded."""
