"""How much GitHub takes."""

from __future__ import annotations

from harness.report.markdown_text import COMMENT_LIMIT

# GitHub's own message says 65,536 characters; what its API stored when people tried was 262,144 bytes of UTF-8
# (dead-claudia/github-limits, pull request 13, 2025-10). So many bytes are few enough however they are counted, with
# room for a line that whoever posts it adds.
COMMENT_BYTES = COMMENT_LIMIT - 536

# "$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k": of one step; nothing is shown then.
STEP_SUMMARY_BYTES = 1_048_576

# Rows of each list that are folded away, from the most that there may be to the fewest.
LEVELS_OF_A_COMMENT = (300, 100, 30, 0)
LEVELS_OF_A_SUMMARY = (100_000, 3_000, 1_000, 300, 100, 30, 0)
