"""Runs the steps of the Dockerfile in a clean root of Debian, where no Docker daemon runs, and tries the result.

    sudo python deploy/check_image.py /var/tmp/image

Needs Linux, root, debootstrap, iproute2, a network for the build, and 8 GB of disk. The base image is replaced by a
minimal root of the same Debian release with the same Python, kept in FOLDER/base. Each instruction of the Dockerfile is
read from it and run there: nothing is repeated here. Then the image's command runs as the image's user in a network
namespace that has only the loopback device: its health check must pass, a visitor must get a page with predictions
without an error, and the command line must predict. Prints the size of the image and the memory of its process.
"""

import argparse
import fnmatch
import json
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
MAX_BYTES = 3_000_000_000
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As a daemon hands them to a build.
_OUTSIDE = re.compile(r"(PIP_\w+|\w+_proxy|\w+_PROXY)$")


@dataclass
class Stage:
    """What the instructions since a FROM have made.

    Attributes:
        root: Path. Its files.
        environment: dict. What ENV set.
        folder, user: str. What WORKDIR and USER set last.
        command, health: list of str. The words of CMD and of HEALTHCHECK's CMD.
        port: int or None. What EXPOSE names.
    """

    root: Path
    environment: dict = field(default_factory=lambda: {"PATH": SEARCH_PATH})
    folder: str = "/"
    user: str = "root"
    command: list = field(default_factory=list)
    health: list = field(default_factory=list)
    port: int | None = None

    def run(self, words, network=True, **options):
        """Run words in the root, as its user, with /proc and /dev of this machine."""
        environment = dict(self.environment)
        if self.user != "root":
            environment["HOME"] = self.home()
        mounts = 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc"'
        if network:
            environment |= {name: value for name, value in os.environ.items() if _OUTSIDE.match(name)}
            mounts += ' && mkdir -p "$0/etc/ssl/certs" && mount --rbind /etc/ssl/certs "$0/etc/ssl/certs"'
            mounts += ' && touch "$0/etc/resolv.conf" && mount --bind /etc/resolv.conf "$0/etc/resolv.conf"'
        enter = 'cd "$1" && shift && exec "$@"'
        chroot = f'exec chroot --userspec={self.user} "$0" /bin/sh -c \'{enter}\' sh "$@"'
        command = ["unshare", "--mount", "sh", "-c", f"{mounts} && {chroot}", str(self.root), self.folder, *words]
        start = options.pop("start", subprocess.run)
        return start(command, env=environment, **options)

    def home(self):
        """The home of the user, from the root's own list."""
        lines = (self.root / "etc/passwd").read_text().splitlines()
        return next(parts[5] for parts in (line.split(":") for line in lines) if parts[0] == self.user)


