import pytest

from agentworld.storage.address import redact


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://anna:hidden@host:5432/db", "postgresql://anna:***@host:5432/db"),
        ("postgresql+psycopg://:hidden@/db", "postgresql+psycopg://:***@/db"),
        ("ftp://anna:hid@den/hid:den@host", "ftp://anna:***@host"),
        ("x://host/db?password=hidden&sslmode=require", "x://host/db?password=***&sslmode=require"),
        ("x://host/db?sslmode=a&sslPassword=hidden", "x://host/db?sslmode=a&sslPassword=***"),
        ("s3://bucket/a?aws_secret_access_key=hidden", "s3://bucket/a?aws_secret_access_key=***"),
        ("s3://b/a?X-Amz-Signature=hidden&v=1", "s3://b/a?X-Amz-Signature=***&v=1"),
        ("s3://b/a?X-Amz-Credential=hidden", "s3://b/a?X-Amz-Credential=***"),
        ("s3://b/a?X-Amz-Security-Token=hidden", "s3://b/a?X-Amz-Security-Token=***"),
        ("gs://b/a?X-Goog-Signature=hidden", "gs://b/a?X-Goog-Signature=***"),
        ("gs://b/a?X-Goog-Credential=hidden", "gs://b/a?X-Goog-Credential=***"),
        ("az://b/a?sv=1&sig=hidden&se=2", "az://b/a?sv=1&sig=***&se=2"),
        ("x://b/a?design=plain", "x://b/a?design=plain"),
        ("anna:hidden@host/db", "anna:***@host/db"),
        ("http//run:hidden@host", "http//run:***@host"),
        ("no address: 'run:hidden@host'", "no address: 'run:***@host'"),
        ("cannot reach ftp://anna:hidden@host now", "cannot reach ftp://anna:***@host now"),
        ("sqlite:////folder/ledger.db", "sqlite:////folder/ledger.db"),
        ("/folder/a@b:c", "/folder/a@b:c"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address, told):
    assert redact(address) == told
