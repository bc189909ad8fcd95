#!/usr/bin/env bash
# Says in one sentence what to install where Spark's Java (17 or newer) is missing. Looks where Spark looks: JAVA_HOME, then PATH.
set -euo pipefail
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
if ! version=$("$java" -version 2>&1); then
    echo "moldau: Spark needs Java 17 or newer and none was found: install a JRE, for example with 'apt-get install openjdk-17-jre-headless'." >&2
    exit 1
fi
major=$(sed -n 's/.*version "\(1\.\)\?\([0-9]*\).*/\2/p' <<<"$version" | head -n 1)
if [ "${major:-0}" -lt 17 ]; then
    echo "moldau: Spark needs Java 17 or newer and $java is Java ${major:-unknown}: install a newer JRE, or point JAVA_HOME to one." >&2
    exit 1
fi
