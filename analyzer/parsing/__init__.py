"""Grammar: from a record to an event.

Messages are described in ``grammars/**/*.lark`` (one rule is one kind of message). Flat shapes run as regular
expressions derived from those rules, nested values are parsed by Lark itself; Lark is also the reference of the former.
"""

from __future__ import annotations

from analyzer.parsing.catalog import Catalog, default_catalog

__all__ = ["Catalog", "default_catalog"]
