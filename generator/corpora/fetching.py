"""What a publisher offers for download, fetched once and kept."""

from pathlib import Path

from generator.common.console import note
from generator.corpora.files import reason
from generator.errors import CorpusError


def fetched(base_url: str, name: str, checksum: str | None, cache_dir: str, size: str | None = None) -> str:
    """The path of a publisher's file, downloaded with progress unless it lies in `cache_dir` already.

    Args:
        base_url, name: where it is: `<base_url>/<name>`; it is kept under the last part of `name`.
        checksum: `sha256:…` or `md5:…`; a file that is kept but doesn't have it is fetched again. None: the publisher
            says none.
        size: of a file so large that it is said before it is fetched.

    Raises:
        CorpusError: it can't be fetched, or isn't what it should be; says which file to put where.
    """
    import pooch

    url, file = f"{base_url.rstrip('/')}/{name}", name.rpartition("/")[2]
    pooch.get_logger().setLevel("WARNING")
    try:
        folder = Path(cache_dir).expanduser()
        if size and not (folder / file).exists():
            note(f"fetching {url} ({size}) into {folder}; if it breaks off it begins anew")
        pooch.retrieve(url, known_hash=checksum, fname=file, path=folder, progressbar=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise CorpusError(
            f"can't fetch {url}: {_why(error)}; get {file} another way and put it into {cache_dir}, "
            "or set corpus.path to it"
        ) from error
    return str(folder / file)


def _why(error: Exception) -> str:
    """What went wrong; of a server that can't be reached without the layers that `requests` puts around it."""
    inner = getattr(error.args[0], "reason", None) if error.args else None
    return str(inner).partition("): ")[2] or str(inner) if inner else reason(error)
