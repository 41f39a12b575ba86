"""What a plant is: a build or test run that fails for a known reason."""

import typing


class Plant(typing.NamedTuple):
    kind: str
    command: str
    files: dict
    cause: str
    also: str = ""
    before: str = ""
    needs: str = ""
