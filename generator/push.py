"""`python -m generator.push`: the dataset of a run folder on the Hugging Face Hub; see `docs/push.md`."""

import sys
from pathlib import Path
from typing import Any

from pydantic import Field

from generator.command import Command, run_command, with_settings
from generator.schema import Record

COMMAND = Command(
    program="python -m generator.push",
    primary="push",
    task="generator.push:push",
    settings="generator.push:PushSettings",
    usage=(
        "python -m generator.push RUN OWNER/NAME [private=false]",
        "",
        "Publishes the dataset of a run folder, or of human dialogs, on the Hugging Face Hub: its parquet files, its",
        "card, and report.html if there is one, in one commit. Private unless private=false. The token comes from",
        "HF_TOKEN or from `hf auth login`; HF_ENDPOINT names another hub.",
    ),
    groups=(),
    positional="target",
    many=True,
)


class PushSettings(Record):
    target: tuple[str, ...] = Field(description="The run folder, and OWNER/NAME of the dataset on the hub.")
    private: bool = Field(
        description="Only you and your organisation see it; false: everybody does. A dataset that is there already "
        "stays as it is, and a public one is refused unless private=false."
    )


@with_settings(PushSettings)
def push(settings: PushSettings) -> None:
    """Publish the configured run folder in one commit, and print where it is.

    Raises:
        ConfigError: a setting is wrong, or there is no token.
        ExportError: there is no dataset, or the hub refuses it; nothing was published.
    """
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import disable_progress_bars

    from generator.errors import ConfigError, ExportError, describe

    if len(settings.target) != 2 or settings.target[1].count("/") != 1:
        raise ConfigError(
            "target: must be a run folder and OWNER/NAME, such as: python -m generator.push outputs/RUN me/dialogs"
        )
    folder, name = Path(settings.target[0]).expanduser(), settings.target[1]
    files = _list_files(folder)
    if (token := get_token()) is None:
        raise ConfigError("no token of the Hugging Face Hub: set HF_TOKEN, or run `hf auth login`")
    if not sys.stderr.isatty():
        disable_progress_bars()
    api = HfApi(token=token)
    try:
        private = _commit(api, name, files, settings.private)
    except ExportError:
        raise
    except Exception as error:  # of several kinds, by the HTTP library that a release of huggingface_hub uses
        if sys.stderr.isatty():
            print(file=sys.stderr)  # below a progress bar
        cause = error.__cause__ if isinstance(error, RuntimeError) else None  # it names the file alone
        why = describe(cause if isinstance(cause, Exception) else error)
        denied = getattr(getattr(error, "response", None), "status_code", 0) in (401, 403)
        fix = "set HF_TOKEN to a token that may write there" if denied else "the same command tries again"
        fix = "give another OWNER/NAME" if isinstance(error, HFValidationError) else fix
        raise ExportError(f"{api.endpoint}: {name} wasn't published ({why}); {fix}") from error
    seen = "private" if private else "public"
    print(f"pushed: {len(files)} files to {api.endpoint}/datasets/{name} ({seen})", flush=True)


def _list_files(folder: Path) -> dict[str, Path]:
    """Return what is published of a run folder, by the path in the repository.

    Raises:
        ExportError: the folder isn't there, or has no dataset.
    """
    from generator.errors import ExportError

    if not folder.is_dir():
        raise ExportError(f"{folder}: is no folder; give the folder of a run that has a dataset")
    dataset = folder / "dataset"
    files = {path.relative_to(dataset).as_posix(): path for path in sorted(dataset.rglob("*")) if path.is_file()}
    if "README.md" not in files:
        there = [name for name in ("run.db", "dialogs.jsonl", "drops.jsonl") if (folder / name).exists()]
        what = "its run has accepted no dialog yet" if "run.db" in there else "it isn't a run folder"
        if there == ["run.db", "dialogs.jsonl"]:  # a run of judging has no drops
            what = "judged dialogs have none, only the run that they came from"
        raise ExportError(f"{folder}: has no dataset: {what}; give the folder of a run that has one")
    if (report := folder / "report.html").is_file():
        files["report.html"] = report
    return files


def _commit(api: Any, name: str, files: dict[str, Path], private: bool) -> bool:
    """Create the repository if it isn't there, and publish the files in one commit; return whether it is private.

    Raises:
        ExportError: it is there, and public against the settings.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete
    from huggingface_hub.errors import HfHubHTTPError

    from generator.errors import ExportError

    stale: list[str] = []
    try:
        api.create_repo(name, repo_type="dataset", private=private)
    except HfHubHTTPError as error:
        if error.response is None or error.response.status_code != 409:  # it is there
            raise
        known = api.repo_info(name, repo_type="dataset")
        if private and not known.private:
            raise ExportError(f"{name}: is public on the hub; private=false publishes there") from error
        private = bool(known.private)
        there = [file.rfilename for file in known.siblings or ()]
        ours = ("data/", "report.html")
        stale = [path for path in there if path.startswith(ours) and path not in files]  # of an earlier push
    operations = [CommitOperationAdd(path_in_repo=path, path_or_fileobj=file) for path, file in files.items()]
    operations += [CommitOperationDelete(path_in_repo=path) for path in stale]
    api.create_commit(name, operations, commit_message="Dialogs of grounded-dialogs", repo_type="dataset")
    return private


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
