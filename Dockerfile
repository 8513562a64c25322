# The explorer with its embedded models; it needs no network when it runs. docs/tutorials/put_it_on_the_web.md has the commands.
FROM python:3.13-slim-trixie AS build
WORKDIR /source
COPY requirements.txt requirements-shared.txt ./
# Without what only trainings use, and without TensorFlow's headers and symbols: 1 GB less.
RUN apt-get update && apt-get install --yes --no-install-recommends binutils \
  && python -m venv /opt/explorer \
  && /opt/explorer/bin/pip install --no-cache-dir -r requirements.txt \
  && /opt/explorer/bin/pip uninstall --yes tensorflow-text matplotlib fonttools \
  && cd /opt/explorer/lib/python3.13/site-packages/tensorflow \
  && rm -r include && strip --strip-unneeded libtensorflow_cc.so.2 libtensorflow_framework.so.2
COPY . .
RUN /opt/explorer/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13-slim-trixie
RUN useradd --create-home --uid 1000 explorer
COPY --from=build /opt/explorer /opt/explorer
ENV PATH=/opt/explorer/bin:$PATH BERT_TF_HOME=/home/explorer/models HF_HUB_OFFLINE=1
USER explorer
WORKDIR /home/explorer
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://localhost:8501/_stcore/health', timeout=4)"]
CMD ["bert-tf", "explore", "--public", "--address", "0.0.0.0", "--no-browser"]
