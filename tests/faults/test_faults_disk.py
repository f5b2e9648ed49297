"""A run whose disk fails; tests/test_resume.py has a disk that is full in mid-run."""

from pathlib import Path

import pytest

from tests.faults.test_faults import SETTINGS, undisturbed
from tests.support.openai_server import Body, OpenAIServer, fill
from tests.support.runs import Site

__all__ = ["undisturbed"]


pytestmark = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full, a disk that is always full"
)


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


def test_after_a_full_disk_no_export_of_fewer_dialogs_is_left(site: Site, openai_server: OpenAIServer) -> None:
    assert site.run(openai_server, "dialogs=1", "export=mtrag").code == 0
    assert (site.run_dir / "mtrag").exists()
    (site.run_dir / ".summary.json.unfinished").symlink_to("/dev/full")
    assert "No space left" in site.run(openai_server, "dialogs=2").error
    assert site.run(openai_server, "dialogs=2").code == 0
    assert not (site.run_dir / "mtrag").exists()
