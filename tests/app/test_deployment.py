"""Who can reach the explorer, and what the limits of a public server allow."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

import pytest
import yaml
from streamlit import config, net_util
from streamlit.web.server import server_util

import bert_tf
from bert_tf.cli.web import explore
from deploy.check_image import instructions
from tests.app.page_reading import PATIENCE
from ui.server import lifespan
from ui.shell.limits import Limits, read_limits

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLIC = ROOT / "explorer.public.toml"
EMBEDDED = ROOT / "assets" / "models"


def test_only_this_machine_reaches_an_explorer_started_without_an_address(tmp_path):
    with socket.socket() as free_port:
        free_port.bind(("127.0.0.1", 0))
        port = free_port.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name != "STREAMLIT_SERVER_ADDRESS"}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--server.headless", "true"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        end = time.monotonic() + PATIENCE
        while not _answers("127.0.0.1", port):
            assert server.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.1)
        # On Linux a server on all interfaces answers here too; one on localhost does not.
        assert not _answers("127.0.0.2", port)
    finally:
        server.kill()
        server.wait()


def test_a_server_whose_limits_cannot_be_read_does_not_start():
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true", "--server.port", "0"]
    server = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "BERT_TF_EXPLORER": "explorer.pubic.toml"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert server.returncode == 2
    assert "explorer.pubic.toml cannot be read" in server.stderr and "Traceback" not in server.stderr


def _answers(host, port):
    with socket.socket() as connection:
        connection.settimeout(5)
        return connection.connect_ex((host, port)) == 0


def test_the_terminal_and_the_browser_have_the_address_that_the_explorer_listens_at():
    parser = argparse.ArgumentParser()
    explore.add_arguments(parser)
    options = {at: explore._options(parser.parse_args(["--address", at])) for at in ("192.168.1.5", "0.0.0.0")}
    assert "--browser.serverAddress=192.168.1.5" in options["192.168.1.5"]
    assert not [option for option in options["0.0.0.0"] if "browser" in option]


def test_a_visitor_from_another_site_makes_the_server_ask_nobody(monkeypatch):
    asked = []
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda url, timeout=5: asked.append(url))
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # put back afterwards
    lifespan.ask_nobody()
    assert not server_util.is_url_from_allowed_origins("https://elsewhere.example")
    assert asked == []


@pytest.mark.parametrize("proxy", ["nginx.conf", "Caddyfile"])
def test_a_proxy_of_the_project_forbids_other_sites_to_show_it_in_a_frame(proxy):
    lines = [line.split("#")[0].split() for line in (ROOT / "deploy" / proxy).read_text().splitlines()]
    sent = {line[1]: " ".join(line[2:]) for line in lines if line[:1] in (["header"], ["add_header"])}
    assert sent["Content-Security-Policy"].startswith("\"frame-ancestors 'none'\"")
    assert sent["X-Frame-Options"].startswith("DENY")


def test_visitors_of_a_public_server_can_start_no_training_and_no_download():
    limits = read_limits(PUBLIC)
    assert not limits.train and not limits.download
    assert sorted(limits.offered) == sorted(folder.name for folder in (ROOT / "assets" / "models").iterdir())


def test_a_public_server_has_smaller_limits_than_a_laptop():
    public, laptop = read_limits(PUBLIC), read_limits(ROOT / "explorer.toml")
    values = {field.name: getattr(laptop, field.name) for field in dataclasses.fields(Limits)}
    numbers = {name for name, value in values.items() if type(value) is int}
    assert all(getattr(public, name) <= values[name] for name in numbers)
    smaller = {name for name in numbers if getattr(public, name) < values[name]}
    assert {"max_characters", "max_megabytes", "max_session_megabytes", "max_jobs", "max_file_kilobytes"} <= smaller


def test_an_error_box_has_no_links_to_other_sites():
    assert config.get_option("client.showErrorLinks") is False
    assert config.get_option("client.showErrorDetails") == "none"


SMALL_SERVER = """
import json, sys, time
from streamlit.testing.v1 import AppTest
errors = {}
task_head = {"model": "parts-of-speech-base-cased", "architecture.open": "task"}
pages = {"predict": {}, "architecture": task_head, "ablation": {}, "saliency": {}}
for page, more in pages.items():
    app = AppTest.from_file("app.py", default_timeout=300)
    app.query_params.update(page=page, a="The bunny ate.", mask="a1", **more)
    app.run()
    while any(job.running for job in app.session_state["_jobs"].values()):
        time.sleep(0.05)
    app.run()
    assert not app.exception, app.exception
    errors[page] = [error.value for error in app.error]
