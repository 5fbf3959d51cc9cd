from agentworld.ledger.database import connect


def test_what_sqlite_commits_survives_a_power_cut(tmp_path):
    engine = connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    engine.dispose()
