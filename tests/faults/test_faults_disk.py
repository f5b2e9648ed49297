"""A run whose disk fails; tests/test_resume.py has a disk that is full in mid-run."""

from pathlib import Path

import pytest

from tests.faults.test_faults import SETTINGS, undisturbed
from tests.support.openai_server import Body, OpenAIServer, fill
from tests.support.runs import Site

__all__ = ["undisturbed"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full, a disk that is always full")
def test_a_disk_that_is_full_when_the_files_are_written(undisturbed: Site, site: Site) -> None:

    def responder(body: Body) -> str:
        if len(server.bodies) == 20:
            (site.run_dir / ".summary.json.unfinished").symlink_to("/dev/full")
        return fill(body)

    with OpenAIServer(responder) as server:
        full = site.run(server, *SETTINGS)
        assert full.code == 2
        assert str(site.run_dir / "summary.json") in full.error and "No space left on device" in full.error
        calls = len(server.bodies)
        assert site.run(server, *SETTINGS).code == 0
        assert len(server.bodies) == calls, "the dialogs were finished: only files were missing"
    assert site.made() == undisturbed.made()
