"""Compact in the frameworks and clients that agents are written with: one small module each.

None of them is imported until you ask for it, and none of their packages is needed for another.
"""
