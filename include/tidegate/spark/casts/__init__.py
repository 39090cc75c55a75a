"""Exact casts from the source's text to lake types: an anchored pattern first, then Spark's parser.

Spark's own casts guess (``'1.239'`` becomes 1.24, ``'2024'`` a date, ``'1e400'`` Infinity). Here a
text is taken only if it is the printed form of a value the lake type holds; what the type cannot
hold follows the column's policy and is counted; everything else has failed (I6).
"""

from tidegate.spark.casts.exact import cast
from tidegate.spark.casts.result import CastResult

__all__ = ["CastResult", "cast"]
