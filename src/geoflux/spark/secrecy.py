"""What Spark is told where a run is encrypted: who may talk to it, and what can be read on the way.

Spark makes the secret by which its processes know each other itself, in the JVM, for every session
on this machine, on YARN and on Kubernetes; so it is in no command line, no settings and no log. On
other masters it must be in the settings of the whole cluster, which are none of ours.
"""

from __future__ import annotations

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


def explained(error: Exception, master: str) -> Exception:
    """The error of a session that did not start, in a sentence if it is for want of a secret."""
    if _NO_SECRET not in str(error):
        return error
    return ConfigError(
        f"security.encrypt = true: Spark has no secret for engine.master = {master!r}; put "
        "spark.authenticate.secret into spark-defaults.conf of the whole cluster, readable by its "
        "owner alone"
    )
