"""reStructuredText as documents: what its directives and references show."""

from pathlib import Path

from generator.schema import Document
from tests.support.corpora import good, read


def test_restructured_text_gives_what_a_reader_of_its_page_reads(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "a.rst").write_text(
        """.. _intro:

=======
Ferries
=======

The :ref:`boat <intro>` from :func:`~port.sail` sails at
Harrowmere.

.. include:: secret.txt
.. raw:: html
   :file: secret.txt
.. toctree::
   fares

.. note:: Tickets are sold until
   Sunday.

Fares
-----

* An adult pays 7.20, a child
  Half of it.

.. image:: https://example.org/logo.svg

.. code-block:: python

   pay(
       7.20)

=====  ====
Who    Fare
=====  ====
Adult  7.20
=====  ====
"""
    )
    (tmp_path / "b.rst").write_text("Text.\n\nFares\n=====\n\nMore.\n")
    ferries, untitled = good(read("folder", path=str(tmp_path)))[:2]
    assert (ferries.title, untitled.title) == ("Ferries", "b")
    note = ["Note: Tickets are sold until Sunday."]
    fares = [
        "## Fares",
        "- An adult pays 7.20, a child Half of it.",
        "```python\npay(\n    7.20)\n```",
        "Who | Fare",
        "Adult | 7.20",
    ]
    assert ferries.text.split("\n\n") == ["The boat from port.sail sails at Harrowmere.", *note, *fares]
    assert untitled.text == "Text.\n\n## Fares\n\nMore."


def test_references_show_the_titles_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text(
        "See :ref:`fares-2`, :ref:`Port\nauthority`,\n:ref:`boats <fares>` and :ref:`none`.\n\n"
        ".. _port Authority:\n\nS3\n--\n\n.. _none:\n\nText.\n\nSea\n---\n"
    )
    (tmp_path / "b.rst").write_text(".. _fares-1:\n.. _`Fares-2`:\n\n=====\nFares\n=====\n\nAn adult pays 7.20.\n")
    (tmp_path / "c.rst").write_bytes(b"\xff")
    (tmp_path / "d.rst").symlink_to("gone.rst")
    found = [record for record in read("folder", path=str(tmp_path)) if isinstance(record, Document)]
    assert found[0].text.partition("\n")[0] == "See Fares, S3, boats and none."


def test_directives_of_sphinx_keep_what_they_name_and_hold(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text(
        """Ferry
=====

.. py:function:: sail(port,
                      hour=9)
   :noindex:

   Leave :py:func:`port.of` a harbour.

   .. versionadded:: 1.3
      The *hour*.
   .. deprecated:: 2.0

.. Option:: --dry-run

   Say what would be done.

   :param none: nothing

.. tab-set::

   .. tab-item:: Linux

      Use the **store**.

.. only:: html

   It is shown.

.. seealso:: The timetable.
.. toctree::

   fares
.. autoclass:: ferry.Boat
   :members:
.. prompt:: bash

   sail  --now
"""
    )
    (document,) = good(read("folder", path=str(tmp_path)))
    assert document.text.split("\n\n") == [
        "sail(port, hour=9)",
        "Leave port.of a harbour.",
        "Added in version 1.3: The hour.",
        "Deprecated since version 2.0.",
        "--dry-run",
        "Say what would be done.",
        "param none: | nothing",
        "Linux",
        "Use the store.",
        "It is shown.",
        "The timetable.",
        "```text\nsail  --now\n```",
    ]
