#!/bin/sh
# Makes sure that there is a Java 17 or newer; installs one with apt-get where that is possible.
set -eu

major() {
    java="java"
    [ -n "${JAVA_HOME:-}" ] && java="$JAVA_HOME/bin/java"
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

advice="geoflux needs Java 17 or newer: install a Java runtime (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) and run this again"

version=$(major || true)
if [ "${version:-0}" -ge 17 ] 2>/dev/null; then
    exit 0
fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "installing Java 17 with apt-get"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null
    version=$(major || true)
    if [ "${version:-0}" -ge 17 ] 2>/dev/null; then
        exit 0
    fi
fi
echo "$advice" >&2
exit 1
