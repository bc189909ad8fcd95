"""The Java program and the jars that ZooKeeper needs."""

import importlib.util
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from moldau.errors import ConfigError

JARS = (
    "zookeeper-[0-9]*.jar", "zookeeper-jute-*.jar", "slf4j-api-*.jar", "metrics-core-*.jar", "snappy-java-*.jar",
    "log4j-slf4j2-impl-*.jar", "log4j-api-*.jar", "log4j-core-*.jar",
)  # fmt: skip
"""What ZooKeeper needs of PySpark's jars. Without those of log4j its errors would be invisible."""


class Java(NamedTuple):
    program: str
    classpath: str


def find_java(classpath: str | None = None) -> Java:
    """Java, and ZooKeeper's jars: these, or those of the installed PySpark. Raises `ConfigError`."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if program is None or not os.access(program, os.X_OK):
        raise ConfigError("ZooKeeper needs Java 11 or newer, and none was found: install a JRE, or set JAVA_HOME")
    return Java(program, classpath or _jars_of_pyspark())


def _jars_of_pyspark() -> str:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "ZooKeeper's jars come with PySpark, which is not installed: run `pip install pyspark`, or name the jars "
            "of a ZooKeeper with --classpath"
        )
    folder = Path(spec.submodule_search_locations[0], "jars")
    jars = [next(iter(sorted(folder.glob(pattern))), None) for pattern in JARS]
    missing = [pattern for pattern, jar in zip(JARS, jars, strict=True) if jar is None]
    if missing:
        raise ConfigError(f"{folder} has no {missing[0]}: name the jars of a ZooKeeper with --classpath")
    return os.pathsep.join(str(jar) for jar in jars)
