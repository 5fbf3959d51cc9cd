#!/bin/sh
# What the chart asks of PostgreSQL's official image: its variables, its files for the first start.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --encoding=UTF8 --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \
    --auth-local=trust --auth-host=scram-sha-256 >/dev/null
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  pg_ctl --wait --silent --options="-c listen_addresses=''" start >/dev/null
  createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
  for file in /docker-entrypoint-initdb.d/*.sql; do
    psql --quiet --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --file="$file"
  done
  pg_ctl --wait --silent stop
fi
exec "$@" -c listen_addresses='*'
