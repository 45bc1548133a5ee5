"""Programs that start ranks and pass on what all of them print: srun, mpirun, mpiexec. Pure.

Below one `ranklog run` their ranks share a descriptor, so that nothing but labels, where the program
was told to write some, says whose a line is. Under them, `ranklog run` is each rank's own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

SLURM, MPI, HYDRA = "slurm", "mpi", "hydra"  # forms of labels; ranklog.agent.labels reads them
_MPI_NAMES = ("mpirun", "mpiexec", "mpiexec.hydra", "mpirun.openmpi", "orterun", "prterun")
# Options of one letter that have a value, for srun; then the long ones, which may be cut short by "=".
_SRUN_LETTERS = frozenset("AabBcCdDeGiJLmMnNopqrStTVwWx")
_SRUN_VALUES = frozenset(
    "account acctg-freq array bb bbf begin bcast chdir cluster-constraint clusters comment constraint "
    "container core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline "
    "delay-boot dependency distribution epilog error exclude export extra-node-info gpu-bind gpu-freq "
    "gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint input job-name "
    "jobid licenses mail-type mail-user mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi network nice "
    "nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket "
    "open-mode output partition power priority profile prolog qos relative reservation signal "
    "sockets-per-node switches task-epilog task-prolog thread-spec threads threads-per-core time "
    "time-min tmp tres-bind tres-per-task uid gid wait wckey x11".split()
)
# Of Open MPI, PRRTE and MPICH's Hydra, with one dash or two.
_MPI_VALUES = dict.fromkeys(
    "n np c N H x host hosts hostfile machinefile f wd wdir path map-by rank-by bind-to output "
    "output-filename npernode npersocket ppn perhost timeout stdin personality prefix envlist genvlist "
    "launcher launcher-exec rmk iface prepend-pattern outfile-pattern errfile-pattern configfile arch "
    "topolib usize localhost display with-ft runtime-options stream-buffering tune app".split(),
    1,
) | dict.fromkeys("mca gmca omca prtemca pmixmca env genv am".split(), 2)
_SHOWN_WORDS = 12


@dataclass(frozen=True, slots=True)
class Starter:
    """A command that is one's. `program_at`: where the ranks' own begins, where that can be told."""

    words: tuple[str, ...]
    program_at: int | None
    labels: str = ""  # the form that its lines are labelled in

    @property
    def name(self) -> str:
        return PurePath(self.words[0]).name

    def per_rank(self) -> str:
        """The command that makes each rank a stream, for people."""
        at = self.program_at or 1
        words = [*self.words[:at], *([] if self.program_at else ["…"]), "ranklog", "run", "--"]
        program = self.words[at:] if self.program_at else ("python", "train.py")
        shown = [word if word == "…" else shlex.quote(word) for word in [*words, *program]]
        return " ".join(shown[:_SHOWN_WORDS] + (["…"] if len(shown) > _SHOWN_WORDS else []))

    def advice(self) -> str:
        """One line on what is captured of its ranks, and how to have more; "" where nothing is amiss."""
        if "ranklog" in map(_base, self.words[1:]):
            return ""
        if self.labels:
            told = "lines have the rank that its labels say, and all ranks are one stream"
        else:
            told = "all its ranks are one stream, and no line says which"
        return f"{self.name}: {told}; for a stream each: {self.per_rank()}"


def starter_of(words: Sequence[str], environ: Mapping[str, str]) -> Starter | None:
    """`srun …`, `mpirun …`, `mpiexec …`; None for anything else."""
    if not words:
        return None
    name = _base(words[0])
    if name == "srun":
        at = _program_at(words, _srun_values)
        labelled = environ.get("SLURM_LABELIO", "0") not in ("", "0", "no")
        labelled = labelled or any(_asks_srun(word) for word in words[1:at])
        return Starter(tuple(words), at, SLURM if labelled else "")
    if name in _MPI_NAMES:
        at = _program_at(words, _mpi_values)
        options = [word.lstrip("-") for word in words[1:at] if word.startswith("-")]
        hydra = "l" in options or "prepend-rank" in options
        asked = any(_asks_mpi(words[1:at], place) for place in range(len(words[1:at])))
        return Starter(tuple(words), at, HYDRA if hydra else MPI if asked else "")
    return None


def _base(word: str) -> str:
    return PurePath(word).name


def _asks_srun(word: str) -> bool:
    """`--label`, `-l`, `-ul`: letters are joined up to the first that has a value."""
    if word.startswith("--"):
        return word in ("--label", "--labe", "--lab")
    letters = word[1:] if word.startswith("-") else ""
    for letter in letters:
        if letter == "l":
            return True
        if letter in _SRUN_LETTERS:
            return False
    return False


def _asks_mpi(words: Sequence[str], at: int) -> bool:
    """`--tag-output`; `--output tag,timestamp`, `--output=rank`."""
    name, equals, value = words[at].lstrip("-").partition("=")
    if name == "tag-output":
        return True
    value = value if equals else next(iter(words[at + 1 : at + 2]), "")
    kinds = value.replace(":", ",").split(",")
    return name == "output" and any(kind.startswith(("tag", "rank")) for kind in kinds)


def _srun_values(word: str) -> int:
    """How many of the next words are an option's."""
    if word.startswith("--"):
        return int("=" not in word and word[2:] in _SRUN_VALUES)
    for place, letter in enumerate(word[1:], 1):
        if letter in _SRUN_LETTERS:
            return int(place == len(word) - 1)  # else the rest of the word is the value
    return 0


def _mpi_values(word: str) -> int:
    return 0 if "=" in word else _MPI_VALUES.get(word.lstrip("-"), 0)


def _program_at(words: Sequence[str], values_of: Callable[[str], int]) -> int | None:
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            return at + 1 if at + 1 < len(words) else None
        if not word.startswith("-") or word == "-":
            return at
        at += 1 + values_of(word)
    return None
