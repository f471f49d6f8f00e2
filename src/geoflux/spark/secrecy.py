"""What Spark is told where a run is encrypted: who may talk to it, and what can be read on the way.

Spark makes the secret by which its processes know each other itself, in the JVM, for every session
on this machine, on YARN and on Kubernetes; so it is in no command line, no settings and no log. For
``local-cluster``, whose master and workers live in the driver's JVM, it is made here and handed
over inside that JVM. On other masters it must be in the settings of the whole cluster, which are
none of ours.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from geoflux.errors import ConfigError

SETTINGS = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.saslFallback": "false",
    "spark.io.encryption.enabled": "true",
    "spark.io.encryption.keySizeBits": "256",
}
_NEEDED = ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled")
_SECRET = "spark.authenticate.secret"
_NO_SECRET = "A secret key must be specified"


def check_session(spark: SparkSession) -> None:
    """Refuse a session of the user's own that would send or spill what can be read: none of this
    can be changed once it has started."""
    conf = spark.sparkContext.getConf()
    lacking = [name for name in _NEEDED if (conf.get(name) or "").lower() != "true"]
    if lacking:
        raise ConfigError(
            "security.encrypt = true: the Spark session that was given has not "
            f"{', '.join(f'{name}=true' for name in lacking)}; start it with these, or let geoflux "
            "start its own"
        )


@contextlib.contextmanager
def secret_for(settings: Mapping[str, str]) -> Iterator[None]:
    """Start the session in here: on a ``local-cluster`` that is to be authenticated it finds a new
    secret, unless ``spark-defaults.conf`` has one. The JVM is started before there is a secret, as
    all settings that a JVM is started with are in its command line; executors get it from Spark in
    their environment, which their user alone can read."""
    wanted = settings.get("spark.authenticate") == "true"
    if not wanted or not settings["spark.master"].startswith("local-cluster["):
        yield
        return
    start = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    SparkContext._ensure_initialized(conf=start)
    jvm: Any = SparkContext._jvm
    system = jvm.java.lang.System
    if system.getProperty(_SECRET) is not None:
        yield
        return
    system.setProperty(_SECRET, secrets.token_hex(32))
    try:
        yield
    finally:
        system.clearProperty(_SECRET)


def explained(error: Exception, master: str) -> Exception:
    """The error of a session that did not start, in a sentence if it is for want of a secret."""
    if _NO_SECRET not in str(error):
        return error
    return ConfigError(
        f"security.encrypt = true: Spark has no secret for engine.master = {master!r}; put "
        "spark.authenticate.secret into spark-defaults.conf of the whole cluster, readable by its "
        "owner alone"
    )
