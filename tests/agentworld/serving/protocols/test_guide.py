"""The guide's examples of the native protocol match the service."""

import json
import re
import shlex
import subprocess

import pytest

from make.peers import ROOT
from make.service import listening

ADDRESS = "http://127.0.0.1:8000"


@pytest.mark.waits
def test_the_guides_curl_commands_play_an_episode(serve):
    guide = (ROOT / "docs/guides/protocols.md").read_text()
    section = guide.partition("\n## Native HTTP\n")[2].partition("\n## ")[0]
    (commands,) = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    (example,) = re.findall(r"^```json\n(.*?)^```", section, re.M | re.S)
    values = {"RUN": "", "EPISODE": ""}
    answers = []
    with listening(serve().transport.app) as url:
        for line in commands.replace(ADDRESS, url).splitlines():
            arguments = [
                re.sub("RUN|EPISODE", lambda match: values[match[0]], word)
                for word in shlex.split(line)
            ]
            result = subprocess.run(arguments, capture_output=True, text=True, check=True)
            answers.append(json.loads(result.stdout))
            values["RUN"] = values["RUN"] or answers[0]["run"]["id"]
            values["EPISODE"] = answers[-1].get("episode", "")
    *_, step, closing = answers
    ids = dict.fromkeys(("simulator", "run", "episode"))
    assert step | ids == json.loads(example) | ids
    assert closing["num_steps"] == 1
