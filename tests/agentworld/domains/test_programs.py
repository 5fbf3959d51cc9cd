from agentworld.domains.programs import Program


def test_a_program_is_found_on_the_path_or_in_folders_of_its_own(tmp_path, monkeypatch):
    program = tmp_path / "world-tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin")
    assert Program("world-tool", "world-tools").find() is None
    assert Program("world-tool", "world-tools", path=str(tmp_path)).find() == str(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Program("world-tool", "world-tools").find() == str(program)
