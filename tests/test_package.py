"""The package: sdist and wheel are built, the wheel is installed outside the checkout, and the installed program runs.

The environment is a fresh one whose dependencies are those of the environment of the tests (a .pth file names its
folder): that `pip` can resolve and download them is checked by .ci/platforms.
"""

import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

import bert_tf

ROOT = Path(__file__).parents[1]
EXPLORER = "bert_tf/_explorer/"
TEXT = "The capital of France is [MASK]."


def run(*command, folder, **options):
    """What a program prints, in a folder outside the checkout and without the checkout on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("package")


@pytest.fixture(scope="module")
def sdist(place):
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(place), folder=ROOT)
    return place / f"bert_tf-{bert_tf.__version__}.tar.gz"


@pytest.fixture(scope="module")
def wheel(place, sdist):
    """The wheel, built from the unpacked sdist: what is not in the sdist is not in the wheel either."""
    # Python 3.11.2, as in Debian 12, has no filters.
    checked = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "unpacked", **checked)
    (source,) = (place / "unpacked").iterdir()
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--no-cache-dir", "-q", "-w", str(place))
    run(sys.executable, "-m", "pip", "wheel", *options, str(source), folder=place)
    return place / f"bert_tf-{bert_tf.__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def programs(place, wheel):
    """The folder of the programs of an environment in which the wheel is installed."""
    venv.create(place / "environment", with_pip=False)
    scripts = place / "environment" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    options = ("--no-deps", "--no-index", "-q")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, str(wheel), folder=place)
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=place).strip()
    own = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    Path(packages, "dependencies.pth").write_text("\n".join(own), encoding="utf-8")
    return scripts


@pytest.mark.slow
def test_the_wheel_holds_the_explorer_and_the_models_as_the_repository_has_them(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    tracked = run("git", "ls-files", "-z", folder=ROOT).split("\0")
    parts = ("app.py", "assets/", "explorer", "pages/", "ui/", ".streamlit/")
    expected = {
        EXPLORER + name for name in tracked if name.startswith(parts) and not name.startswith("assets/screenshots/")
    } | {name for name in tracked if name.startswith("bert_tf/")}
    assert expected - names == set()
    assert {name.split("/")[0] for name in names} == {"bert_tf", f"bert_tf-{bert_tf.__version__}.dist-info"}


@pytest.mark.slow
def test_the_installed_program_predicts_outside_the_checkout(programs, tmp_path):
    command = (str(programs / "bert-tf"), "predict", TEXT, "--json", "--top-k", "1")
    answer = json.loads(run(*command, folder=tmp_path))
    assert answer["masks"][0]["predictions"][0]["token"] == "Paris"
    assert run(str(programs / "bert-tf"), "--version", folder=tmp_path).split() == ["bert_tf", bert_tf.__version__]


@pytest.mark.slow
def test_the_installed_program_opens_the_page(programs, tmp_path):
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    command = (str(programs / "bert-tf"), "explore", "--no-browser", "--port", str(port))
    log = tmp_path / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 240
        while True:
            assert server.poll() is None and time.monotonic() < end, log.read_text("utf-8")
            try:
                with urllib.request.urlopen(f"http://localhost:{port}/", timeout=5) as page:
                    assert page.status == 200
                break
            except OSError:
                time.sleep(0.2)
    finally:
        server.terminate()
        server.wait(120)


@pytest.mark.slow
def test_the_installed_page_predicts(programs, tmp_path):
    script = """
import sys
from streamlit.testing.v1 import AppTest
import bert_tf
folder = bert_tf.explorer_folder()
sys.path.insert(0, str(folder))  # as `streamlit run` does
app = AppTest.from_file(str(folder / "app.py"), default_timeout=120)
app.session_state["w_code_menu"] = True
app.run()
assert not app.exception and not app.error, (app.exception, app.error)
import ui
assert str(folder) in ui.__file__ and folder.name == "_explorer"
exec(app.code[-1].value)  # "Copy as Python"
"""
    run(str(programs / "python"), "-c", script, folder=tmp_path)


def test_the_version_stands_in_one_place_and_the_documents_follow():
    """pyproject.toml reads it from bert_tf/__init__.py."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "bert_tf/__init__.py"
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.M)[1] == bert_tf.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[1]
    assert newest == bert_tf.__version__


def names_of(requirements):
    """The names of packages in requirement lines, normalized."""
    actual = (re.match(r"[\w.-]+", line) for line in requirements)
    return {re.sub(r"[-_.]+", "-", match[0]).lower() for match in actual if match}


def pinned(name):
    """The lines of a requirements file and of those that it includes, without comments."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    own = [line for line in lines if line and not line.startswith(("#", "-r"))]
    return own + [line for other in lines if other.startswith("-r ") for line in pinned(other[3:])]


def test_the_pinned_files_have_the_packages_of_the_extras_and_no_others():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: names_of(lines) - {"bert-tf"} for name, lines in project["optional-dependencies"].items()}
    base = names_of(project["dependencies"])
    assert names_of(pinned("requirements.txt")) == base | extras["train"] | extras["umap"]
    assert names_of(pinned("requirements-beam.txt")) == names_of(pinned("requirements.txt")) | extras["beam"]
    assert names_of(pinned("requirements-dev.txt")) == names_of(pinned("requirements-beam.txt")) | extras["dev"]
    assert names_of(pinned("requirements-bench.txt")) == names_of(pinned("requirements.txt")) | extras["bench"]


def test_each_extra_is_named_where_a_user_reads_how_to_install():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    texts = [path.read_text("utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    named = {name for text in texts for found in re.findall(r"\.\[([\w,]+)\]", text) for name in found.split(",")}
    assert {*extras} - {"dev", "bench"} <= named
