"""Reports: a run's rows, tables and records as one page, pictures, and tables for the terminal and the docs."""

from debate_rl.evaluation.report.folder import read_run, write_report
from debate_rl.evaluation.report.markdown import table2_markdown
from debate_rl.evaluation.report.tables import terminal_table

__all__ = ["read_run", "table2_markdown", "terminal_table", "write_report"]
