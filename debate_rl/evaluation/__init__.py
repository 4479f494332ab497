"""The paper's protocol, its controls, statistics, game records and the report."""