def instructions(dockerfile):
    """(keyword, rest) of each instruction of a Dockerfile."""
    lines = [line for line in dockerfile.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            keyword, _, rest = line.strip().partition(" ")
            yield keyword.upper(), rest.strip()


def build(dockerfile, folder):
    """Run the instructions. Returns: the last `Stage`."""
    stages, names = [], {}
    for keyword, rest in instructions(dockerfile):
        print(f"--- {keyword} {rest}", flush=True)
        if keyword == "FROM":
            image, *name = re.split(r"\s+AS\s+", rest, flags=re.IGNORECASE)
            stage = Stage(folder / f"stage{len(stages)}")
            start_stage(image, folder, stage.root)
            stages.append(stage)
            names[name[0] if name else str(len(stages) - 1)] = stage
        elif keyword == "RUN":
            stage.run(["/bin/sh", "-c", rest], check=True)
        elif keyword == "COPY":
            copy(rest, stage, names)
        elif keyword == "ENV":
            for name, _, value in (pair.partition("=") for pair in shlex.split(rest)):
                stage.environment[name] = string.Template(value).substitute(stage.environment)
        elif keyword == "WORKDIR":
            stage.folder = rest
            if not inside(stage, rest).is_dir():
                inside(stage, rest).mkdir(parents=True)
        elif keyword == "USER":
            stage.user = rest
        elif keyword == "EXPOSE":
            stage.port = int(rest)
        elif keyword == "HEALTHCHECK":
            stage.health = json.loads(rest.partition("CMD")[2])
        elif keyword == "CMD":
            stage.command = json.loads(rest)
        else:
            raise SystemExit(f"{dockerfile} has {keyword}, which this script does not know.")
    return stages[-1]


def start_stage(image, folder, root):
    """A fresh copy of the base image's stand-in: the same Debian release with its Python."""
    match = re.fullmatch(r"python:(\d+\.\d+)-slim-(\w+)", image)
    if not match:
        raise SystemExit(f"The base image {image} is not of the form python:VERSION-slim-RELEASE.")
    version, release = match.groups()
    base = folder / "base"
    if not (base / "usr/local/bin/python").is_symlink():
        packages = "--include=python3,python3-venv,ca-certificates"
        if not (base / "usr/bin/python3").exists():
            subprocess.run(["debootstrap", "--variant=minbase", packages, release, str(base)], check=True)
        (base / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        shutil.rmtree(base / "var/cache/apt/archives", ignore_errors=True)
        shutil.rmtree(base / "var/lib/apt/lists", ignore_errors=True)
    installed = Stage(base).run(["python", "--version"], capture_output=True, text=True, check=True).stdout
    if not installed.startswith(f"Python {version}."):
        raise SystemExit(f"Debian {release} has {installed.strip()}, but the base image has Python {version}.")
    subprocess.run(["rm", "-rf", str(root)], check=True)
    subprocess.run(["cp", "-a", str(base), str(root)], check=True)


def copy(rest, stage, names):
    """COPY [--from=STAGE] SOURCE... TARGET, without what .dockerignore names."""
    words = shlex.split(rest)
    other = names[words.pop(0).partition("=")[2]] if words[0].startswith("--from=") else None
    *sources, target = words
    to = inside(stage, os.path.join(stage.folder, target))
    for source in sources:
        origin = inside(other, source) if other else SOURCE / source
        if origin.is_dir():
            ignore = None if other else ignored
            shutil.copytree(origin, to, symlinks=True, ignore=ignore, dirs_exist_ok=True)
        else:
            to.mkdir(parents=True, exist_ok=True) if target.endswith("/") else None
            shutil.copy(origin, to)


def ignored(folder, names):
    """The names in a folder of the checkout that .dockerignore leaves out."""
    patterns = (SOURCE / ".dockerignore").read_text("utf-8").split()
    within = Path(folder).resolve().relative_to(SOURCE)

    def matches(name, pattern):
        anywhere = pattern.startswith("**/")
        return fnmatch.fnmatch(name, pattern[3:]) if anywhere else (within / name).as_posix() == pattern

    return [name for name in names if any(matches(name, pattern) for pattern in patterns)]


def inside(stage, path):
    """The place on this machine of a path of the image."""
    return stage.root / path.lstrip("/")


#: Runs with the Python of the image before benchmarks/visitor.py, which reads the texts of errors in the explorer.
_PATH = """
import sys
from bert_tf.files import explorer_folder
sys.path.insert(0, str(explorer_folder()))
"""
#: Runs after it.
_VISIT = """
import json, sys
visitor, visits = Visitor(f"http://127.0.0.1:{sys.argv[1]}"), []
for page in ("predict", "all_heads", "saliency"):
    seconds, failed = visitor.open(page=page, a="The capital of France is Paris.", mask="a5")
    visits.append([page, round(seconds, 1), failed])
print(json.dumps(visits))
"""


def try_offline(stage):
    """Start the image's command without a network and use it. Called inside a network namespace of its own."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    devices = json.loads(subprocess.run(["ip", "-json", "-4", "route"], capture_output=True, check=True).stdout or "[]")
    print(f"--- routes to other machines: {len(devices)}")
    sentence = "The capital of France is [MASK]."
    answer = stage.run(["bert-tf", "predict", sentence], network=False, capture_output=True, text=True)
    print(answer.stdout, answer.stderr)
    problems = [] if answer.returncode == 0 and "Paris" in answer.stdout else ["bert-tf predict does not answer"]
    began = time.monotonic()
    app = stage.run(stage.command, network=False, start=subprocess.Popen)
    try:
        while stage.run(stage.health, network=False, capture_output=True).returncode and app.poll() is None:
            if time.monotonic() > began + 60:
                return [*problems, "the health check fails for a minute"]
            time.sleep(0.5)
        print(f"--- healthy after {time.monotonic() - began:.1f} s")
        script = _PATH + (SOURCE / "benchmarks/visitor.py").read_text("utf-8") + _VISIT
        seen = stage.run(["python", "-", str(stage.port)], network=False, input=script, text=True, capture_output=True)
        print(seen.stdout, seen.stderr)
        if seen.returncode or any(failed for _, _, failed in json.loads(seen.stdout)):
            problems.append("a page shows an error")
        status = Path(f"/proc/{app.pid}/status").read_text()
        memory, most, user = (re.search(rf"{name}:\s+(\d+)", status)[1] for name in ("VmRSS", "VmHWM", "Uid"))
        print(f"memory of the process: {int(memory) / 976.6:.0f} MB, at most {int(most) / 976.6:.0f} MB")
        print(f"user of the process: {user}")
        if user == "0":
            problems.append("the process runs as root")
    finally:
        app.terminate()
        app.wait(30)
    return problems


def main():
    """Build, measure, try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="outside the checkout")
    parser.add_argument("--built", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.built:
        state = json.loads(args.built)
        problems = try_offline(replace(Stage(args.folder), **state))
        raise SystemExit("\n".join(problems) or None)
    if args.folder.resolve().is_relative_to(SOURCE):
        parser.error("FOLDER must lie outside the checkout, which is copied into the image.")
    args.folder.mkdir(parents=True, exist_ok=True)
    stage = build(SOURCE / "Dockerfile", args.folder.resolve())
    size = int(subprocess.run(["du", "-sb", stage.root], capture_output=True, text=True, check=True).stdout.split()[0])
    print(f"--- the image: {size / 1e9:.2f} GB")
    state = {key: value for key, value in vars(stage).items() if key != "root"}
    command = ["unshare", "--net", sys.executable, __file__, str(stage.root), "--built", json.dumps(state)]
    failed = subprocess.run(command).returncode
    if size > MAX_BYTES:
        raise SystemExit(f"The image has more than {MAX_BYTES / 1e9:.0f} GB.")
    if failed:
        raise SystemExit(1)
    print("The image answers without a network.")


if __name__ == "__main__":
    main()
