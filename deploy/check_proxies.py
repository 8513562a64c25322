"""Opens the explorer through nginx and Caddy, below a path and over websockets, with the files of this folder.

    python deploy/check_proxies.py

Needs nginx, Caddy, and what requirements-dev.txt has, with a Chromium on the PATH. Only ports and the address of the
explorer are changed in the files. For each proxy it prints the address of the page's websocket once the predictions are
on the page, and the status of an upload above the bound of the file.
"""

import argparse
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.installed_chromium import find_chromium  # noqa: E402

LINK = "/bert/?a=The%20capital%20of%20France%20is%20Paris.&mask=a5"
TOO_LARGE = 3_000_000
HOST = "bert.example.org"  # in the browser, this machine; the explorer lets every page of 127.0.0.1 in


def main():
    """Start the explorer and both proxies, and visit."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    missing = [program for program in ("nginx", "caddy") if shutil.which(program) is None]
    if missing or find_chromium() is None:
        raise SystemExit(f"Not on the PATH: {', '.join(missing) or 'a Chromium'}.")
    with tempfile.TemporaryDirectory() as folder:
        folder, ports = Path(folder), {name: _free_port() for name in ("explorer", "nginx", "caddy")}
        explore = ["explore", "--public", "--no-browser", "--base-path", "bert", "--port", str(ports["explorer"])]
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "SITE": f"https://localhost:{ports['caddy']}"}
        environment |= dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(folder))
        commands = [
            ["nginx", "-p", str(folder), "-c", str(_nginx(folder, ports))],
            ["caddy", "run", "--adapter", "caddyfile", "--config", str(_caddy(folder, ports))],
        ]
        started = [subprocess.Popen([sys.executable, "-m", "bert_tf", *explore], cwd=HERE.parent)]
        started += [subprocess.Popen(command, env=environment) for command in commands]
        try:
            _wait(f"http://127.0.0.1:{ports['explorer']}/bert/_stcore/health")
            visit("nginx", f"http://{HOST}:{ports['nginx']}")
            visit("caddy", f"https://localhost:{ports['caddy']}")
            secure = http.client.HTTPSConnection("localhost", ports["caddy"], context=ssl._create_unverified_context())
            for name, server in (("nginx", http.client.HTTPConnection("127.0.0.1", ports["nginx"])), ("caddy", secure)):
                print(f"{name}: an upload of {TOO_LARGE:,} bytes gets status {_upload(server)}")
        finally:
            for process in started:
                process.terminate()
                process.wait(30)


def _nginx(folder, ports):
    text = (HERE / "nginx.conf").read_text("utf-8")
    text = text.replace("listen 80;", f"listen 127.0.0.1:{ports['nginx']};")
    text = text.replace("127.0.0.1:8501", f"127.0.0.1:{ports['explorer']}")
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    logs = f"access_log off;\nerror_log {folder}/log;\n"
    path = folder / "nginx.conf"
    path.write_text(
        f"daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\n{logs}{paths}{text}\n}}\n", encoding="utf-8"
    )
    return path


def _caddy(folder, ports):
    text = (HERE / "Caddyfile").read_text("utf-8").replace("explorer:8501", f"127.0.0.1:{ports['explorer']}")
    path = folder / "Caddyfile"
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"
    path.write_text(options + text, encoding="utf-8")
    return path


def visit(name, address):
    """Open a link in a browser that trusts Caddy's own certificate; fails if no prediction appears in two minutes."""
    with sync_playwright() as playwright:
        options = ["--no-sandbox", f"--host-resolver-rules=MAP {HOST} 127.0.0.1"]
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=options)
        page = browser.new_context(ignore_https_errors=True).new_page()
        sockets, failed = [], []
        page.on("websocket", lambda socket: sockets.append(socket.url))
        page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
        page.goto(address + LINK, wait_until="domcontentloaded")
        page.get_by_text("Bordeaux").first.wait_for(timeout=120_000)
        print(f"{name}: predictions over {', '.join(sockets)}; failed requests: {failed}", flush=True)
        assert sockets and all(url.startswith(address.replace("http", "ws") + "/bert/") for url in sockets)
        assert not failed
        browser.close()


def _upload(server):
    server.request("PUT", "/bert/_stcore/upload_file/one/two", b"x" * TOO_LARGE)
    return server.getresponse().status


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(address):
    end = time.monotonic() + 120
    while True:
        try:
            return urllib.request.urlopen(address, timeout=5)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


if __name__ == "__main__":
    main()
