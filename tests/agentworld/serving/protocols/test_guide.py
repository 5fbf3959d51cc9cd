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
    (shown,) = re.findall(r"^```json\n(.*?)^```", section, re.M | re.S)
    names = {"RUN": "", "EPISODE": ""}
    answers = []
    with listening(serve().transport.app) as url:
        for line in commands.replace(ADDRESS, url).splitlines():
            words = [
                re.sub("RUN|EPISODE", lambda name: names[name[0]], word)
                for word in shlex.split(line)
            ]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            answers.append(json.loads(done.stdout))
            names["RUN"] = names["RUN"] or answers[0]["run"]["id"]
            names["EPISODE"] = answers[-1].get("episode", "")
    *_, step, closed = answers
    ids = dict.fromkeys(("simulator", "run", "episode"))
    assert step | ids == json.loads(shown) | ids
    assert closed["num_steps"] == 1