imported = [module for module in ("tensorflow", "keras") if module in sys.modules]
print(json.dumps([errors, imported]))
"""


def test_a_server_without_memory_for_tensorflow_says_so_where_it_is_needed(tmp_path):
    limits = tmp_path / "explorer.toml"
    limits.write_text('[models]\ndefault = "bert-small-uncased-embedded"\ntensorflow = false\n')
    environment = {**os.environ, "BERT_TF_EXPLORER": str(limits), "BERT_TF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SMALL_SERVER], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    output, imported = json.loads(done.stdout.splitlines()[-1])
    assert not imported and not output["predict"] and not output["architecture"] and not output["ablation"]
    (sentence,) = output["saliency"]
    assert sentence.startswith("This server has no memory for TensorFlow") and "Choose another method" in sentence


def test_a_small_server_is_a_public_one_with_less():
    small, public = (read_limits(path) for path in (ROOT / "deploy" / "small_server.toml", PUBLIC))
    changed = {
        field.name for field in dataclasses.fields(small) if getattr(small, field.name) != getattr(public, field.name)
    }
    assert changed == {
        *("default", "offered", "tensorflow", "max_map_megabytes", "max_megabytes"),
        *("max_session_megabytes", "max_snapshot_megabytes"),
    }
    assert set(small.offered) < set(public.offered) and small.max_megabytes < public.max_megabytes
    sizes = [sum(path.stat().st_size for path in (EMBEDDED / name).iterdir()) for name in small.offered]
    assert max(sizes) < 30e6


def test_compose_starts_the_dockerfile_behind_the_caddyfile():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert services["explorer"]["build"] == "." and (ROOT / "Dockerfile").is_file()
    assert "ports" not in services["explorer"]  # only the proxy is reached from outside
    caddy = (ROOT / "deploy/Caddyfile").read_text("utf-8")
    name, port = re.search(r"reverse_proxy (\w+):(\d+)", caddy).groups()
    assert name in services["proxy"]["depends_on"] and port == of_the_dockerfile("EXPOSE")
    (mounted,) = [volume for volume in services["proxy"]["volumes"] if volume.startswith("./")]
    assert (ROOT / mounted.split(":")[0]).is_file() and mounted.split(":")[1:] == ["/etc/caddy/Caddyfile", "ro"]
    assert set(services["proxy"]["environment"]) == set(re.findall(r"\{\$(\w+)", caddy))


def test_the_kubernetes_manifest_fits_the_image_and_itself():
    documents = yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text("utf-8"))
    parts = {document["kind"]: document for document in documents}
    pod = parts["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    port = int(of_the_dockerfile("EXPOSE"))
    assert container["image"].endswith(f":{bert_tf.__version__}") and container["ports"] == [{"containerPort": port}]
    health = re.search(rf"localhost:{port}(/[\w/]+)", of_the_dockerfile("HEALTHCHECK"))[1]
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": health, "port": port}
        assert f"--timeout={container[probe]['timeoutSeconds']}s" in of_the_dockerfile("HEALTHCHECK")
    user = pod["spec"]["securityContext"]["runAsUser"]
    assert any(f"--uid {user} {of_the_dockerfile('USER')}" in run for word, run in STEPS if word == "RUN")
    labels, service = pod["metadata"]["labels"], parts["Service"]
    assert parts["Deployment"]["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    (served,) = service["spec"]["ports"]
    (path,) = parts["Ingress"]["spec"]["rules"][0]["http"]["paths"]
    assert served["targetPort"] == port
    assert path["backend"]["service"] == {"name": service["metadata"]["name"], "port": {"number": served["port"]}}
    assert parts["Ingress"]["metadata"]["annotations"]["nginx.ingress.kubernetes.io/affinity"] == "cookie"


def test_the_space_names_the_port_of_the_dockerfile():
    front = (ROOT / "deploy/huggingface/README.md").read_text("utf-8").split("---\n")[1]
    settings = yaml.safe_load(front)
    assert settings["sdk"] == "docker" and str(settings["app_port"]) == of_the_dockerfile("EXPOSE")


STEPS = list(instructions(ROOT / "Dockerfile"))


def of_the_dockerfile(keyword):
    """What the one instruction with this keyword says."""
    (rest,) = (rest for word, rest in STEPS if word == keyword)
    return rest
