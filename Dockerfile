# One image for `omg fleet serve` and `omg fleet work`; compose.yaml runs both beside Postgres.
FROM python:3.12-slim
WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY omg omg
COPY hooks hooks
COPY skills skills
COPY vault_template vault_template
RUN pip install --no-cache-dir ".[fleet,models]" && useradd --create-home omg
USER omg
ENTRYPOINT ["omg", "fleet"]
