"""Addresses of Postgres, Redis, S3, the identity provider and the payment provider: configured ones, or those of `scripts/up`."""

# The user and the database of the Postgres that `scripts/up` starts.
POSTGRES_USER = POSTGRES_DATABASE = "retouch"


def shared_environment(settings):
    """Returns the environment of the programs: the settings, with the addresses of everything `scripts/up` starts."""
    environment = dict(settings.values) | own_store(settings)
    environment.setdefault("RETOUCH_PUBLIC_URL", settings.public_url)
    if not settings.given("REDIS_URL"):
        environment["REDIS_URL"] = f"redis://:{settings.secret('redis-password')}@127.0.0.1:{settings.redis_port}"
    if not settings.given("OIDC_ISSUER"):
        environment |= {"OIDC_ISSUER": settings.issuer, "OIDC_CLIENT_ID": "retouch", "OIDC_AUDIENCE": "retouch-api"}
    if not settings.given("STRIPE_SECRET_KEY"):
        environment |= {
            "STRIPE_SECRET_KEY": f"sk_test_{settings.secret('stripe-key')}",
            "STRIPE_WEBHOOK_SECRET": f"whsec_{settings.secret('stripe-webhook-secret')}",
            "STRIPE_API_URL": f"{settings.stripe_url}/",
        }
    if not settings.given("RETOUCH_CREDENTIALS_CHAIN") and not settings.given("RETOUCH_CREDENTIALS_CHAIN_FILE"):
        folder = credentials_folder(settings)
        environment |= {
            "RETOUCH_CREDENTIALS_CHAIN_FILE": str(folder / "chain.pem"),
            "RETOUCH_CREDENTIALS_KEY_FILE": str(folder / "key.pem"),
        }
    return environment


def credentials_folder(settings):
    """Returns the folder of the certificate that `scripts/up` makes to sign results."""
    return settings.home / "secrets" / "credentials"


def data_environment(settings):
    """Returns the environment of commands that only need Postgres and S3: the settings, or what `scripts/up` starts."""
    return dict(settings.values) | own_store(settings) | {"DATABASE_URL": database_url(settings)}


def own_store(settings):
    """Returns the settings for the S3 server that `scripts/up` starts; none if it starts none."""
    if not has_own_store(settings):
        return {}
    return {
        "S3_ENDPOINT": f"http://127.0.0.1:{settings.s3_port}",
        "S3_REGION": "us-east-1",
        "S3_BUCKET": settings.get("S3_BUCKET") or "retouch",
        "S3_ACCESS_KEY_ID": settings.secret("s3-access-key"),
        "S3_SECRET_ACCESS_KEY": settings.secret("s3-secret-key"),
    }


def has_own_store(settings):
    """Returns whether `scripts/up` starts an S3 server. Keys without an endpoint belong to AWS."""
    return not settings.given("S3_ENDPOINT") and not settings.given("S3_ACCESS_KEY_ID")


def database_url(settings):
    return settings.get("DATABASE_URL") or own_database_url(settings)


def own_database_url(settings):
    """Returns the URL of the Postgres that `scripts/up` starts."""
    password = settings.secret("postgres-password")
    return f"postgres://{POSTGRES_USER}:{password}@127.0.0.1:{settings.postgres_port}/{POSTGRES_DATABASE}"
