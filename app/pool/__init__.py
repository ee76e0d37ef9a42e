"""The local engine: solves in child processes that can be stopped whatever they do.

    server ── worker.py ──▶ child.py: guardian ──▶ solver ──▶ whatever the solver starts

Each worker is two processes. The guardian is small and runs nothing foreign: whatever the solver
starts, in whichever group or session, stays below it, and it ends all of that when the server says
so or is gone. The solver keeps no promise at all: it may hang, crash, or eat memory.
"""
