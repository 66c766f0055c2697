"""Integrations with agent frameworks and clients, one module each.

A module is imported only when you import it, and needs no package but its own framework's.
"""
