# The explorer with its embedded models; it needs no network when it runs. docs/tutorials/put_it_on_the_web.md has the commands.
FROM python:3.12-slim AS build
WORKDIR /source
COPY requirements.txt requirements-shared.txt ./
RUN python -m venv /opt/explorer && /opt/explorer/bin/pip install --no-cache-dir -r requirements.txt
COPY . .
RUN /opt/explorer/bin/pip install --no-cache-dir --no-deps .

FROM python:3.12-slim
RUN useradd --create-home --uid 1000 explorer
COPY --from=build /opt/explorer /opt/explorer
ENV PATH=/opt/explorer/bin:$PATH BERT_TF_HOME=/home/explorer/models HF_HUB_OFFLINE=1
USER explorer
WORKDIR /home/explorer
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://localhost:8501/_stcore/health', timeout=4)"]
CMD ["bert-tf", "explore", "--public", "--address", "0.0.0.0", "--no-browser"]
