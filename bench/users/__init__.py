"""Simulated users: machines whose costs are known, what they measure, ask and are answered.

A machine has stages with true costs a fragment and noise; a user measures it into a file, has a
message and a setting in use, and asks what `POST /optimize` asks. What is advised is then judged by
the machine's own expected latency.
"""
